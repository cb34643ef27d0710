//! Plots: one line for each system, the number of clients to the right, operations per second upwards, both by powers.

use std::fmt::Write as _;

use super::medians::Cell;
use super::report::number;
use crate::peers::Peer;
use crate::workloads::{Connections, Work};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 36.0;
/// Room for the names.
const RIGHT: f64 = 130.0;
const BOTTOM: f64 = 50.0;

/// How the names of the plots of a workload begin.
pub fn prefix(letter: char) -> String {
    format!("benchmarks-{}-", letter.to_ascii_lowercase())
}

/// All that can be drawn, by name of file.
pub fn all(cells: &[Cell<'_>]) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for nodes in [1, 3] {
        let word = if nodes == 1 { "one node" } else { "three nodes" };
        let own = |work: Work| match work {
            Work::Cycles { clients, connections: Connections::Own } => Some(clients),
            _ => None,
        };
        let renewals = |work: Work| match work {
            Work::Renewals { sessions } => Some(sessions),
            _ => None,
        };
        let cycles = lines(cells, nodes, own);
        if cycles.iter().any(|(_, points)| points.len() > 1) {
            let title = format!("acquire and release, {word}: cycles per second by clients");
            plots.push((format!("{}{nodes}.svg", prefix('A')), draw(&title, &cycles)));
        }
        let renewals = lines(cells, nodes, renewals);
        if renewals.iter().any(|(_, points)| points.len() > 1) {
            let title = format!("renewals, {word}: renewals per second by sessions");
            plots.push((format!("{}{nodes}.svg", prefix('B')), draw(&title, &renewals)));
        }
    }
    plots
}

type Points = Vec<(f64, f64)>;

fn lines(cells: &[Cell<'_>], nodes: usize, size: impl Fn(Work) -> Option<usize>) -> Vec<(Peer, Points)> {
    let mut lines: Vec<(Peer, Points)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.nodes == nodes) {
        let (Some(size), Some(median)) = (size(cell.work), cell.figure("per_second")) else { continue };
        let point = (crate::workloads::figures::as_f64(size), median.middle);
        match lines.iter_mut().find(|(peer, _)| *peer == cell.peer) {
            Some((_, points)) => points.push(point),
            None => lines.push((cell.peer, vec![point])),
        }
    }
    for (_, points) in &mut lines {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    lines
}

/// One plot.
fn draw(title: &str, lines: &[(Peer, Points)]) -> String {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(1.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::MAX, f64::min).max(1.0);
    let (right, high) = (most(|point| point.0).max(2.0), most(|point| point.1).log10().ceil());
    let low = least.log10().floor().min(high - 1.0);
    let (full, total) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    let x = |value: f64| LEFT + value.log10() / right.log10() * WIDTH;
    let y = |value: f64| TOP + HEIGHT - (value.max(1.0).log10() - low) / (high - low) * HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {total}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{full}\" height=\"{total}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{title}</text>\n\
         <rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>\n"
    );
    let mut power = low;
    while power <= high {
        let (value, at) = (10_f64.powf(power), y(10_f64.powf(power)));
        // Writing into a string does not fail.
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#eee\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            at + 4.0,
            number(value)
        );
        power += 1.0;
    }
    let mut sizes: Vec<f64> = points().map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(size),
            TOP + HEIGHT + 18.0,
            whole(size)
        );
    }
    let mut taken: Vec<f64> = Vec::new();
    for (peer, points) in lines {
        series(&mut svg, *peer, points, &x, &y, &mut taken);
    }
    svg.push_str("</svg>\n");
    svg
}

fn series(
    svg: &mut String,
    peer: Peer,
    points: &[(f64, f64)],
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
    taken: &mut Vec<f64>,
) {
    let colour = peer.colour();
    let drawn: Vec<String> =
        points.iter().map(|(size, rate)| format!("{:.1},{:.1}", x(*size), y(*rate))).collect();
    let _ = writeln!(
        svg,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
        drawn.join(" ")
    );
    for (size, rate) in points {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
            x(*size),
            y(*rate)
        );
    }
    let Some((size, rate)) = points.last() else { return };
    // Names that would lie on each other are moved apart.
    let mut at = y(*rate) + 4.0;
    while taken.iter().any(|other| (other - at).abs() < 13.0) {
        at += 13.0;
    }
    taken.push(at);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{colour}\">{}</text>",
        x(*size) + 8.0,
        peer.name()
    );
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_that_end_together_are_apart() {
        let lines = [
            (Peer::Leasehold, vec![(1.0, 10.0), (64.0, 1000.0)]),
            (Peer::Redis, vec![(1.0, 9.0), (64.0, 999.0)]),
        ];
        let svg = draw("x", &lines);
        let heights: Vec<f64> = svg
            .lines()
            .filter(|line| line.contains("fill=\"#") && line.starts_with("<text"))
            .filter_map(|line| line.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(heights.len(), 2);
        assert!((heights[0] - heights[1]).abs() >= 13.0, "{heights:?}");
    }
}
