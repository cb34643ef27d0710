//! What the incident and the deploy came to, and whether it is as it must be.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::Plan;
use super::incident::{Incident, LOST};
use super::right::Right;
use crate::deploys::report::{millis, verdict};

/// All of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was to be done.
    pub plan: Plan,
    /// The incident.
    pub incident: Incident,
    /// The deploy that was done right.
    pub right: Right,
}

impl Report {
    /// What is not as it must be.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        for (cause, truth, told) in self.rows() {
            let (off, most) = (truth.abs_diff(told), self.plan.tolerance);
            if off > most {
                complaints.push(format!(
                    "{cause} is {} off the truth, at most {}",
                    seconds(off),
                    seconds(most)
                ));
            }
        }
        if self.incident.lost != LOST {
            complaints.push(format!("{} requests were lost, and not {LOST}", self.incident.lost));
        }
        for (how, length) in [("by the clock", self.right.truth), ("by gaps", self.right.told)] {
            if length >= self.plan.leaderless {
                complaints
                    .push(format!("nobody leads for {} {how} in the deploy done right", seconds(length)));
            }
        }
        complaints
    }

    fn rows(&self) -> [(&'static str, Duration, Duration); 5] {
        let (truth, told) = (&self.incident.truth, &self.incident.told);
        [
            ("detection", truth.detection, told.detection),
            ("queue", truth.queue, told.queue),
            ("warm-up", truth.warm_up, told.warm_up),
            ("other", truth.other, told.other),
            ("total", truth.total(), told.total()),
        ]
    }

    /// For programs. Lengths are in milliseconds.
    pub fn json(&self) -> Value {
        let rows = self.rows().map(
            |(cause, truth, told)| json!({"cause": cause, "truth_ms": millis(truth), "gaps_ms": millis(told)}),
        );
        let complaints = self.complaints();
        json!({
            "incident": rows, "lost": self.incident.lost,
            "right": {"truth_ms": millis(self.right.truth), "gaps_ms": millis(self.right.told)},
            "good": complaints.is_empty(), "complaints": complaints,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            f,
            "the incident: SIGTERM without a release, ttl {}; {LOST} lost requests; {} of warm-up after winning",
            seconds(plan.ttl),
            seconds(plan.warm_up)
        )?;
        writeln!(f, "{:<10} {:>9} {:>9} {:>9}", "", "truth", "gaps", "off by")?;
        for (cause, truth, told) in self.rows() {
            let off = truth.abs_diff(told);
            writeln!(f, "{cause:<10} {:>9} {:>9} {:>9}", seconds(truth), seconds(told), seconds(off))?;
        }
        writeln!(f, "\n{}", self.incident.printed)?;
        writeln!(
            f,
            "the same deploy done right: warm before it campaigns, in the queue, the old one drains"
        )?;
        let (truth, told) = (seconds(self.right.truth), seconds(self.right.told));
        writeln!(f, "{:<10} {truth:>9} {told:>9}\n\n{}", "total", self.right.printed)?;
        verdict(f, &self.complaints())
    }
}

fn seconds(length: Duration) -> String {
    format!("{:.3} s", length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::super::incident::Split;
    use super::*;
    use crate::deploys::Programs;

    const MS: Duration = Duration::from_millis(1);

    fn good() -> Report {
        let truth =
            Split { detection: MS * 3_000, queue: MS * 700, warm_up: MS * 8_000, other: Duration::ZERO };
        let told = Split { queue: MS * 703, ..truth };
        let incident = Incident { truth, told, lost: LOST, printed: String::new() };
        let right = Right { truth: MS * 2, told: MS, printed: String::new() };
        Report { plan: Plan::full(Programs::default()), incident, right }
    }

    #[test]
    fn what_is_as_it_must_be_is_good() {
        assert_eq!(good().complaints(), Vec::<String>::new());
        assert!(good().to_string().ends_with("verdict: good"));
    }

    #[test]
    fn each_thing_that_is_not_is_named() {
        let broken: [fn(&mut Report); 5] = [
            |report| {
                report.incident.told.detection += MS * 101;
                report.incident.told.warm_up -= MS * 99;
            },
            |report| report.incident.told.queue -= MS * 104,
            |report| report.incident.lost = 1,
            |report| report.right.told = MS * 200,
            |report| report.right.truth = MS * 200,
        ];
        for (number, breaks) in broken.into_iter().enumerate() {
            let mut report = good();
            breaks(&mut report);
            assert!(!report.complaints().is_empty(), "{number}");
            assert_eq!(report.json()["good"], false);
        }
    }
}
