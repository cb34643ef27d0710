//! The tables with every figure: one section for each workload, a column for each system.
//!
//! Promises: a system that failed or was cut says why in its place, with how many repeats did.

use std::fmt::Write as _;

use super::medians::Cell;
use super::report::{one_line, peers_of, title};
use super::shown::{mark, with_range};
use crate::peers::Peer;
use crate::workloads::Work;

/// Figures of what something costs, in a table of their own behind those of how fast it is.
const COSTS: [&str; 3] = ["server_cpu_s_per_100k", "disk_bytes_per_operation", "load_cpu_s"];

/// Everything of one workload.
pub(super) fn section(text: &mut String, letter: char, cells: &[Cell<'_>], planned: usize) {
    // Writing into a string does not fail.
    let _ = writeln!(text, "## {letter}: {}\n", title(letter));
    let cells: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.work.letter() == letter).collect();
    table(text, &cells, planned, |figure| !COSTS.contains(&figure));
    table(text, &cells, planned, |figure| COSTS.contains(&figure));
    failures(text, &cells, planned);
}

fn table(text: &mut String, cells: &[&Cell<'_>], planned: usize, is_here: fn(&str) -> bool) {
    let peers = peers_of(cells.iter().copied());
    let mut rows: Vec<(usize, Work)> = Vec::new();
    for cell in cells {
        if !rows.contains(&(cell.nodes, cell.work)) {
            rows.push((cell.nodes, cell.work));
        }
    }
    let mut body = String::new();
    for (nodes, work) in rows {
        let of = |peer: Peer| {
            cells.iter().find(|cell| cell.peer == peer && cell.nodes == nodes && cell.work == work)
        };
        let here = || cells.iter().filter(|cell| cell.nodes == nodes && cell.work == work);
        let all_failed = here().all(|cell| cell.failures().len() == cell.lines.len());
        for (figure, unit) in work.shown().iter().filter(|(figure, _)| is_here(figure)) {
            let value = |peer: &Peer| match of(*peer).map(|cell| (cell, cell.figure(figure))) {
                Some((_, Some(median))) => {
                    format!("{}{}", with_range(figure, median, planned), mark(*peer, work, figure))
                }
                Some((cell, None)) if !cell.failures().is_empty() => "failed".to_owned(),
                _ => "-".to_owned(),
            };
            let values: Vec<String> = peers.iter().map(value).collect();
            // A figure that a workload has only sometimes is no failure of those without it.
            let measured = |peer: &Peer| of(*peer).is_some_and(|cell| cell.figure(figure).is_some());
            if peers.iter().any(measured) || all_failed {
                let _ = writeln!(body, "| {nodes} | {} | {unit} | {} |", work.size(), values.join(" | "));
            }
        }
    }
    if !body.is_empty() {
        let heads: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        let _ = writeln!(
            text,
            "| nodes | size | figure | {} |\n|---:|---|---|{}\n{body}",
            heads.join(" | "),
            "---:|".repeat(peers.len())
        );
    }
}

fn failures(text: &mut String, cells: &[&Cell<'_>], planned: usize) {
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
            "- {}, {} node{}, {}: {} of {planned} repeats failed: {}",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::medians::cells;
    use crate::contest::results::{Line, Outcome};

    #[test]
    fn failed_repeats_are_counted_and_the_others_say_of_how_many_they_are() {
        let work = Work::MassExpiry { leases: 10_000, ttl_ms: 5_000 };
        let line = |repeat| Line::made_up(Peer::Etcd, 1, repeat, work, &[("last_s", 9.71)]);
        let failed = |repeat, why: &str| Line { outcome: Outcome::Failed(why.into()), ..line(repeat) };
        let mut text = String::new();
        let lines = [failed(0, "lost one"), failed(1, "lost two"), line(2)];
        section(&mut text, 'E', &cells(&lines), 3);
        assert!(text.contains("| 1 | 10,000 leases | last s | 9.71 (1 of 3) |"), "{text}");
        let why = "- etcd, 1 node, 10,000 leases: 2 of 3 repeats failed: lost one. And: lost two\n";
        assert!(text.contains(why), "{text}");
    }
}
