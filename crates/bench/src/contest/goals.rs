//! What we want to reach, beside what was reached: one row for each goal, with every peer of the same run.
//!
//! Promises: a goal that was missed says so, and one without a figure says that it was not measured.

use std::fmt::Write as _;

use super::medians::Cell;
use super::report::number;
use crate::peers::Peer;
use crate::workloads::{Connections, Work};

/// A figure and how good it has to be.
struct Goal {
    words: &'static str,
    nodes: usize,
    is_of: fn(Work) -> bool,
    figure: &'static str,
    /// What the figure is divided by, so that the unit is that of the words.
    unit: f64,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {}", number(bound)),
            Self::AtMost(bound) => format!("at most {}", number(bound)),
        }
    }
}

fn own(work: Work, count: usize) -> bool {
    matches!(work, Work::Cycles { clients, connections: Connections::Own } if clients == count)
}

fn shared(work: Work, count: usize) -> bool {
    matches!(work, Work::Cycles { clients, connections: Connections::Shared } if clients == count)
}

fn many(work: Work, count: usize) -> bool {
    matches!(work, Work::Many { leases, session_each: false } if leases == count)
}

/// A ttl of 5 s ends 0.3 % of it late by the drift factor and its rounding, and some milliseconds more.
const LATE_P50_MS: f64 = 5_000.0 * 0.003 + 5.0;
const LATE_MOST_MS: f64 = 5_000.0 * 0.003 + 25.0;

#[rustfmt::skip]
const GOALS: &[Goal] = &[
    Goal { words: "A, 64 clients, cycles/s", nodes: 1, is_of: |work| own(work, 64), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(70_000.0) },
    Goal { words: "A, 64 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| shared(work, 64), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(70_000.0) },
    Goal { words: "A, 256 clients, cycles/s", nodes: 1, is_of: |work| own(work, 256), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(100_000.0) },
    Goal { words: "A, 256 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| shared(work, 256), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(100_000.0) },
    Goal { words: "A, 1 client, p50 of a cycle, ms", nodes: 1, is_of: |work| own(work, 1), figure: "p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.35) },
    Goal { words: "A, 64 clients, cycles/s", nodes: 3, is_of: |work| own(work, 64), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(22_000.0) },
    Goal { words: "A, 256 clients, cycles/s", nodes: 3, is_of: |work| own(work, 256), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(32_000.0) },
    Goal { words: "A, 256 clients over 4 connections, cycles/s", nodes: 3, is_of: |work| shared(work, 256), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(32_000.0) },
    Goal { words: "A, 1 client, p50 of a cycle, ms", nodes: 3, is_of: |work| own(work, 1), figure: "p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.8) },
    Goal { words: "B, 1000 sessions, renewals/s", nodes: 1, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(600_000.0) },
    Goal { words: "B, 1000 sessions, renewals/s", nodes: 3, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(400_000.0) },
    Goal { words: "C, handover p50, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.3) },
    Goal { words: "C, handover p99, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "C, handover p50, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.7) },
    Goal { words: "C, handover p99, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "D, late beyond a ttl of 5 s, p50, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_p50_us", unit: 1000.0, wanted: Wanted::AtMost(LATE_P50_MS) },
    Goal { words: "D, late beyond a ttl of 5 s, most, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_max_us", unit: 1000.0, wanted: Wanted::AtMost(LATE_MOST_MS) },
    Goal { words: "D, late with a leader killed, beyond the outage, s", nodes: 3, is_of: |work| matches!(work, Work::Expiry { kill_leader: true, .. }), figure: "late_beyond_outage_us", unit: 1e6, wanted: Wanted::AtMost(0.7) },
    Goal { words: "E, 10,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 10_000, .. }), figure: "last_s", unit: 1.0, wanted: Wanted::AtMost(0.2) },
    Goal { words: "E, 100,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 100_000, .. }), figure: "last_s", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "F, 100,000 leases, create, s", nodes: 1, is_of: |work| many(work, 100_000), figure: "create_s", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "F, 100,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 100_000), figure: "resident_mib", unit: 1.0, wanted: Wanted::AtMost(60.0) },
    Goal { words: "F, 1,000,000 leases, create, s", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "create_s", unit: 1.0, wanted: Wanted::AtMost(25.0) },
    Goal { words: "F, 1,000,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "resident_mib", unit: 1.0, wanted: Wanted::AtMost(600.0) },
    Goal { words: "F, 1,000,000 leases, a cycle against an empty store", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "cycle_ratio", unit: 1.0, wanted: Wanted::AtMost(1.2) },
    Goal { words: "G, 64 clients, server s per 100,000 cycles", nodes: 1, is_of: |work| own(work, 64), figure: "server_cpu_s_per_100k", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "G, 64 clients over 4 connections, the same", nodes: 1, is_of: |work| shared(work, 64), figure: "server_cpu_s_per_100k", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Goal { words: "H, 64 clients, bytes per operation", nodes: 1, is_of: |work| own(work, 64), figure: "disk_bytes_per_operation", unit: 1.0, wanted: Wanted::AtMost(300.0) },
    Goal { words: "I, restart with 1,000,000 leases, s", nodes: 1, is_of: |work| work.letter() == 'I', figure: "restart_s", unit: 1.0, wanted: Wanted::AtMost(3.0) },
    Goal { words: "J, to the last of 1,000 watchers, p99, ms", nodes: 1, is_of: |work| work.letter() == 'J', figure: "last_p99_us", unit: 1000.0, wanted: Wanted::AtMost(20.0) },
];

/// The table.
pub(super) fn table(text: &mut String, cells: &[Cell<'_>], peers: &[Peer]) {
    text.push_str("## Goals\n\nOf Leasehold, beside what each peer did in the same run. A goal was set for two cores of another machine, with a disk that syncs in 0.09 ms.\n\n");
    let others: Vec<Peer> = peers.iter().copied().filter(|peer| *peer != Peer::Leasehold).collect();
    let heads: Vec<&str> = others.iter().map(|peer| peer.name()).collect();
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "| nodes | | goal | Leasehold | | {} |\n|---:|---|---:|---:|---|{}",
        heads.join(" | "),
        "---:|".repeat(others.len())
    );
    for goal in GOALS {
        let figure = |peer: Peer| {
            let is_it =
                |cell: &&Cell<'_>| cell.peer == peer && cell.nodes == goal.nodes && (goal.is_of)(cell.work);
            let cell = cells.iter().find(is_it)?;
            cell.figure(goal.figure).map(|median| median.middle / goal.unit)
        };
        let ours = figure(Peer::Leasehold);
        let verdict = match ours {
            Some(value) if goal.wanted.is_met(value) => "met",
            Some(_) => "missed",
            None => "not measured",
        };
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let theirs: Vec<String> = others.iter().map(|peer| shown(figure(*peer))).collect();
        let (ours, wanted) = (shown(ours), goal.wanted.words());
        let _ = writeln!(
            text,
            "| {} | {} | {wanted} | {ours} | {verdict} | {} |",
            goal.nodes,
            goal.words,
            theirs.join(" | ")
        );
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::medians::cells;
    use crate::contest::results::{Key, Line, Outcome};
    use crate::workloads::Figures;

    fn line(peer: Peer, clients: usize, per_second: f64) -> Line {
        let work = Work::Cycles { clients, connections: Connections::Own };
        let outcome = Outcome::Measured(Figures::default().with("per_second", per_second));
        let key = Key { peer, nodes: 1, repeat: 0, work };
        Line { key, version: String::new(), settings: String::new(), outcome }
    }

    #[test]
    fn a_goal_is_met_missed_or_not_measured_and_peers_stand_beside_it() {
        let lines = [
            line(Peer::Leasehold, 64, 70_000.0),
            line(Peer::Redis, 64, 30_000.0),
            line(Peer::Leasehold, 256, 99_999.0),
        ];
        let mut text = String::new();
        table(&mut text, &cells(&lines), &[Peer::Leasehold, Peer::Redis]);
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
}
