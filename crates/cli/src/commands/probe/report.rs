//! The figures and the advice, for people and for programs.

use std::fmt::Write;
use std::time::Duration;

use leasehold::Quantiles;
use leasehold::core::Millis;
use leasehold::core::Policies;
use leasehold::core::measure::{Broken, Change, ClockRates};
use leasehold::core::numbers::{Ask, MIN_ROUND_TRIP};
use serde::Serialize;

use super::advice::Advice;
use super::measuring::Taken;
use crate::commands::plan::again;
use crate::console::{Console, Table};
use crate::trouble::Trouble;
use crate::words;

/// The result. Round trips and pauses are often below a millisecond, so they are told in microseconds.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    store: &'a str,
    measured_for_ms: u64,
    /// Whether a signal ended it early.
    interrupted: bool,
    renewals: QuantilesJson,
    /// The longest that a renewal waited for an answer that never came.
    unanswered_us: Option<u64>,
    reads: QuantilesJson,
    pauses: QuantilesJson,
    clocks: ClocksJson,
    numbers: NumbersJson,
    holds: bool,
    broken: Vec<BrokenJson>,
    /// The names of the warnings of a plan with these figures.
    warnings: Vec<&'static str>,
    /// The command that plans with these figures, or with the nearest numbers that go with them.
    plan: String,
    #[serde(skip)]
    text: (Table, String),
}

#[derive(Serialize)]
struct QuantilesJson {
    count: u64,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    p999_us: Option<u64>,
    longest_us: Option<u64>,
}

#[derive(Serialize)]
struct ClocksJson {
    monotonic_ppm: Option<i64>,
    boottime_ppm: Option<i64>,
    wall_steps: u64,
    wall_stepped_ms: u64,
    suspended_ms: u64,
}

#[derive(Serialize)]
struct NumbersJson {
    ttl_ms: u64,
    renew_every_ms: u64,
    margin_ms: u64,
    round_trip_ms: u64,
    pause_ms: u64,
}

#[derive(Serialize)]
struct BrokenJson {
    inequality: &'static str,
    message: String,
    change: Option<&'static str>,
    to_ms: Option<u64>,
}

impl<'a> Report<'a> {
    pub(super) fn new(store: &'a str, taken: &Taken, advice: &Advice) -> Self {
        let (numbers, clocks) = (&advice.numbers, &taken.clocks);
        Self {
            store,
            measured_for_ms: millis(taken.took),
            interrupted: taken.interrupted,
            renewals: QuantilesJson::new(&taken.renewals),
            unanswered_us: taken.outlasting().map(micros),
            reads: QuantilesJson::new(&taken.reads),
            pauses: QuantilesJson::new(&taken.naps),
            clocks: ClocksJson {
                monotonic_ppm: clocks.rates().map(|rates| rates.monotonic_ppm),
                boottime_ppm: clocks.rates().map(|rates| rates.boot_ppm),
                wall_steps: clocks.steps(),
                wall_stepped_ms: millis(clocks.stepped()),
                suspended_ms: millis(clocks.suspended()),
            },
            numbers: NumbersJson {
                ttl_ms: numbers.ttl().get(),
                renew_every_ms: numbers.renew_every().get(),
                margin_ms: numbers.margin().get(),
                round_trip_ms: round_trip(advice).get(),
                pause_ms: pause(advice).get(),
            },
            holds: advice.holds(),
            broken: advice.broken.iter().map(BrokenJson::new).collect(),
            warnings: advice.plan.warnings.iter().map(|warning| warning.name()).collect(),
            plan: command(advice.nearest.as_ref().map_or(&advice.plan.ask, |(ask, _)| ask)),
            text: (table(taken), below(taken, advice)),
        }
    }

    pub(super) fn say(&self, console: &Console) -> Result<(), Trouble> {
        let cut = if self.interrupted { ", ended early" } else { "" };
        let took = words::length(Duration::from_millis(self.measured_for_ms));
        let head = format!("{}, measured for {took}{cut}", self.store);
        console.framed_table(&head, &self.text.0, &self.text.1, self)
    }
}

impl QuantilesJson {
    fn new(of: &Quantiles) -> Self {
        let known = |length: Duration| (of.count > 0).then(|| micros(length));
        Self {
            count: of.count,
            p50_us: known(of.p50),
            p99_us: known(of.p99),
            p999_us: known(of.p999),
            longest_us: known(of.longest),
        }
    }
}

impl BrokenJson {
    fn new(broken: &Broken) -> Self {
        let (change, to) = match broken {
            Broken::RoundTrip { change, .. } | Broken::Pause { change, .. } => match change {
                Change::RenewEvery(interval) => (Some("renew-every"), Some(*interval)),
                Change::Ttl(ttl) => (Some("ttl"), Some(*ttl)),
                Change::Nothing => (None, None),
            },
            Broken::ClockRate { needed, .. } => (Some("margin"), Some(*needed)),
        };
        let (inequality, message) = (broken.name(), broken.to_string());
        Self { inequality, message, change, to_ms: to.map(Millis::get) }
    }
}

fn table(taken: &Taken) -> Table {
    let mut table = Table::new(&["FIGURE", "P50", "P99", "P99.9", "LONGEST", "COUNT"]);
    for (name, of) in [("renewals", &taken.renewals), ("reads", &taken.reads), ("pauses", &taken.naps)] {
        let shown = |length| if of.count > 0 { fine(length) } else { "-".to_owned() };
        let [p50, p99, p999, longest] = [of.p50, of.p99, of.p999, of.longest].map(shown);
        table.row(vec![name.to_owned(), p50, p99, p999, longest, of.count.to_string()]);
    }
    table
}

/// The clocks, then each inequality with both sides, then what to do.
fn below(taken: &Taken, advice: &Advice) -> String {
    let mut text = format!("clocks: {}\n", clocks(&taken.clocks));
    if let Some(waited) = taken.outlasting() {
        let _ = writeln!(text, "a renewal was not answered for {}: it counts as a round trip", fine(waited));
    }
    text.push('\n');
    let numbers = &advice.numbers;
    let (trip, pause) = (round_trip(advice), pause(advice));
    let (ttl, usable, interval) = (numbers.ttl(), numbers.usable(), numbers.renew_every());
    let (margin, second) = (numbers.margin(), numbers.second_attempt());
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "ttl {ttl}, renewed every {interval}, margin {margin}, with round trips up to {trip} and pauses up to {pause}:"
    );
    let needed = second.saturating_add(trip);
    let sign = sign(needed < usable);
    let _ = writeln!(
        text,
        "  second attempt + round trip = {second} + {trip} = {needed} {sign} ttl - margin = {usable}"
    );
    let needed = interval.saturating_add(pause).saturating_add(trip);
    let sign = self::sign(needed < usable);
    let _ = writeln!(
        text,
        "  renewal interval + pause + round trip = {interval} + {pause} + {trip} = {needed} {sign} ttl - margin = {usable}"
    );
    if advice.holds() {
        text.push_str("the numbers hold\n");
    } else {
        text.push_str("the numbers do not hold:\n");
        for broken in &advice.broken {
            let _ = writeln!(text, "  {broken}");
        }
    }
    for warning in &advice.plan.warnings {
        let _ = writeln!(text, "warning {}: {}", warning.name(), warning.reason());
    }
    let _ = match &advice.nearest {
        Some((ask, changed)) => {
            writeln!(text, "nearest: {}\n  {}", again::changes(changed), command(ask))
        }
        None => writeln!(text, "more: {}", command(&advice.plan.ask)),
    };
    text
}

fn command(ask: &Ask) -> String {
    again::command(ask, &Policies::default())
}

const fn sign(holds: bool) -> &'static str {
    if holds { "<" } else { "is not below" }
}

fn round_trip(advice: &Advice) -> Millis {
    advice.measured.round_trip_bound().unwrap_or(MIN_ROUND_TRIP)
}

fn pause(advice: &Advice) -> Millis {
    advice.measured.pause_bound().unwrap_or_default()
}

fn clocks(clocks: &ClockRates) -> String {
    let rates = match clocks.rates() {
        Some(rates) => format!(
            "against MONOTONIC_RAW, MONOTONIC runs {:+} ppm and BOOTTIME {:+} ppm",
            rates.monotonic_ppm, rates.boot_ppm
        ),
        None => "too short to compare them".to_owned(),
    };
    let wall = match (clocks.steps(), clocks.last_step()) {
        (0, _) | (_, None) => "the time of day was not set".to_owned(),
        (steps, Some(step)) => {
            let times = words::count(usize::try_from(steps).unwrap_or(usize::MAX), "time");
            let which = if step.forwards { "forwards" } else { "backwards" };
            format!("the time of day was set {times}, last {which} by {}", fine(step.by))
        }
    };
    let asleep = clocks.suspended();
    let asleep = if asleep.is_zero() { String::new() } else { format!("; asleep for {}", fine(asleep)) };
    format!("{rates}; {wall}{asleep}")
}

/// A length that may be very short, in three digits, rounded up: it is a bound.
pub(in crate::commands) fn fine(length: Duration) -> String {
    let micros = micros(length);
    let hundredths = |value: u64| format!("{}.{:02}", value / 100, value % 100);
    match micros {
        0..10_000 => format!("{} ms", hundredths(micros.div_ceil(10))),
        10_000..1_000_000 => format!("{} ms", micros.div_ceil(1_000)),
        _ => format!("{} s", hundredths(micros.div_ceil(10_000))),
    }
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

fn millis(length: Duration) -> u64 {
    Millis::from_duration(length).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lengths_keep_their_digits_and_are_rounded_up() {
        for (micros, shown) in [
            (0, "0.00 ms"),
            (1, "0.01 ms"),
            (1_230, "1.23 ms"),
            (9_999, "10.00 ms"),
            (10_001, "11 ms"),
            (999_001, "1000 ms"),
            (1_000_000, "1.00 s"),
            (1_234_567, "1.24 s"),
        ] {
            assert_eq!(fine(Duration::from_micros(micros)), shown);
        }
    }
}
