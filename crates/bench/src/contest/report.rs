//! The report: one table, plots, and what it was measured on. Every single figure is in the raw results beside it.
//!
//! Promises: nothing in it is written by hand. A system that failed or was cut says why, and nothing is left out because it looks bad.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::machine::Machine;
use super::medians::{Cell, cells};
use super::plan::Plan;
use super::plot::{self, Plot};
use super::results::Line;
use super::{legend, summary};
use crate::peers::Peer;

/// What a report says beside results.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The machine that it was measured on.
    pub machine: &'a Machine,
    /// What was to be measured.
    pub plan: &'a Plan,
    /// Systems that could not be had, and why.
    pub not_at_hand: &'a [(String, String)],
}

impl About<'_> {
    /// How often each was to be measured; results of a run with more count as such.
    pub(super) fn planned(&self, cells: &[Cell<'_>]) -> usize {
        let found = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
        self.plan.repeats.max(found)
    }
}

/// Writes `benchmarks.md`, its plots and the raw results into a directory.
///
/// # Errors
/// When a file cannot be written.
pub fn write(place: &Path, about: &About<'_>, lines: &[Line]) -> Result<()> {
    std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
    let put = |name: &str, text: &str| {
        let path = place.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    let cells = cells(lines);
    let plots = plot::all(&cells);
    for plot in &plots {
        put(&plot.file, &plot.svg)?;
    }
    put("benchmarks.json", &(serde_json::to_string_pretty(lines)? + "\n"))?;
    put("benchmarks.md", &markdown(about, &cells, &plots))
}

/// The whole text.
pub fn markdown(about: &About<'_>, cells: &[Cell<'_>], plots: &[Plot]) -> String {
    let (peers, planned) = (peers_of(cells), about.planned(cells));
    let mut text = String::from("# Leasehold beside its peers\n\n");
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "Written by `cargo xtask bench`{}. [How it is measured](internals/benchmarks.md), [every single result](benchmarks.json).\n",
        taken(cells)
    );
    let _ = writeln!(
        text,
        "## Figures\n\nMedians of {planned} repeats on one machine of {} cores, the best of a row in bold. Leasehold is `ahead of` or `behind` \
         the best peer only if the ranges of their repeats do not overlap, else `not told apart`. The ratio is how many times better the \
         median of Leasehold is; below 1 it is worse. A cycle is an acquire and its release; clients have a connection each unless \
         the row says otherwise. `late` counts from the end of the ttl until a waiting client has the lease. Goals were set for two cores of another machine, with \
         a disk that syncs in 0.09 ms; the median meets or misses them (`range crosses`: a single repeat does not agree). `-` is [not measured](#not-measured), `failed` has a reason below the table.\n",
        about.machine.cores()
    );
    summary::table(&mut text, cells, &peers, planned);
    failures(&mut text, cells, planned);
    if !plots.is_empty() {
        text.push_str("## Plot\n\nBoth axes are logarithmic. A thin line at a point reaches from the least to the greatest repeat.\n\n");
        for plot in plots {
            let _ = writeln!(text, "![{}]({})\n", plot.title, plot.file);
        }
    }
    legend::setting(&mut text, about, cells);
    legend::gaps(&mut text, about, cells);
    text.trim_end().to_owned() + "\n"
}

/// Repeats without figures, and why.
fn failures(text: &mut String, cells: &[Cell<'_>], planned: usize) {
    let mut any = false;
    for cell in cells {
        let failed = cell.failures();
        if failed.is_empty() {
            continue;
        }
        any = true;
        let mut reasons: Vec<String> = failed.iter().map(|why| one_line(why)).collect();
        reasons.dedup();
        let _ = writeln!(
            text,
            "- {}: {}, {} node{}, {}: {} of {planned} repeats failed: {}",
            cell.work.letter(),
            cell.peer.name(),
            cell.nodes,
            if cell.nodes == 1 { "" } else { "s" },
            cell.work.size(),
            failed.len(),
            reasons.join(". And: ")
        );
    }
    if any {
        text.push('\n');
    }
}

/// When and in which commits, as far as results say so.
fn taken(cells: &[Cell<'_>]) -> String {
    let lines = || cells.iter().flat_map(|cell| cell.lines.iter().copied());
    let mut days: Vec<&str> = lines().filter_map(|line| line.day.as_deref()).collect();
    let mut commits: Vec<&str> = lines().filter_map(|line| line.commit.as_deref()).collect();
    for some in [&mut days, &mut commits] {
        some.sort_unstable();
        some.dedup();
    }
    let days = match days[..] {
        [] => String::new(),
        [day] => format!(", measured on {day} (UTC)"),
        [first, .., last] => format!(", measured from {first} to {last} (UTC)"),
    };
    let commits = if commits.is_empty() { String::new() } else { format!(" at `{}`", commits.join("`, `")) };
    days + &commits
}

pub(super) fn peers_of<'a>(cells: impl IntoIterator<Item = &'a Cell<'a>>) -> Vec<Peer> {
    let mut peers: Vec<Peer> = cells.into_iter().map(|cell| cell.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    peers
}

pub(super) fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
        .replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::results::Outcome;
    use crate::workloads::{Connections, Work};

    #[test]
    fn the_figures_come_first_and_every_gap_has_a_reason() {
        let mut lines = Vec::new();
        for (peer, nodes) in [(Peer::Leasehold, 1), (Peer::Leasehold, 3), (Peer::Redis, 1)] {
            for clients in [1, 64] {
                let work = Work::Cycles { clients, connections: Connections::Own };
                let mut line = Line::made_up(peer, nodes, 0, work, &[("per_second", 5.0), ("p50_us", 7.0)]);
                (line.day, line.commit) = (Some("2026-11-18".into()), Some("abc1234".into()));
                lines.push(line);
            }
        }
        let machine = Machine::look(&std::env::temp_dir()).unwrap();
        let plan = Plan { repeats: 3, ..Plan::default() };
        let not_at_hand = ["consul", "etcd36"].map(|name| (name.to_owned(), "no program".to_owned()));
        let about = About { machine: &machine, plan: &plan, not_at_hand: &not_at_hand };
        let cells = cells(&lines);
        let text = markdown(&about, &cells, &plot::all(&cells));
        let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!((heads.first(), heads.last()), (Some(&"Figures"), Some(&"Not measured")), "{heads:?}");
        for words in [
            "measured on 2026-11-18 (UTC) at `abc1234`",
            "| Redis | A, three nodes | one node only",
            "| ZooKeeper | everything | not asked for in this run |",
            "| consul | everything | not at hand: no program |",
            "| 1 | A, 64 clients, cycles/s | **5.00 (1 of 3)** | 5.00 (1 of 3) | not told apart from Redis | 1.00 | at least 70,000: missed |",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("| Consul |") && !text.contains("| etcd 3.6 |"), "{text}");
    }

    #[test]
    fn failed_repeats_are_counted_with_their_reasons() {
        let work = Work::MassExpiry { leases: 10_000, ttl_ms: 5_000 };
        let line = |repeat| Line::made_up(Peer::Etcd, 1, repeat, work, &[("last_s", 9.71)]);
        let failed = |repeat, why: &str| Line { outcome: Outcome::Failed(why.into()), ..line(repeat) };
        let mut text = String::new();
        let lines = [failed(0, "lost one"), failed(1, "lost two"), line(2)];
        failures(&mut text, &cells(&lines), 3);
        let why = "- E: etcd, 1 node, 10,000 leases: 2 of 3 repeats failed: lost one. And: lost two\n";
        assert!(text.contains(why), "{text}");
    }
}
