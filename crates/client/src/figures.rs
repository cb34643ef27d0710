//! What a client measures all the time, as plain numbers, as metrics, and as warnings.
//!
//! The figures decide nothing. A lease is held or not by its deadline; these say how close it comes to be lost.

use std::fmt::Write;
use std::time::Duration;

use leasehold_core::measure::{Broken, Measured, Pauses, Rates, RoundTrips, WallStep};
use tokio::sync::broadcast;

/// Some lengths of time, in a few figures. Each is an upper bound, too large by a sixteenth at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Quantiles {
    /// How many there were; all below are zero if there were none.
    pub count: u64,
    /// Half of them took at most so long.
    pub p50: Duration,
    /// All but one in a hundred.
    pub p99: Duration,
    /// All but one in a thousand.
    pub p999: Duration,
    /// All of them.
    pub longest: Duration,
}

impl Quantiles {
    /// Of what was measured.
    pub fn of(trips: &RoundTrips) -> Self {
        let at = |per_mille| trips.quantile(per_mille).unwrap_or_default();
        let (count, longest) = (trips.count(), trips.longest());
        Self { count, p50: at(500), p99: at(990), p999: at(999), longest }
    }
}

/// What a [`Store`](crate::Store) has measured. "Recent" is the last one to two minutes, unless
/// [asked otherwise](crate::ConnectOptions::figures_over); everything else counts from the connection of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Recent round trips of renewals, from their sending to their answer. One during which this process itself stood still is left out.
    pub round_trips: Quantiles,
    /// How many there ever were.
    pub round_trips_total: u64,
    /// How long they took together.
    pub round_trips_time: Duration,
    /// The longest recent time by which the thread that renews woke too late.
    pub longest_pause: Duration,
    /// The longest there ever was.
    pub longest_pause_ever: Duration,
    /// Pauses of more than 10 ms, 100 ms and 1 s.
    pub pauses_over: [u64; Pauses::THRESHOLDS.len()],
    /// How the clocks of this machine run against each other; nothing in the first second.
    pub rates: Option<Rates>,
    /// How often the time of day was set. No lease depends on it.
    pub wall_steps: u64,
    /// By how much in all.
    pub wall_stepped: Duration,
    /// The last time.
    pub last_wall_step: Option<WallStep>,
    /// How long the machine slept.
    pub suspended: Duration,
    /// The longest that a renewal waited for an answer that never came, up to the next that was confirmed; or waits now.
    pub longest_unanswered: Duration,
    /// Renewals that were sent.
    pub renewals_sent: u64,
    /// Renewals that were confirmed.
    pub renewals_confirmed: u64,
    /// Renewals that will not be answered: their connection ended, or the service could not take them in.
    pub renewals_lost: u64,
    /// How long sessions had an unanswered renewal; those of several sessions are added up.
    pub retrying: Duration,
    /// How long sessions could not be believed in because the clocks disagreed.
    pub uncertain: Duration,
    /// How long sessions were past their deadline.
    pub lapsed: Duration,
    /// The last warning.
    pub last_warning: Option<Broken>,
}

impl Figures {
    /// What the [numbers](leasehold_core::numbers) are judged by.
    pub fn measured(&self) -> Measured {
        Measured {
            round_trip: (self.round_trips.count > 0).then_some(self.round_trips.p999),
            pause: Some(self.longest_pause),
            rate_ppm: self.rates.map(|rates| rates.monotonic_ppm.unsigned_abs()),
        }
    }

    /// The figures as metrics in the text format of OpenMetrics, for the application's own page. Put `# EOF` behind the last of all.
    pub fn open_metrics(&self) -> String {
        let mut page = Page(String::with_capacity(4_096));
        let trips = &self.round_trips;
        page.head("round_trip_seconds", "summary", "seconds", "From the sending of a renewal to its answer");
        for (quantile, length) in [("0.5", trips.p50), ("0.99", trips.p99), ("0.999", trips.p999)] {
            if trips.count > 0 {
                page.line(&format!("round_trip_seconds{{quantile=\"{quantile}\"}}"), seconds(length));
            }
        }
        page.line("round_trip_seconds_count", self.round_trips_total);
        page.line("round_trip_seconds_sum", seconds(self.round_trips_time));
        let help = "Longest of the last minutes by which the thread that renews woke too late";
        page.gauge("longest_pause_seconds", "seconds", help, seconds(self.longest_pause));
        page.head(
            "pauses",
            "counter",
            "",
            "Times that the thread that renews woke too late by more than that",
        );
        for (over, count) in Pauses::THRESHOLDS.iter().zip(self.pauses_over) {
            page.line(&format!("pauses_total{{over=\"{}\"}}", seconds(*over)), count);
        }
        page.head("renewals", "counter", "", "Renewals by what became of them; all were sent");
        for (outcome, count) in [
            ("sent", self.renewals_sent),
            ("confirmed", self.renewals_confirmed),
            ("lost", self.renewals_lost),
        ] {
            page.line(&format!("renewals_total{{outcome=\"{outcome}\"}}"), count);
        }
        page.head(
            "standing_seconds",
            "counter",
            "seconds",
            "Time that sessions did not stand well, added up",
        );
        for (standing, length) in
            [("retrying", self.retrying), ("uncertain", self.uncertain), ("lapsed", self.lapsed)]
        {
            page.line(&format!("standing_seconds_total{{standing=\"{standing}\"}}"), seconds(length));
        }
        let ppm = self.rates.map_or(0, Rates::disagreement_ppm);
        let help = "How far the two clocks of deadlines come apart, in parts per million";
        page.gauge("clock_disagreement_ppm", "", help, ppm);
        page.counter("wall_clock_steps", "", "Times that the time of day was set", self.wall_steps);
        let help = "By how much the time of day was set, in all";
        page.counter("wall_clock_step_seconds", "seconds", help, seconds(self.wall_stepped));
        page.counter("suspended_seconds", "seconds", "Time that the machine slept", seconds(self.suspended));
        page.0
    }
}

/// Metrics as they are written.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "# HELP leasehold_client_{name} {help}.");
        let _ = writeln!(self.0, "# TYPE leasehold_client_{name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT leasehold_client_{name} {unit}");
        }
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "leasehold_client_{name} {value}");
    }

    fn gauge(&mut self, name: &str, unit: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "gauge", unit, help);
        self.line(name, value);
    }

    fn counter(&mut self, name: &str, unit: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, "counter", unit, help);
        self.line(&format!("{name}_total"), value);
    }
}

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}

/// Warnings of a store: what was measured breaks an inequality of the numbers of a session. Each is said once, and again when it has been
/// good in between, at most once a minute.
#[derive(Debug)]
pub struct Warnings {
    receiver: Option<broadcast::Receiver<Broken>>,
}

impl Warnings {
    pub(crate) fn new(receiver: Option<broadcast::Receiver<Broken>>) -> Self {
        Self { receiver }
    }

    /// The next warning; nothing when the store is closed.
    pub async fn next(&mut self) -> Option<Broken> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.recv().await {
                Ok(broken) => return Some(broken),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// A warning that was said already and not read yet.
    pub fn try_next(&mut self) -> Option<Broken> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.try_recv() {
                Ok(broken) => return Some(broken),
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There to find: a counter without its ending, which a strict reader refuses.
    #[test]
    fn metrics_are_told_with_their_types_and_in_seconds() {
        let trips = Quantiles { count: 2, p50: Duration::from_millis(2), ..Quantiles::default() };
        let figures = Figures {
            round_trips: trips,
            round_trips_total: 7,
            retrying: Duration::from_millis(1_500),
            wall_steps: 1,
            ..Figures::default()
        };
        let page = figures.open_metrics();
        for line in [
            "# TYPE leasehold_client_round_trip_seconds summary",
            "leasehold_client_round_trip_seconds{quantile=\"0.5\"} 0.002",
            "leasehold_client_round_trip_seconds_count 7",
            "leasehold_client_standing_seconds_total{standing=\"retrying\"} 1.5",
            "leasehold_client_wall_clock_steps_total 1",
            "leasehold_client_pauses_total{over=\"0.01\"} 0",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        for line in page.lines().filter(|line| line.starts_with("# TYPE")) {
            let name = line.split(' ').nth(2).unwrap();
            let ending = if line.ends_with(" counter") { "_total" } else { "" };
            assert!(page.contains(&format!("\n{name}{ending}")), "{line}\n{page}");
        }
    }
}
