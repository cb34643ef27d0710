//! What was measured, for people and for programs, and whether it is as it must be.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::kills::Kill;
use super::lane::{Deploy, LaneReport};
use super::{Plan, REPLICAS};

/// Clocks that are apart by up to 0.1 % on both sides, and one part of slack: how much longer than its ttl a lease may last.
const STRETCH: f64 = 1.003;

/// All that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was planned.
    pub plan: Plan,
    /// Deploys as they should be.
    pub deploys: LaneReport,
    /// Deploys done naively.
    pub naive: LaneReport,
    /// Holders that were killed.
    pub kills: Vec<Kill>,
}

impl Report {
    /// Everything that is not as it must be, in words. Nothing is good.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut must = |holds: bool, words: String| {
            if !holds {
                complaints.push(words);
            }
        };
        let (deploys, bounds) = (&self.deploys, &self.plan.bounds);
        let planned = self.plan.deploys.lanes * self.plan.deploys.each;
        must(deploys.deploys.len() == planned as usize, format!("{planned} deploys were planned"));
        let handovers = handovers(deploys);
        let expected = planned * REPLICAS;
        must(
            handovers.len() >= expected as usize,
            format!("{} handovers, and every deploy should have {REPLICAS} at least", handovers.len()),
        );
        let median = middle(&handovers);
        must(
            median < bounds.median,
            format!("the median handover takes {}, at most {}", length(median), length(bounds.median)),
        );
        let worst = leaderless(deploys).last().copied().unwrap_or_default();
        must(
            worst < bounds.leaderless,
            format!("nobody leads for {} in a deploy, at most {}", length(worst), length(bounds.leaderless)),
        );
        must(deploys.items > 0, "no work was done at all".to_owned());
        for (count, what) in [
            (deploys.lost, "items of work were lost"),
            (deploys.doubled, "items of work were done twice"),
            (deploys.redone, "items of work were cut off and begun again"),
            (deploys.overlaps + self.naive.overlaps, "leaders began before the one before had ended"),
            (self.naive.doubled, "items of work were done twice in spite of the fence"),
        ] {
            must(count == 0, format!("{count} {what}"));
        }
        let (earliest, latest) = self.window();
        for kill in &self.kills {
            must(
                kill.leads_after >= earliest && kill.leads_after <= latest,
                format!(
                    "after a kill somebody led {} after the last confirmed renewal was sent, and not between {} and {}",
                    length(kill.leads_after),
                    length(earliest),
                    length(latest)
                ),
            );
        }
        complaints
    }

    /// When the next one may lead after a kill.
    fn window(&self) -> (Duration, Duration) {
        (self.plan.ttl, self.plan.ttl.mul_f64(STRETCH) + self.plan.bounds.late)
    }

    /// For programs. Lengths are in milliseconds.
    pub fn json(&self) -> Value {
        let lane = |lane: &LaneReport| {
            let deploys: Vec<Vec<f64>> = lane
                .deploys
                .iter()
                .map(|deploy| deploy.handovers.iter().copied().map(millis).collect())
                .collect();
            json!({
                "handovers_ms": deploys, "items": lane.items, "lost": lane.lost, "doubled": lane.doubled,
                "redone": lane.redone, "overlaps": lane.overlaps,
            })
        };
        let kills = self.kills.iter();
        let kills: Vec<Value> = kills
            .map(|kill| json!({"killed_after_ms": millis(kill.killed_after), "leads_after_ms": millis(kill.leads_after)}))
            .collect();
        let complaints = self.complaints();
        json!({
            "warm_up_ms": millis(self.plan.warm_up), "item_ms": millis(self.plan.item), "ttl_ms": millis(self.plan.ttl),
            "deploys": lane(&self.deploys), "naive": lane(&self.naive), "kills": kills,
            "good": complaints.is_empty(), "complaints": complaints,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(
            f,
            "rolling deploys of {REPLICAS} replicas, one by one; warm-up {}, items of work of {}, ttl {}",
            length(plan.warm_up),
            length(plan.item),
            length(plan.ttl)
        )?;
        let heads = [
            "",
            "deploys",
            "handovers",
            "median",
            "longest",
            "nobody leads, per deploy",
            "items",
            "lost",
            "twice",
            "redone",
        ];
        let rows = [row("drained, warm standby", &self.deploys), row("naive", &self.naive)];
        table(f, &[&heads.map(str::to_owned), &rows[0], &rows[1]])?;
        let mut after: Vec<Duration> = self.kills.iter().map(|kill| kill.leads_after).collect();
        after.sort_unstable();
        let (earliest, latest) = self.window();
        writeln!(f)?;
        writeln!(
            f,
            "holders killed with SIGKILL; the next one leads so long after the last confirmed renewal was sent"
        )?;
        let heads = ["", "kills", "shortest", "median", "longest", "must be within"];
        let span = |place: Option<&Duration>| place.copied().map(length).unwrap_or_default();
        let within = format!("{} to {}", length(earliest), length(latest));
        let cells = [
            format!("ttl {}", length(plan.ttl)),
            self.kills.len().to_string(),
            span(after.first()),
            length(middle(&after)),
            span(after.last()),
            within,
        ];
        table(f, &[&heads.map(str::to_owned), &cells])?;
        writeln!(f)?;
        verdict(f, &self.complaints())
    }
}

/// What is not as it must be, and what it all comes to.
pub(crate) fn verdict(f: &mut fmt::Formatter<'_>, complaints: &[String]) -> fmt::Result {
    for complaint in complaints {
        writeln!(f, "not good: {complaint}")?;
    }
    write!(f, "verdict: {}", if complaints.is_empty() { "good" } else { "not good" })
}

fn row(name: &str, lane: &LaneReport) -> [String; 10] {
    let (handovers, leaderless) = (handovers(lane), leaderless(lane));
    let (longest, most) = (handovers.last().copied(), leaderless.last().copied());
    [
        name.to_owned(),
        lane.deploys.len().to_string(),
        handovers.len().to_string(),
        length(middle(&handovers)),
        length(longest.unwrap_or_default()),
        format!("{}, at most {}", length(middle(&leaderless)), length(most.unwrap_or_default())),
        lane.items.to_string(),
        lane.lost.to_string(),
        lane.doubled.to_string(),
        lane.redone.to_string(),
    ]
}

/// Columns as wide as what is in them, two spaces between.
fn table(f: &mut fmt::Formatter<'_>, rows: &[&[String]]) -> fmt::Result {
    let columns = rows.first().map_or(0, |row| row.len());
    let widths: Vec<usize> =
        (0..columns).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(f, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// All handovers, shortest first.
fn handovers(lane: &LaneReport) -> Vec<Duration> {
    let mut all: Vec<Duration> = lane.deploys.iter().flat_map(|deploy| deploy.handovers.clone()).collect();
    all.sort_unstable();
    all
}

/// For how long nobody led in each deploy, shortest first.
fn leaderless(lane: &LaneReport) -> Vec<Duration> {
    let mut all: Vec<Duration> = lane.deploys.iter().map(Deploy::leaderless).collect();
    all.sort_unstable();
    all
}

fn middle(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

pub(crate) fn millis(length: Duration) -> f64 {
    length.as_secs_f64() * 1000.0
}

fn length(length: Duration) -> String {
    if length < Duration::from_secs(1) {
        format!("{:.1} ms", millis(length))
    } else {
        format!("{:.3} s", length.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deploys::Programs;

    const MS: Duration = Duration::from_millis(1);

    fn good() -> Report {
        let plan = Plan::full(Programs::default());
        let deploy = Deploy { handovers: vec![MS * 2; 3] };
        let deploys = LaneReport { deploys: vec![deploy; 50], items: 100, ..LaneReport::default() };
        let kill = Kill { killed_after: MS, leads_after: Duration::from_millis(10_050) };
        Report { plan, deploys, naive: LaneReport::default(), kills: vec![kill; 20] }
    }

    #[test]
    fn what_is_as_it_must_be_is_good() {
        assert_eq!(good().complaints(), Vec::<String>::new());
        assert!(good().to_string().ends_with("verdict: good"));
    }

    #[test]
    fn each_thing_that_is_not_is_named() {
        let broken: [fn(&mut Report); 9] = [
            |report| report.deploys.lost = 1,
            |report| report.deploys.doubled = 1,
            |report| report.deploys.redone = 1,
            |report| report.deploys.overlaps = 1,
            |report| report.deploys.deploys[0].handovers[0] = MS * 200,
            |report| report.deploys.deploys.iter_mut().for_each(|deploy| deploy.handovers = vec![MS * 11; 3]),
            |report| _ = report.deploys.deploys[7].handovers.pop(),
            |report| report.kills[3].leads_after = Duration::from_millis(9_999),
            |report| report.kills[3].leads_after = Duration::from_millis(10_131),
        ];
        for (number, breaks) in broken.into_iter().enumerate() {
            let mut report = good();
            breaks(&mut report);
            assert_eq!(report.complaints().len(), 1, "{number}: {:?}", report.complaints());
            assert_eq!(report.json()["good"], false);
        }
    }
}
