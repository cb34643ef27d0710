//! The report: tables with a column for each system, plots, and what was run.
//!
//! Promises: a figure stands beside its range, a system that failed or was cut says why in its place, and nothing is left out because it
//! looks bad.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::machine::Machine;
use super::medians::{Cell, Median, cells};
use super::plot;
use super::results::Line;
use crate::peers::Peer;
use crate::workloads::Work;

/// Writes `benchmarks.md`, its plots and the raw results into a directory.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    place: &Path,
    machine: &Machine,
    lines: &[Line],
    not_at_hand: &[(String, String)],
) -> Result<()> {
    std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
    let put = |name: &str, text: &str| {
        let path = place.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    let cells = cells(lines);
    let plots = plot::all(&cells);
    for (name, svg) in &plots {
        put(name, svg)?;
    }
    put("benchmarks.json", &(serde_json::to_string_pretty(lines)? + "\n"))?;
    put("benchmarks.md", &markdown(machine, &cells, not_at_hand, &plots))
}

/// The whole text.
pub fn markdown(
    machine: &Machine,
    cells: &[Cell<'_>],
    not_at_hand: &[(String, String)],
    plots: &[(String, String)],
) -> String {
    let mut text = String::from(
        "# Leasehold beside its peers\n\n\
         Written by `cargo xtask bench`. [How it is measured](internals/benchmarks.md), [every single result](benchmarks.json).\n\n",
    );
    let repeats = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "{machine}. Clients and servers on this one machine over loopback; figures are medians of {repeats}, ranges in brackets. Everything is on \
         disk before it is answered, unless the table says otherwise.\n"
    );
    let lines = cells.iter().flat_map(|cell| cell.lines.iter().copied());
    if let Some(Median { middle, least, most }) = super::medians::of_lines(lines, "disk_sync_before_us") {
        let _ = writeln!(
            text,
            "A write of 4 KiB and its sync took {} us before a measurement, between {} and {} (each is the median of some). A measurement waited for up to \
             {} s until the disk was at rest, whichever system it was of.\n",
            number(middle),
            number(least),
            number(most),
            super::quiet::LONGEST.as_secs()
        );
    }
    systems(&mut text, cells, not_at_hand);
    super::goals::table(&mut text, cells, &peers_of(cells));
    let mut letters: Vec<char> = cells.iter().map(|cell| cell.work.letter()).collect();
    letters.sort_unstable();
    letters.dedup();
    for letter in letters {
        section(&mut text, letter, cells);
        for (name, _) in plots.iter().filter(|(name, _)| name.starts_with(&plot::prefix(letter))) {
            let _ = writeln!(text, "![{}]({name})\n", title(letter));
        }
    }
    text
}

fn systems(text: &mut String, cells: &[Cell<'_>], not_at_hand: &[(String, String)]) {
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
    for (name, why) in not_at_hand {
        let _ = writeln!(text, "| {name} | not at hand | {} |", one_line(why));
    }
    text.push('\n');
}

fn section(text: &mut String, letter: char, cells: &[Cell<'_>]) {
    let _ = writeln!(text, "## {letter}: {}\n", title(letter));
    let cells: Vec<&Cell<'_>> = cells.iter().filter(|cell| cell.work.letter() == letter).collect();
    let peers = peers_of(cells.iter().copied());
    let mut rows: Vec<(usize, Work)> = Vec::new();
    for cell in &cells {
        if !rows.contains(&(cell.nodes, cell.work)) {
            rows.push((cell.nodes, cell.work));
        }
    }
    let heads: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    let _ = writeln!(
        text,
        "| nodes, size | figure | {} |\n|---|---|{}",
        heads.join(" | "),
        "---:|".repeat(peers.len())
    );
    for (nodes, work) in rows {
        for (figure, unit) in work.shown() {
            let values: Vec<String> = peers
                .iter()
                .map(|peer| {
                    let cell = cells
                        .iter()
                        .find(|cell| cell.peer == *peer && cell.nodes == nodes && cell.work == work);
                    cell.map_or_else(|| "-".to_owned(), |cell| value(cell, figure))
                })
                .collect();
            if values.iter().any(|value| value != "-") {
                let _ = writeln!(text, "| {nodes}, {} | {unit} | {} |", work.size(), values.join(" | "));
            }
        }
    }
    text.push('\n');
    if letter == 'B' {
        let words: Vec<String> =
            peers.iter().map(|peer| format!("{}: {}", peer.name(), peer.renewals_are())).collect();
        let _ = writeln!(text, "What an answered renewal is: {}.\n", words.join("; "));
    }
    for cell in cells {
        if let Some(why) = cell.failure() {
            let (peer, size) = (cell.peer.name(), cell.work.size());
            let _ = writeln!(text, "- {peer}, {} nodes, {size}: {}", cell.nodes, one_line(why));
        }
    }
    text.push('\n');
}

fn value(cell: &Cell<'_>, figure: &str) -> String {
    match cell.figure(figure) {
        Some(Median { middle, least, most }) => {
            format!("{} ({} to {})", number(middle), number(least), number(most))
        }
        None if cell.failure().is_some() => "failed".to_owned(),
        None => "-".to_owned(),
    }
}

/// Three digits that count, and thousands apart.
pub fn number(value: f64) -> String {
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let plain = format!("{value:.digits$}");
    let (whole, rest) = plain.split_once('.').map_or((plain.as_str(), ""), |(whole, rest)| (whole, rest));
    let mut apart = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) && !apart.ends_with('-') {
            apart.push(',');
        }
        apart.push(digit);
    }
    if rest.is_empty() { apart } else { format!("{apart}.{rest}") }
}

/// What a workload is called.
pub fn title(letter: char) -> &'static str {
    match letter {
        'A' => "acquire and release, uncontended",
        'B' => "renewals",
        'C' => "handover with ten waiting",
        'D' => "how late a dead holder's lease ends",
        'E' => "very many leases ending at once",
        'F' => "very many leases",
        'I' => "restart with very many leases",
        'J' => "a change reaching a thousand watchers",
        _ => "",
    }
}

fn peers_of<'a>(cells: impl IntoIterator<Item = &'a Cell<'a>>) -> Vec<Peer> {
    let mut peers: Vec<Peer> = cells.into_iter().map(|cell| cell.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    peers
}

fn one_line(text: &str) -> String {
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

    #[test]
    fn numbers_have_three_digits_that_count_and_thousands_apart() {
        let shown = [0.5, 12.34, 123.4, 1234.0, 1_234_567.0, -1500.0].map(number);
        assert_eq!(shown, ["0.50", "12.3", "123", "1,234", "1,234,567", "-1,500"]);
    }
}
