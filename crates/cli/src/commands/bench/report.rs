//! The figures, for people and for programs.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use super::load::{End, Measured, Taken};
use super::opening;
use crate::args::BenchArgs;
pub(super) use crate::commands::probe::fine;
use crate::commands::probe::micros;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words::{self, whole_millis};

/// Of fewer operations than this, all but one in a thousand are all of them: there is no such quantile.
const ENOUGH_FOR_P999: u64 = 1_000;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The result. Most figures are below a millisecond, so they are told in microseconds.
pub(super) fn say(console: &Console, store: &str, args: &BenchArgs, taken: &Taken) -> Result<Exit, Trouble> {
    let (cycles, renewals) = (taken.cycles.as_ref(), taken.renewals.as_ref());
    let (ended, cut) = match &taken.end {
        End::Complete => ("complete", None),
        End::Signal(_) => ("signal", Some("ended early")),
        End::StoreGone(_) => ("store-gone", Some("the store went away")),
        End::LeaseLost(_) => ("lease-lost", Some("a lease was lost")),
        End::Failed(_) => ("failed", Some("it failed")),
    };
    let json = object! {
        store,
        version: VERSION,
        clients: args.clients,
        connections: args.connections,
        asked_for_ms: whole_millis(args.length),
        // Whether a signal ended it early.
        interrupted: matches!(taken.end, End::Signal(_)),
        ended,
        cycles: row(cycles),
        renewals: row(renewals),
    };
    let cut = cut.map_or_else(String::new, |what| format!(", {what} after {}", words::length(taken.took())));
    let head = format!("{store}, {}, leasehold {VERSION}{cut}", opening::asked(args));
    let rows = [fields("cycles", cycles), fields("renewals", renewals)];
    let table = Table::new(["OPERATION", "PER SECOND", "P50", "P99", "P99.9", "LONGEST", "COUNT"], rows);
    console.framed_table(&head, &table, "", &json)
}

/// The quantiles that say something: p50, p99, p99.9 and the longest.
fn lengths(measured: Option<&Measured>) -> [Option<Duration>; 4] {
    let Some(Measured { trips, .. }) = measured.filter(|measured| measured.trips.count > 0) else {
        return [None; 4];
    };
    let p999 = (trips.count >= ENOUGH_FOR_P999).then_some(trips.p999);
    [Some(trips.p50), Some(trips.p99), p999, Some(trips.longest)]
}

/// One line of the table. What did not run has no rate, which is not a rate of zero.
fn fields(name: &str, measured: Option<&Measured>) -> [String; 7] {
    let none = || "-".to_owned();
    let rate = measured.map_or_else(none, |phase| thousands(per_second(phase.trips.count, phase.took)));
    let count = thousands(measured.map_or(0, |phase| phase.trips.count));
    let [p50, p99, p999, longest] = lengths(measured).map(|length| length.map_or_else(none, fine));
    [name.to_owned(), rate, p50, p99, p999, longest, count]
}

/// The same for programs.
fn row(measured: Option<&Measured>) -> impl Serialize + use<> {
    let [p50_us, p99_us, p999_us, longest_us] = lengths(measured).map(|length| length.map(micros));
    let count = measured.map_or(0, |phase| phase.trips.count);
    let measured_for_ms = measured.map_or(0, |phase| whole_millis(phase.took));
    let per_second = measured.map(|phase| per_second(phase.trips.count, phase.took));
    object! { count, measured_for_ms, per_second, p50_us, p99_us, p999_us, longest_us }
}

/// Rounded down.
pub(super) fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count).saturating_mul(1_000_000) / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// A number as people read it: 12,345.
pub(super) fn thousands(number: impl Display) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Quantiles;
    use leasehold::core::measure::RoundTrips;
    use serde_json::{Value, json};

    fn told(measured: Option<&Measured>) -> Value {
        serde_json::to_value(row(measured)).unwrap()
    }

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
        let row = told(Some(&measured(0)));
        assert_eq!([&row["count"], &row["p50_us"], &row["per_second"]], [&json!(0), &Value::Null, &json!(0)]);
    }

    #[test]
    fn what_did_not_run_has_no_rate() {
        let row = told(None);
        let figures = [&row["count"], &row["measured_for_ms"], &row["per_second"]];
        assert_eq!(figures, [&json!(0), &json!(0), &Value::Null]);
        assert_eq!(fields("renewals", None), ["renewals", "-", "-", "-", "-", "-", "0"]);
    }

    #[test]
    fn one_in_a_thousand_needs_a_thousand() {
        let p999 = |count| told(Some(&measured(count)))["p999_us"].as_u64();
        assert_eq!([999, 1_000, 1_001].map(p999), [None, Some(1_000), Some(1_000)]);
        assert_eq!(fields("cycles", Some(&measured(999)))[4], "-");
    }

    #[test]
    fn numbers_are_cut_into_thousands() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
