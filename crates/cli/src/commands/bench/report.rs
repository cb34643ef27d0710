//! The figures, for people and for programs.

use std::time::Duration;

use serde::Serialize;

use super::load::{End, Measured, Taken};
use super::opening;
use crate::args::BenchArgs;
pub(super) use crate::commands::probe::fine;
use crate::console::{Console, Table};
use crate::trouble::Trouble;
use crate::words;

/// Of fewer operations than this, all but one in a thousand are all of them: there is no such quantile.
const ENOUGH_FOR_P999: u64 = 1_000;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The result. Most figures are below a millisecond, so they are told in microseconds.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    store: &'a str,
    version: &'static str,
    clients: u16,
    connections: u16,
    asked_for_ms: u64,
    /// Whether a signal ended it early.
    interrupted: bool,
    ended: &'static str,
    cycles: Row,
    renewals: Row,
    #[serde(skip)]
    head: String,
    #[serde(skip)]
    table: Table,
}

#[derive(Serialize)]
struct Row {
    count: u64,
    measured_for_ms: u64,
    per_second: Option<u64>,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    p999_us: Option<u64>,
    longest_us: Option<u64>,
}

/// The quantiles that say something: p50, p99, p99.9 and the longest.
fn lengths(measured: Option<&Measured>) -> [Option<Duration>; 4] {
    let Some(Measured { trips, .. }) = measured.filter(|measured| measured.trips.count > 0) else {
        return [None; 4];
    };
    let p999 = (trips.count >= ENOUGH_FOR_P999).then_some(trips.p999);
    [Some(trips.p50), Some(trips.p99), p999, Some(trips.longest)]
}

impl<'a> Report<'a> {
    pub(super) fn new(store: &'a str, args: &BenchArgs, taken: &Taken) -> Self {
        let mut table = Table::new(&["OPERATION", "PER SECOND", "P50", "P99", "P99.9", "LONGEST", "COUNT"]);
        for (name, measured) in [("cycles", &taken.cycles), ("renewals", &taken.renewals)] {
            table.row(fields(name, measured.as_ref()));
        }
        let (ended, cut) = match &taken.end {
            End::Complete => ("complete", None),
            End::Signal(_) => ("signal", Some("ended early")),
            End::StoreGone(_) => ("store-gone", Some("the store went away")),
            End::LeaseLost(_) => ("lease-lost", Some("a lease was lost")),
            End::Failed(_) => ("failed", Some("it failed")),
        };
        let cut =
            cut.map_or_else(String::new, |what| format!(", {what} after {}", words::length(taken.took())));
        Self {
            store,
            version: VERSION,
            clients: args.clients,
            connections: args.connections,
            asked_for_ms: millis(args.length),
            interrupted: matches!(taken.end, End::Signal(_)),
            ended,
            cycles: Row::new(taken.cycles.as_ref()),
            renewals: Row::new(taken.renewals.as_ref()),
            head: format!("{store}, {}, leasehold {VERSION}{cut}", opening::asked(args)),
            table,
        }
    }

    pub(super) fn say(&self, console: &Console) -> Result<(), Trouble> {
        console.headed_table(&self.head, &self.table, self)
    }
}

/// One line of the table. What did not run has no rate, which is not a rate of zero.
fn fields(name: &str, measured: Option<&Measured>) -> Vec<String> {
    let none = || "-".to_owned();
    let rate = measured.map_or_else(none, |phase| thousands(per_second(phase.trips.count, phase.took)));
    let count = thousands(measured.map_or(0, |phase| phase.trips.count));
    let lengths = lengths(measured).map(|length| length.map_or_else(none, fine));
    [name.to_owned(), rate].into_iter().chain(lengths).chain([count]).collect()
}

impl Row {
    fn new(measured: Option<&Measured>) -> Self {
        let [p50_us, p99_us, p999_us, longest_us] = lengths(measured).map(|length| length.map(micros));
        Self {
            count: measured.map_or(0, |phase| phase.trips.count),
            measured_for_ms: measured.map_or(0, |phase| millis(phase.took)),
            per_second: measured.map(|phase| per_second(phase.trips.count, phase.took)),
            p50_us,
            p99_us,
            p999_us,
            longest_us,
        }
    }
}

/// Rounded down.
pub(super) fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count).saturating_mul(1_000_000) / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A number as people read it: 12,345.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Quantiles;
    use leasehold::core::measure::RoundTrips;

    fn measured(count: u64) -> Measured {
        let (second, now) = (Duration::from_secs(1), leasehold_clock::read());
        let mut trips = RoundTrips::new(second, now);
        for _ in 0..count {
            trips.add(Duration::from_millis(1), now);
        }
        Measured { took: second, trips: Quantiles::of(&trips) }
    }

    #[test]
    fn rates_are_rounded_down_and_nothing_is_no_division_by_zero() {
        assert_eq!(per_second(3, Duration::from_secs(2)), 1);
        assert_eq!(per_second(0, Duration::ZERO), 0);
        assert_eq!(per_second(1_000, Duration::from_millis(500)), 2_000);
    }

    #[test]
    fn what_was_not_measured_has_no_quantiles() {
        let row = Row::new(Some(&measured(0)));
        assert_eq!((row.count, row.p50_us, row.per_second), (0, None, Some(0)));
    }

    #[test]
    fn what_did_not_run_has_no_rate() {
        let row = Row::new(None);
        assert_eq!((row.count, row.measured_for_ms, row.per_second), (0, 0, None));
        assert_eq!(fields("renewals", None), ["renewals", "-", "-", "-", "-", "-", "0"]);
    }

    #[test]
    fn one_in_a_thousand_needs_a_thousand() {
        let p999 = |count| Row::new(Some(&measured(count))).p999_us;
        assert_eq!([999, 1_000, 1_001].map(p999), [None, Some(1_000), Some(1_000)]);
        assert_eq!(fields("cycles", Some(&measured(999)))[4], "-");
    }

    #[test]
    fn numbers_are_cut_into_thousands() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
