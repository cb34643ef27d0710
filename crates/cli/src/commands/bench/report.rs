//! The figures, for people and for programs.

use std::time::Duration;

use serde::Serialize;

use super::load::{Measured, Taken};
pub(super) use crate::commands::probe::fine;
use crate::console::{Console, Table};
use crate::trouble::Trouble;

/// The result. Most figures are below a millisecond, so they are told in microseconds.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    store: &'a str,
    /// Whether a signal ended it early.
    interrupted: bool,
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
    per_second: u64,
    p50_us: Option<u64>,
    p99_us: Option<u64>,
    p999_us: Option<u64>,
    longest_us: Option<u64>,
}

impl<'a> Report<'a> {
    pub(super) fn new(store: &'a str, taken: &Taken, clients: &str) -> Self {
        let mut table = Table::new(&["OPERATION", "PER SECOND", "P50", "P99", "P99.9", "LONGEST", "COUNT"]);
        for (name, Measured { took, trips }) in [("cycles", &taken.cycles), ("renewals", &taken.renewals)] {
            let shown = |length| if trips.count > 0 { fine(length) } else { "-".to_owned() };
            let [p50, p99, p999, longest] = [trips.p50, trips.p99, trips.p999, trips.longest].map(shown);
            let rate = per_second(trips.count, *took).to_string();
            table.row(vec![name.to_owned(), rate, p50, p99, p999, longest, trips.count.to_string()]);
        }
        let cut = if taken.interrupted { ", ended early" } else { "" };
        Self {
            store,
            interrupted: taken.interrupted,
            cycles: Row::new(&taken.cycles),
            renewals: Row::new(&taken.renewals),
            head: format!("{store}, {clients}{cut}"),
            table,
        }
    }

    pub(super) fn say(&self, console: &Console) -> Result<(), Trouble> {
        console.headed_table(&self.head, &self.table, self)
    }
}

impl Row {
    fn new(Measured { took, trips }: &Measured) -> Self {
        let known = |length: Duration| (trips.count > 0).then(|| micros(length));
        Self {
            count: trips.count,
            measured_for_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            per_second: per_second(trips.count, *took),
            p50_us: known(trips.p50),
            p99_us: known(trips.p99),
            p999_us: known(trips.p999),
            longest_us: known(trips.longest),
        }
    }
}

/// Rounded down.
pub(super) fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count).saturating_mul(1_000_000) / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::Quantiles;

    #[test]
    fn rates_are_rounded_down_and_nothing_is_no_division_by_zero() {
        assert_eq!(per_second(3, Duration::from_secs(2)), 1);
        assert_eq!(per_second(0, Duration::ZERO), 0);
        assert_eq!(per_second(1_000, Duration::from_millis(500)), 2_000);
    }

    #[test]
    fn what_was_not_measured_has_no_quantiles() {
        let row = Row::new(&Measured { took: Duration::from_secs(1), trips: Quantiles::default() });
        assert_eq!((row.count, row.p50_us), (0, None));
    }
}
