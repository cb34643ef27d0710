//! What we want to reach, beside what was reached: one row for each goal, with every peer of the same run.
//!
//! Promises: a goal that was missed says so, and one without a figure says that it was not measured.

use std::fmt::Write as _;

use super::medians::{Cell, Median};
use super::pick::{Pick, many, own, shared};
use super::shown::{alone, number};
use crate::peers::Peer;
use crate::workloads::Work;

/// A figure and how good it has to be.
struct Goal {
    of: Pick,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// Beside a goal that says too little alone.
    NoGoal,
}

impl Wanted {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::NoGoal => true,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {}", number(bound)),
            Self::AtMost(bound) => format!("at most {}", number(bound)),
            Self::NoGoal => "no goal".to_owned(),
        }
    }

    /// By the median. Where single repeats would be judged otherwise, that is said.
    fn verdict(self, reached: Option<Median>) -> String {
        let Some(Median { middle, least, most, .. }) = reached else { return "not measured".to_owned() };
        if matches!(self, Self::NoGoal) {
            return String::new();
        }
        let word = if self.is_met(middle) { "met" } else { "missed" };
        let crosses = self.is_met(least) != self.is_met(most);
        format!("{word}{}", if crosses { " (range crosses)" } else { "" })
    }
}

/// A ttl of 5 s ends 0.3 % of it late by the drift factor and its rounding, and some milliseconds more.
const LATE_P50_MS: f64 = 5_000.0 * 0.003 + 5.0;
const LATE_MOST_MS: f64 = 5_000.0 * 0.003 + 25.0;

#[rustfmt::skip]
const GOALS: &[Goal] = &[
    Goal { of: Pick { words: "A, 64 clients, cycles/s", nodes: 1, is_of: |work| own(work, 64), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(70_000.0) },
    Goal { of: Pick { words: "A, 64 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| shared(work, 64), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(70_000.0) },
    Goal { of: Pick { words: "A, 256 clients, cycles/s", nodes: 1, is_of: |work| own(work, 256), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(100_000.0) },
    Goal { of: Pick { words: "A, 256 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| shared(work, 256), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(100_000.0) },
    Goal { of: Pick { words: "A, 1 client, p50 of a cycle, ms", nodes: 1, is_of: |work| own(work, 1), figure: "p50_us", unit: 1000.0 }, wanted: Wanted::AtMost(0.35) },
    Goal { of: Pick { words: "A, 64 clients, cycles/s", nodes: 3, is_of: |work| own(work, 64), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(22_000.0) },
    Goal { of: Pick { words: "A, 256 clients, cycles/s", nodes: 3, is_of: |work| own(work, 256), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(32_000.0) },
    Goal { of: Pick { words: "A, 256 clients over 4 connections, cycles/s", nodes: 3, is_of: |work| shared(work, 256), figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(32_000.0) },
    Goal { of: Pick { words: "A, 1 client, p50 of a cycle, ms", nodes: 3, is_of: |work| own(work, 1), figure: "p50_us", unit: 1000.0 }, wanted: Wanted::AtMost(0.8) },
    Goal { of: Pick { words: "B, 1000 sessions, renewals/s", nodes: 1, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(600_000.0) },
    Goal { of: Pick { words: "B, 1000 sessions, renewals/s", nodes: 3, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0 }, wanted: Wanted::AtLeast(400_000.0) },
    Goal { of: Pick { words: "C, handover p50, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0 }, wanted: Wanted::AtMost(0.3) },
    Goal { of: Pick { words: "C, handover p99, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "C, handover p50, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0 }, wanted: Wanted::AtMost(0.7) },
    Goal { of: Pick { words: "C, handover p99, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "D, late beyond a ttl of 5 s, p50, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_p50_us", unit: 1000.0 }, wanted: Wanted::AtMost(LATE_P50_MS) },
    Goal { of: Pick { words: "D, late beyond a ttl of 5 s, most, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_max_us", unit: 1000.0 }, wanted: Wanted::AtMost(LATE_MOST_MS) },
    Goal { of: Pick { words: "D, late with a leader killed, beyond the outage, s", nodes: 3, is_of: |work| matches!(work, Work::Expiry { kill_leader: true, .. }), figure: "late_beyond_outage_us", unit: 1e6 }, wanted: Wanted::AtMost(0.7) },
    Goal { of: Pick { words: "D, late with a leader killed, in all, most, s", nodes: 3, is_of: |work| matches!(work, Work::Expiry { kill_leader: true, .. }), figure: "late_max_us", unit: 1e6 }, wanted: Wanted::NoGoal },
    Goal { of: Pick { words: "E, 10,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 10_000, .. }), figure: "last_s", unit: 1.0 }, wanted: Wanted::AtMost(0.2) },
    Goal { of: Pick { words: "E, 100,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 100_000, .. }), figure: "last_s", unit: 1.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "F, 100,000 leases, create, s", nodes: 1, is_of: |work| many(work, 100_000), figure: "create_s", unit: 1.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "F, 100,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 100_000), figure: "resident_mib", unit: 1.0 }, wanted: Wanted::AtMost(60.0) },
    Goal { of: Pick { words: "F, 1,000,000 leases, create, s", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "create_s", unit: 1.0 }, wanted: Wanted::AtMost(25.0) },
    Goal { of: Pick { words: "F, 1,000,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "resident_mib", unit: 1.0 }, wanted: Wanted::AtMost(600.0) },
    Goal { of: Pick { words: "F, 1,000,000 leases, a cycle against an empty store", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "cycle_ratio", unit: 1.0 }, wanted: Wanted::AtMost(1.2) },
    Goal { of: Pick { words: "G, 64 clients, server s per 100,000 cycles", nodes: 1, is_of: |work| own(work, 64), figure: "server_cpu_s_per_100k", unit: 1.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "G, 64 clients over 4 connections, the same", nodes: 1, is_of: |work| shared(work, 64), figure: "server_cpu_s_per_100k", unit: 1.0 }, wanted: Wanted::AtMost(2.0) },
    Goal { of: Pick { words: "H, 64 clients, bytes per operation", nodes: 1, is_of: |work| own(work, 64), figure: "disk_bytes_per_operation", unit: 1.0 }, wanted: Wanted::AtMost(300.0) },
    Goal { of: Pick { words: "I, restart with 1,000,000 leases, s", nodes: 1, is_of: |work| work.letter() == 'I', figure: "restart_s", unit: 1.0 }, wanted: Wanted::AtMost(3.0) },
    Goal { of: Pick { words: "J, to the last of 1,000 watchers, p99, ms", nodes: 1, is_of: |work| work.letter() == 'J', figure: "last_p99_us", unit: 1000.0 }, wanted: Wanted::AtMost(20.0) },
];

/// The table.
pub(super) fn table(text: &mut String, cells: &[Cell<'_>], peers: &[Peer], planned: usize) {
    text.push_str(
        "## Goals\n\nOf Leasehold, beside what each peer did in the same run. A goal was set for two cores of another machine, with a disk that \
         syncs in 0.09 ms. It is met or missed by the median; `range crosses` says that single repeats lie on the other side of it.\n\n",
    );
    let others: Vec<Peer> = peers.iter().copied().filter(|peer| *peer != Peer::Leasehold).collect();
    let heads: Vec<&str> = others.iter().map(|peer| peer.name()).collect();
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "| nodes | | goal | Leasehold | | {} |\n|---:|---|---:|---:|---|{}",
        heads.join(" | "),
        "---:|".repeat(others.len())
    );
    for Goal { of, wanted } in GOALS {
        let ours = of.figure(cells, Peer::Leasehold);
        let shown = |peer: Peer| match of.figure(cells, peer) {
            Some(median) => format!("{}{}", alone(median, planned), of.mark(cells, peer)),
            None => of.gap(cells, peer).to_owned(),
        };
        let theirs: Vec<String> = others.iter().map(|peer| shown(*peer)).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            of.nodes,
            of.words,
            wanted.words(),
            shown(Peer::Leasehold),
            wanted.verdict(ours),
            theirs.join(" | ")
        );
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::medians::cells;
    use crate::contest::results::Line;
    use crate::workloads::Connections;

    fn line(peer: Peer, clients: usize, per_second: f64) -> Line {
        let work = Work::Cycles { clients, connections: Connections::Own };
        Line::made_up(peer, 1, 0, work, &[("per_second", per_second)])
    }

    #[test]
    fn a_goal_is_met_missed_or_not_measured_and_peers_stand_beside_it() {
        let lines = [
            line(Peer::Leasehold, 64, 70_000.0),
            line(Peer::Redis, 64, 30_000.0),
            line(Peer::Leasehold, 256, 99_999.0),
        ];
        let mut text = String::new();
        table(&mut text, &cells(&lines), &[Peer::Leasehold, Peer::Redis], 1);
        assert!(
            text.contains("| 1 | A, 64 clients, cycles/s | at least 70,000 | 70,000 | met | 30,000 |"),
            "{text}"
        );
        assert!(
            text.contains("| 1 | A, 256 clients, cycles/s | at least 100,000 | 99,999 | missed | - |"),
            "{text}"
        );
        assert!(
            text.contains(
                "| 1 | I, restart with 1,000,000 leases, s | at most 3.00 | - | not measured | - |"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_goal_within_the_range_of_its_repeats_says_so() {
        let of = |values: &[f64]| Wanted::AtLeast(10.0).verdict(Median::of(values.to_vec()));
        assert_eq!(of(&[9.0, 11.0, 12.0]), "met (range crosses)");
        assert_eq!(of(&[8.0, 9.0, 10.0]), "missed (range crosses)");
        assert_eq!(of(&[10.0, 11.0, 12.0]), "met");
        assert_eq!(of(&[7.0, 8.0, 9.0]), "missed");
        assert_eq!(of(&[]), "not measured");
    }
}
