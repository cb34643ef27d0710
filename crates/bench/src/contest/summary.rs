//! The table: figures of every system, whether they can be told apart, and what we want to reach.
//!
//! Promises: rows are chosen here, before anything is measured, and every word behind them is computed. A goal that was missed says so, and one
//! without a figure says that it was not measured.

use std::fmt::Write as _;

use super::medians::{Cell, Median};
use super::report::peers_of;
use super::shown::{LESS_DURABLE, alone, mark, number};
use super::verdict::{Better, Verdict};
use crate::peers::Peer;
use crate::workloads::Connections::{self, Own, Shared};
use crate::workloads::Work;

/// One figure of one workload, and how good it has to be.
struct Row {
    /// What it is, with its unit.
    words: &'static str,
    /// With how many nodes.
    nodes: usize,
    /// Of which workload.
    is_of: fn(Work) -> bool,
    /// By its name in the results.
    figure: &'static str,
    /// What the figure is divided by, so that the unit is that of the words.
    unit: f64,
    wanted: Wanted,
}

impl Row {
    fn cell<'a, 'b>(&self, cells: &'a [Cell<'b>], peer: Peer) -> Option<&'a Cell<'b>> {
        cells.iter().find(|cell| cell.peer == peer && cell.nodes == self.nodes && (self.is_of)(cell.work))
    }

    /// The figure of a system, if it has one.
    fn figure(&self, cells: &[Cell<'_>], peer: Peer) -> Option<Median> {
        Some(self.cell(cells, peer)?.figure(self.figure)?.divided(self.unit))
    }

    /// The sign that belongs behind it.
    fn mark(&self, cells: &[Cell<'_>], peer: Peer) -> &'static str {
        self.cell(cells, peer).map_or("", |cell| mark(peer, cell.work, self.figure))
    }

    /// What stands in its place if there is none.
    fn gap(&self, cells: &[Cell<'_>], peer: Peer) -> &'static str {
        let failed = self.cell(cells, peer).is_some_and(|cell| !cell.failures().is_empty());
        if failed { "failed" } else { "-" }
    }
}

/// Cycles of so many clients.
fn cycles(work: Work, clients: usize, connections: Connections) -> bool {
    work == Work::Cycles { clients, connections }
}

/// So many leases, of few sessions.
fn many(work: Work, leases: usize) -> bool {
    work == Work::Many { leases, session_each: false }
}

#[derive(Clone, Copy)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// Nothing was set beforehand; which way it is good.
    NoGoal(Better),
}

impl Wanted {
    fn better(self) -> Better {
        match self {
            Self::AtLeast(_) => Better::Higher,
            Self::AtMost(_) => Better::Lower,
            Self::NoGoal(better) => better,
        }
    }

    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
            Self::NoGoal(_) => true,
        }
    }

    /// The goal, and by the median whether it was met. Where single repeats would be judged otherwise, that is said.
    fn verdict(self, reached: Option<Median>) -> String {
        let goal = match self {
            Self::AtLeast(bound) => format!("at least {}", number(bound)),
            Self::AtMost(bound) => format!("at most {}", number(bound)),
            Self::NoGoal(_) => return "-".to_owned(),
        };
        let Some(Median { middle, least, most, .. }) = reached else {
            return format!("{goal}: not measured");
        };
        let word = if self.is_met(middle) { "met" } else { "missed" };
        let crosses = if self.is_met(least) == self.is_met(most) { "" } else { " (range crosses)" };
        format!("{goal}: {word}{crosses}")
    }
}

/// A ttl of 5 s ends 0.3 % of it late by the drift factor and its rounding, and some milliseconds more.
const LATE_P50_MS: f64 = 5_000.0 * 0.003 + 5.0;
const LATE_MOST_MS: f64 = 5_000.0 * 0.003 + 25.0;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { words: "A, 64 clients, cycles/s", nodes: 1, is_of: |work| cycles(work, 64, Own), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(70_000.0) },
    Row { words: "A, 64 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| cycles(work, 64, Shared), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(70_000.0) },
    Row { words: "A, 256 clients, cycles/s", nodes: 1, is_of: |work| cycles(work, 256, Own), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(100_000.0) },
    Row { words: "A, 256 clients over 4 connections, cycles/s", nodes: 1, is_of: |work| cycles(work, 256, Shared), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(100_000.0) },
    Row { words: "A, 1 client, p50 of a cycle, ms", nodes: 1, is_of: |work| cycles(work, 1, Own), figure: "p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.35) },
    Row { words: "A, 64 clients, cycles/s", nodes: 3, is_of: |work| cycles(work, 64, Own), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(22_000.0) },
    Row { words: "A, 256 clients, cycles/s", nodes: 3, is_of: |work| cycles(work, 256, Own), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(32_000.0) },
    Row { words: "A, 64 clients over 4 connections, cycles/s", nodes: 3, is_of: |work| cycles(work, 64, Shared), figure: "per_second", unit: 1.0, wanted: Wanted::NoGoal(Better::Higher) },
    Row { words: "A, 256 clients over 4 connections, cycles/s", nodes: 3, is_of: |work| cycles(work, 256, Shared), figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(32_000.0) },
    Row { words: "A, 1 client, p50 of a cycle, ms", nodes: 3, is_of: |work| cycles(work, 1, Own), figure: "p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.8) },
    Row { words: "B, 1000 sessions, renewals/s", nodes: 1, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(600_000.0) },
    Row { words: "B, 1000 sessions, renewals/s", nodes: 3, is_of: |work| work == Work::Renewals { sessions: 1000 }, figure: "per_second", unit: 1.0, wanted: Wanted::AtLeast(400_000.0) },
    Row { words: "C, handover p50, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.3) },
    Row { words: "C, handover p99, ms", nodes: 1, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "C, handover p50, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p50_us", unit: 1000.0, wanted: Wanted::AtMost(0.7) },
    Row { words: "C, handover p99, ms", nodes: 3, is_of: |work| work.letter() == 'C', figure: "gap_p99_us", unit: 1000.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "D, late beyond a ttl of 5 s, p50, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_p50_us", unit: 1000.0, wanted: Wanted::AtMost(LATE_P50_MS) },
    Row { words: "D, late beyond a ttl of 5 s, most, ms", nodes: 1, is_of: |work| work.letter() == 'D', figure: "late_max_us", unit: 1000.0, wanted: Wanted::AtMost(LATE_MOST_MS) },
    Row { words: "D, late with a leader killed, beyond the outage, s", nodes: 3, is_of: |work| matches!(work, Work::Expiry { kill_leader: true, .. }), figure: "late_beyond_outage_us", unit: 1e6, wanted: Wanted::AtMost(0.7) },
    Row { words: "D, late with a leader killed, in all, most, s", nodes: 3, is_of: |work| matches!(work, Work::Expiry { kill_leader: true, .. }), figure: "late_max_us", unit: 1e6, wanted: Wanted::NoGoal(Better::Lower) },
    Row { words: "E, 10,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 10_000, .. }), figure: "last_s", unit: 1.0, wanted: Wanted::AtMost(0.2) },
    Row { words: "E, 100,000 at once, last gone, s", nodes: 1, is_of: |work| matches!(work, Work::MassExpiry { leases: 100_000, .. }), figure: "last_s", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "F, 100,000 leases, create, s", nodes: 1, is_of: |work| many(work, 100_000), figure: "create_s", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "F, 100,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 100_000), figure: "resident_mib", unit: 1.0, wanted: Wanted::AtMost(60.0) },
    Row { words: "F, 1,000,000 leases, create, s", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "create_s", unit: 1.0, wanted: Wanted::AtMost(25.0) },
    Row { words: "F, 1,000,000 leases, resident MiB", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "resident_mib", unit: 1.0, wanted: Wanted::AtMost(600.0) },
    Row { words: "F, 1,000,000 leases, a cycle against an empty store", nodes: 1, is_of: |work| many(work, 1_000_000), figure: "cycle_ratio", unit: 1.0, wanted: Wanted::AtMost(1.2) },
    Row { words: "G, 64 clients, server s per 100,000 cycles", nodes: 1, is_of: |work| cycles(work, 64, Own), figure: "server_cpu_s_per_100k", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "G, 64 clients over 4 connections, the same", nodes: 1, is_of: |work| cycles(work, 64, Shared), figure: "server_cpu_s_per_100k", unit: 1.0, wanted: Wanted::AtMost(2.0) },
    Row { words: "H, 64 clients, bytes per operation", nodes: 1, is_of: |work| cycles(work, 64, Own), figure: "disk_bytes_per_operation", unit: 1.0, wanted: Wanted::AtMost(300.0) },
    Row { words: "I, restart with 1,000,000 leases, s", nodes: 1, is_of: |work| work.letter() == 'I', figure: "restart_s", unit: 1.0, wanted: Wanted::AtMost(3.0) },
    Row { words: "J, to the last of 1,000 watchers, p99, ms", nodes: 1, is_of: |work| work.letter() == 'J', figure: "last_p99_us", unit: 1000.0, wanted: Wanted::AtMost(20.0) },
];

/// How often which verdict was given.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    ahead: usize,
    behind: usize,
    not_told_apart: usize,
    without: usize,
}

/// The table, and what it comes to in one sentence.
pub(super) fn table(text: &mut String, cells: &[Cell<'_>], peers: &[Peer], planned: usize) {
    let heads: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "| nodes | | {} | Leasehold is | ratio | goal |\n|---:|---|{}---|---:|---|",
        heads.join(" | "),
        "---:|".repeat(peers.len())
    );
    let mut counts = Counts::default();
    for line in ROWS {
        row(text, line, cells, peers, planned, &mut counts);
    }
    let Counts { ahead, behind, not_told_apart, without } = counts;
    let _ = writeln!(
        text,
        "\nOf the {} rows with a figure of Leasehold and of a peer, Leasehold is ahead of the best peer in {ahead}, behind it in {behind}, and not told apart \
         from it in {not_told_apart}. {}\n",
        ahead + behind + not_told_apart,
        match without {
            0 => "No row lacks one of the two.".to_owned(),
            1 => "1 row lacks one of the two.".to_owned(),
            some => format!("{some} rows lack one of the two."),
        }
    );
    if let Some(note) = footnote(cells) {
        let _ = writeln!(text, "{note}\n");
    }
}

fn row(text: &mut String, of: &Row, cells: &[Cell<'_>], peers: &[Peer], planned: usize, counts: &mut Counts) {
    let better = of.wanted.better();
    let measured: Vec<(Peer, Median)> =
        peers.iter().filter_map(|peer| Some((*peer, of.figure(cells, *peer)?))).collect();
    let best_of = |some: &mut dyn Iterator<Item = (Peer, Median)>| {
        some.reduce(|best, next| if better.is_better(next.1.middle, best.1.middle) { next } else { best })
    };
    let best = best_of(&mut measured.iter().copied()).filter(|_| measured.len() > 1);
    let shown: Vec<String> = peers
        .iter()
        .map(|peer| match measured.iter().find(|(other, _)| other == peer) {
            Some((_, median)) => {
                let value = format!("{}{}", alone(*median, planned), of.mark(cells, *peer));
                if best.is_some_and(|(first, _)| first == *peer) { format!("**{value}**") } else { value }
            }
            None => of.gap(cells, *peer).to_owned(),
        })
        .collect();
    let ours = measured.iter().find(|(peer, _)| *peer == Peer::Leasehold);
    let rival = best_of(&mut measured.iter().copied().filter(|(peer, _)| *peer != Peer::Leasehold));
    let (verdict, ratio) = match (ours, rival) {
        (Some((_, ours)), Some((peer, theirs))) => {
            let (word, count) = match better.verdict(*ours, theirs) {
                Verdict::Ahead => ("ahead of", &mut counts.ahead),
                Verdict::Behind => ("behind", &mut counts.behind),
                Verdict::NotToldApart => ("not told apart from", &mut counts.not_told_apart),
            };
            *count += 1;
            let ratio = better.ratio(*ours, theirs).map_or_else(|| "-".to_owned(), number);
            (format!("{word} {}{}", peer.name(), of.mark(cells, peer)), ratio)
        }
        (ours, _) => {
            counts.without += 1;
            let word = if ours.is_some() { "without a peer" } else { "not measured" };
            (word.to_owned(), "-".to_owned())
        }
    };
    let goal = of.wanted.verdict(ours.map(|(_, median)| *median));
    let _ = writeln!(
        text,
        "| {} | {} | {} | {verdict} | {ratio} | {goal} |",
        of.nodes,
        of.words,
        shown.join(" | ")
    );
}

/// What the sign means, if it stands anywhere.
fn footnote(cells: &[Cell<'_>]) -> Option<String> {
    let is_marked = |cell: &&Cell<'_>| {
        let mut names = cell.names().into_iter();
        names.any(|figure| !mark(cell.peer, cell.work, figure).is_empty())
    };
    let marked = peers_of(cells.iter().filter(is_marked));
    let names: Vec<&str> = marked.iter().map(|peer| peer.name()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{LESS_DURABLE} A renewal of {} is answered when it is in the memory of the leader alone, one of Leasehold when it is on the disks of a quorum: \
             the first does less.",
            listed(&names)
        )
    })
}

/// Names as a sentence has them.
fn listed(names: &[&str]) -> String {
    match names {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::medians::cells;
    use crate::contest::results::Line;

    fn repeats(peer: Peer, work: Work, values: &[f64]) -> Vec<Line> {
        let line =
            |(repeat, value): (usize, &f64)| Line::made_up(peer, 1, repeat, work, &[("per_second", *value)]);
        values.iter().enumerate().map(line).collect()
    }

    fn summary(lines: &[Line]) -> String {
        let mut text = String::new();
        table(&mut text, &cells(lines), &[Peer::Leasehold, Peer::Etcd, Peer::Redis], 3);
        text
    }

    #[test]
    fn the_best_is_bold_and_the_verdict_is_against_the_best_peer_by_ranges() {
        let clients = |clients| Work::Cycles { clients, connections: Own };
        let text = summary(
            &[
                repeats(Peer::Leasehold, clients(64), &[40.0, 50.0, 60.0]),
                repeats(Peer::Etcd, clients(64), &[1.0, 2.0, 3.0]),
                repeats(Peer::Redis, clients(64), &[20.0, 25.0, 30.0]),
                repeats(Peer::Leasehold, clients(256), &[40.0, 50.0, 60.0]),
                repeats(Peer::Redis, clients(256), &[55.0, 70.0, 80.0]),
            ]
            .concat(),
        );
        let one = "| 1 | A, 64 clients, cycles/s | **50.0** | 2.00 | 25.0 | ahead of Redis | 2.00 | at least 70,000: missed |";
        let other = "| 1 | A, 256 clients, cycles/s | 50.0 | - | **70.0** | not told apart from Redis | 0.71 | at least 100,000: missed |";
        assert!(text.contains(one) && text.contains(other), "{text}");
        let sentence = "Of the 2 rows with a figure of Leasehold and of a peer, Leasehold is ahead of the best peer in 1, behind it in 0, and not told apart";
        assert!(text.contains("from it in 1. 30 rows lack one of the two."), "{text}");
        assert!(text.contains(sentence) && !text.contains(LESS_DURABLE), "{text}");
    }

    #[test]
    fn names_are_listed_as_a_sentence_has_them() {
        assert_eq!(listed(&["etcd"]), "etcd");
        assert_eq!(listed(&["etcd", "Consul"]), "etcd and Consul");
        assert_eq!(listed(&["etcd", "etcd 3.6", "Consul"]), "etcd, etcd 3.6 and Consul");
    }

    #[test]
    fn renewals_of_etcd_have_a_footnote() {
        let work = Work::Renewals { sessions: 1000 };
        let text = summary(
            &[repeats(Peer::Leasehold, work, &[10.0, 10.0, 11.0]), repeats(Peer::Etcd, work, &[20.0, 30.0])]
                .concat(),
        );
        let row = "| 10.0 | **25.0 (2 of 3)†** | - | behind etcd† | 0.40 | at least 600,000: missed |";
        assert!(text.contains(row) && text.contains("\n† A renewal of etcd is answered"), "{text}");
    }

    #[test]
    fn a_goal_within_the_range_of_its_repeats_says_so_and_one_without_a_figure_is_not_measured() {
        let of = |values: &[f64]| Wanted::AtLeast(10.0).verdict(Median::of(values.to_vec()));
        assert_eq!(of(&[9.0, 11.0, 12.0]), "at least 10.0: met (range crosses)");
        assert_eq!(of(&[8.0, 9.0, 10.0]), "at least 10.0: missed (range crosses)");
        assert_eq!(of(&[10.0, 11.0, 12.0]), "at least 10.0: met");
        assert_eq!(of(&[7.0, 8.0, 9.0]), "at least 10.0: missed");
        assert_eq!(of(&[]), "at least 10.0: not measured");
    }
}
