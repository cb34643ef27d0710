//! How figures are written.
//!
//! Promises: a figure of fewer repeats than planned says of how many it is.

use super::medians::Median;
use crate::peers::Peer;
use crate::workloads::Work;
use crate::workloads::figures::thousands_apart;

/// Behind a figure of renewals that are less durable when they are answered than the system's own grants.
pub const LESS_DURABLE: &str = "†";

/// Three digits that count, and thousands apart.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        size if size >= 0.01 => 3,
        _ => 4,
    };
    let plain = format!("{value:.digits$}");
    match plain.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", thousands_apart(whole)),
        None => thousands_apart(&plain),
    }
}

/// The median, and of how many repeats it is if some are missing.
pub fn alone(median: Median, planned: usize) -> String {
    match median.count {
        count if count < planned => format!("{} ({count} of {planned})", number(median.middle)),
        _ => number(median.middle),
    }
}

/// The sign behind a figure, if it needs one.
pub fn mark(peer: Peer, work: Work, figure: &str) -> &'static str {
    if work.is_of_renewals(figure) && peer.renewals_are_weaker() { LESS_DURABLE } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count_and_thousands_apart() {
        let shown = [0.0, 0.0042, 0.0136, 0.5, 12.34, 123.4, 1234.0, 1_234_567.0, -1500.0].map(number);
        assert_eq!(shown, ["0", "0.0042", "0.014", "0.50", "12.3", "123", "1,234", "1,234,567", "-1,500"]);
    }

    #[test]
    fn a_figure_of_fewer_repeats_than_planned_says_so() {
        let of = |values: &[f64]| Median::of(values.to_vec()).unwrap();
        assert_eq!([alone(of(&[9.71]), 3), alone(of(&[9.71]), 1)], ["9.71 (1 of 3)", "9.71"]);
    }

    #[test]
    fn renewals_that_are_in_memory_alone_are_marked_and_nothing_else_is() {
        let renewals = Work::Renewals { sessions: 64 };
        for peer in [Peer::Etcd, Peer::Etcd36, Peer::Consul] {
            assert_eq!(mark(peer, renewals, "per_second"), LESS_DURABLE);
        }
        assert_eq!(mark(Peer::Leasehold, renewals, "per_second"), "");
        assert_eq!(mark(Peer::Redis, renewals, "per_second"), "");
        let many = Work::MassExpiry { leases: 10, ttl_ms: 5_000 };
        assert_eq!(mark(Peer::Etcd, many, "living_renewal_p99_us"), LESS_DURABLE);
        assert_eq!(mark(Peer::Etcd, many, "last_s"), "");
    }
}
