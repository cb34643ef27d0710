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
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words::{self, whole_millis};

/// The result. Round trips and pauses are often below a millisecond, so they are told in microseconds.
pub(super) fn say(console: &Console, store: &str, taken: &Taken, advice: &Advice) -> Result<Exit, Trouble> {
    let (numbers, clocks, rates) = (&advice.numbers, &taken.clocks, taken.clocks.rates());
    let json = object! {
        store,
        measured_for_ms: whole_millis(taken.took),
        // Whether a signal ended it early.
        interrupted: taken.interrupted,
        renewals: quantiles(&taken.renewals),
        // The longest that a renewal waited for an answer that never came.
        unanswered_us: taken.outlasting().map(micros),
        reads: quantiles(&taken.reads),
        pauses: quantiles(&taken.naps),
        clocks: object! {
            monotonic_ppm: rates.map(|rates| rates.monotonic_ppm),
            boottime_ppm: rates.map(|rates| rates.boot_ppm),
            wall_steps: clocks.steps(),
            wall_stepped_ms: whole_millis(clocks.stepped()),
            suspended_ms: whole_millis(clocks.suspended()),
        },
        numbers: object! {
            ttl_ms: numbers.ttl().get(),
            renew_every_ms: numbers.renew_every().get(),
            margin_ms: numbers.margin().get(),
            round_trip_ms: round_trip(advice).get(),
            pause_ms: pause(advice).get(),
        },
        holds: advice.holds(),
        broken: advice.broken.iter().map(broken).collect::<Vec<_>>(),
        // The names of the warnings of a plan with these figures.
        warnings: advice.plan.warnings.iter().map(|warning| warning.name()).collect::<Vec<_>>(),
        // The command that plans with these figures, or with the nearest numbers that go with them.
        plan: command(advice.nearest.as_ref().map_or(&advice.plan.ask, |(ask, _)| ask)),
    };
    let cut = if taken.interrupted { ", ended early" } else { "" };
    let took = words::length(taken.took);
    let head = format!("{store}, measured for {took}{cut}");
    console.framed_table(&head, &table(taken), &below(taken, advice), &json)
}

fn quantiles(of: &Quantiles) -> impl Serialize {
    let known = |length: Duration| (of.count > 0).then(|| micros(length));
    object! {
        count: of.count,
        p50_us: known(of.p50),
        p99_us: known(of.p99),
        p999_us: known(of.p999),
        longest_us: known(of.longest),
    }
}

fn broken(broken: &Broken) -> impl Serialize {
    let (change, to) = match broken {
        Broken::RoundTrip { change, .. } | Broken::Pause { change, .. } => match change {
            Change::RenewEvery(interval) => (Some("renew-every"), Some(*interval)),
            Change::Ttl(ttl) => (Some("ttl"), Some(*ttl)),
            Change::Nothing => (None, None),
        },
        Broken::ClockRate { needed, .. } => (Some("margin"), Some(*needed)),
    };
    let (inequality, message) = (broken.name(), broken.to_string());
    object! { inequality, message, change, to_ms: to.map(Millis::get) }
}

fn table(taken: &Taken) -> Table {
    let measured = [("renewals", &taken.renewals), ("reads", &taken.reads), ("pauses", &taken.naps)];
    let rows = measured.map(|(name, of)| {
        let shown = |length| if of.count > 0 { fine(length) } else { "-".to_owned() };
        let [p50, p99, p999, longest] = [of.p50, of.p99, of.p999, of.longest].map(shown);
        [name.to_owned(), p50, p99, p999, longest, of.count.to_string()]
    });
    Table::new(["FIGURE", "P50", "P99", "P99.9", "LONGEST", "COUNT"], rows)
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
            let times = words::count(steps, "time");
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

/// Whole microseconds, rounded up.
pub(in crate::commands) fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
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
