//! What a reader has to know beside the table: what it was measured on, and why something is missing.
//!
//! Promises: every gap in the table has a reason here.

use std::fmt::Write as _;

use super::medians::{self, Cell, Median};
use super::quiet;
use super::report::{About, one_line, peers_of};
use super::shown::number;
use crate::peers::Peer;
use crate::workloads::Work;

/// The machine and the systems.
pub(super) fn setting(text: &mut String, about: &About<'_>, cells: &[Cell<'_>]) {
    let machine = about.machine;
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "## What it was measured on\n\n{machine}. Clients and servers are processes of this one machine and speak over loopback. Three nodes share its \
         one disk and its {} cores: they compare systems, and do not predict what a cluster of three machines does.\n",
        machine.cores()
    );
    let lines = cells.iter().flat_map(|cell| cell.lines.iter().copied());
    if let Some(Median { middle, least, most, .. }) = medians::of_lines(lines, "disk_sync_before_us") {
        let _ = writeln!(
            text,
            "A write of 4 KiB and its sync took {} us before a measurement, between {} and {} (medians of some). Every measurement waited up to \
             {} s for the disk to be at rest.\n",
            number(middle),
            number(least),
            number(most),
            quiet::LONGEST.as_secs()
        );
    }
    text.push_str("| system | version | settings and recipe |\n|---|---|---|\n");
    for peer in peers_of(cells) {
        let lines = cells.iter().filter(|cell| cell.peer == peer).flat_map(|cell| &cell.lines);
        let (version, settings) = lines
            .filter(|line| !line.version.is_empty())
            .map(|line| (line.version.as_str(), line.settings.as_str()))
            .next()
            .unwrap_or(("did not start", ""));
        let _ = writeln!(text, "| {} | {version} | {settings} |", peer.name());
    }
    for (name, why) in about.not_at_hand {
        let _ = writeln!(text, "| {name} | not at hand | {} |", one_line(why));
    }
    text.push('\n');
}

/// What has no figure, and why.
pub(super) fn gaps(text: &mut String, about: &About<'_>, cells: &[Cell<'_>]) {
    let mut rows: Vec<(usize, Work)> = Vec::new();
    for cell in cells {
        if !rows.contains(&(cell.nodes, cell.work)) {
            rows.push((cell.nodes, cell.work));
        }
    }
    text.push_str("## Not measured\n\n| system | what | why |\n|---|---|---|\n");
    for peer in peers_of(cells) {
        let has = |nodes: usize, work: Work| {
            cells.iter().any(|cell| cell.peer == peer && cell.nodes == nodes && cell.work == work)
        };
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for (nodes, work) in rows.iter().copied().filter(|(nodes, work)| !has(*nodes, *work)) {
            let why = peer.why_not(work, nodes).unwrap_or("not part of this run");
            // A workload of which a part is measured names the rest by its size.
            let alike =
                rows.iter().filter(|(count, other)| *count == nodes && other.letter() == work.letter());
            let whole = alike.clone().all(|(nodes, work)| !has(*nodes, *work));
            let on = if nodes == 1 { "one node" } else { "three nodes" };
            let what = match work.letter() {
                letter if whole => format!("{letter}, {on}"),
                letter => format!("{letter}, {on}, {}", work.size()),
            };
            let at = reasons.iter().position(|(reason, _)| *reason == why).unwrap_or(reasons.len());
            if at == reasons.len() {
                reasons.push((why, Vec::new()));
            }
            if !reasons[at].1.contains(&what) {
                reasons[at].1.push(what);
            }
        }
        for (why, what) in reasons {
            let _ = writeln!(text, "| {} | {} | {why} |", peer.name(), what.join("; "));
        }
    }
    for name in absent(about, cells) {
        let _ = writeln!(text, "| {name} | everything | not asked for in this run |");
    }
    for (name, why) in about.not_at_hand {
        let _ = writeln!(text, "| {name} | everything | not at hand: {} |", one_line(why));
    }
    text.push('\n');
}

/// Systems of which there is nothing and of which nobody said why.
fn absent(about: &About<'_>, cells: &[Cell<'_>]) -> Vec<&'static str> {
    use clap::ValueEnum as _;
    let there = peers_of(cells);
    let named = |peer: &Peer| {
        let word = peer.to_possible_value();
        let is_it = |name: &str| word.as_ref().is_some_and(|word| word.matches(name, true));
        about.not_at_hand.iter().any(|(name, _)| is_it(name))
    };
    let known = Peer::value_variants().iter().filter(|peer| !there.contains(peer) && !named(peer));
    known.map(|peer| peer.name()).collect()
}
