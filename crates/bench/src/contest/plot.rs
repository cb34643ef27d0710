//! The plot: one line for each system, the number of clients to the right, cycles per second upwards, both by powers.
//!
//! Promises: those of one node and of three have the same scales, so that one can be laid beside the other, and a point shows the range of its
//! repeats.

use std::fmt::Write as _;

use super::medians::{Cell, Median};
use super::shown::number;
use crate::peers::Peer;
use crate::workloads::figures::as_f64;
use crate::workloads::{Connections, Work};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 36.0;
/// Room for the names.
const RIGHT: f64 = 146.0;
/// Room for sizes and the title of their axis.
const BOTTOM: f64 = 54.0;
/// Between two names that would lie on each other.
const APART: f64 = 13.0;

/// From the last point to the name.
const NAME_ASIDE: f64 = 24.0;
/// Each system is drawn a little beside the one before, so that ranges do not cover each other.
const ASIDE: f64 = 3.0;

/// A drawing.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What its file is called.
    pub file: String,
    /// What it shows, also for whoever does not see it.
    pub title: String,
    /// The drawing itself.
    pub svg: String,
}

/// All that can be drawn.
pub fn all(cells: &[Cell<'_>]) -> Vec<Plot> {
    let scale = Scale::of(cells.iter().filter_map(point));
    let mut plots = Vec::new();
    for (nodes, on) in [(1, "one node"), (3, "three nodes")] {
        let lines = lines(cells.iter().filter(|cell| cell.nodes == nodes));
        if lines.iter().any(|line| line.points.len() > 1) {
            let title = format!("acquire and release, {on}, clients with connections of their own");
            let svg = draw(&title, &scale, &lines);
            plots.push(Plot { file: format!("benchmarks-a-{nodes}.svg"), title, svg });
        }
    }
    plots
}

/// How many clients, and their cycles a second.
fn point(cell: &Cell<'_>) -> Option<(f64, Median)> {
    let Work::Cycles { clients, connections: Connections::Own } = cell.work else { return None };
    Some((as_f64(clients), cell.figure("per_second")?))
}

/// The line of one system.
struct Series {
    peer: Peer,
    points: Vec<(f64, Median)>,
}

fn lines<'a>(cells: impl Iterator<Item = &'a Cell<'a>>) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (peer, point) in cells.filter_map(|cell| Some((cell.peer, point(cell)?))) {
        match lines.iter_mut().find(|line| line.peer == peer) {
            Some(line) => line.points.push(point),
            None => lines.push(Series { peer, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    lines
}

/// From where to where, both by powers.
struct Scale {
    right: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(points: impl Iterator<Item = (f64, Median)>) -> Self {
        let (mut right, mut least, mut most) = (2.0_f64, f64::MAX, 10.0_f64);
        for (clients, median) in points {
            (right, least, most) = (right.max(clients), least.min(median.least), most.max(median.most));
        }
        let high = most.log10().ceil();
        Self { right, low: least.max(1.0).log10().floor().min(high - 1.0), high }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + value.log10() / self.right.log10() * WIDTH
    }

    fn y(&self, value: f64) -> f64 {
        TOP + HEIGHT - (value.max(1.0).log10() - self.low) / (self.high - self.low) * HEIGHT
    }
}

/// One plot.
fn draw(title: &str, scale: &Scale, lines: &[Series]) -> String {
    let (full, total) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full} {total}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <rect width=\"{full}\" height=\"{total}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{title}</text>\n\
         <rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>\n"
    );
    axes(&mut svg, scale, lines);
    // From above to below, so that names that are moved apart keep the order of their lines.
    let end = |line: &Series| line.points.last().map_or(0.0, |(_, rate)| rate.middle);
    let mut ordered: Vec<&Series> = lines.iter().collect();
    ordered.sort_by(|one, other| end(other).total_cmp(&end(one)));
    let mut taken: Vec<f64> = Vec::new();
    for (number, line) in ordered.into_iter().enumerate() {
        series(&mut svg, line, scale, as_f64(number) * ASIDE, &mut taken);
    }
    svg.push_str("</svg>\n");
    svg
}

fn axes(svg: &mut String, scale: &Scale, lines: &[Series]) {
    let mut power = scale.low;
    while power <= scale.high {
        let (value, at) = (10_f64.powf(power), scale.y(10_f64.powf(power)));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#eee\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            at + 4.0,
            number(value.round())
        );
        power += 1.0;
    }
    let mut sizes: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|(size, _)| *size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            scale.x(size),
            TOP + HEIGHT + 18.0,
            number(size.round()).trim_end_matches(".00").trim_end_matches(".0")
        );
    }
    let (middle, centre) = (LEFT + WIDTH / 2.0, TOP + HEIGHT / 2.0);
    let _ = writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">clients (logarithmic)</text>\n\
         <text x=\"18\" y=\"{centre}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {centre})\">cycles a second (logarithmic)</text>",
        TOP + HEIGHT + 38.0
    );
}

fn series(svg: &mut String, line: &Series, scale: &Scale, aside: f64, taken: &mut Vec<f64>) {
    let (colour, points) = (line.peer.colour(), &line.points);
    let drawn: Vec<String> = points
        .iter()
        .map(|(size, rate)| format!("{:.1},{:.1}", scale.x(*size) + aside, scale.y(rate.middle)))
        .collect();
    let _ = writeln!(
        svg,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
        drawn.join(" ")
    );
    for (size, Median { middle, least, most, .. }) in points {
        let x = scale.x(*size) + aside;
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"1\"/>\
             <circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
            scale.y(*least),
            scale.y(*most),
            scale.y(*middle)
        );
    }
    let Some((size, rate)) = points.last() else { return };
    // Names that would lie on each other are moved apart.
    let mut at = scale.y(rate.middle) + 4.0;
    while taken.iter().any(|other| (other - at).abs() < APART) {
        at += APART;
    }
    taken.push(at);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{at:.1}\" fill=\"{colour}\">{}</text>",
        scale.x(*size) + NAME_ASIDE,
        line.peer.name()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::medians::cells;
    use crate::contest::results::Line;

    fn drawn(lines: &[Line]) -> Vec<Plot> {
        all(&cells(lines))
    }

    fn lines(peer: Peer, nodes: usize, rates: &[(usize, f64)]) -> Vec<Line> {
        let line = |(clients, rate): &(usize, f64)| {
            let work = Work::Cycles { clients: *clients, connections: Connections::Own };
            Line::made_up(peer, nodes, 0, work, &[("per_second", *rate)])
        };
        rates.iter().map(line).collect()
    }

    #[test]
    fn names_of_lines_that_end_together_are_apart() {
        let one = lines(Peer::Leasehold, 1, &[(1, 10.0), (64, 1000.0)]);
        let plots = drawn(&[one, lines(Peer::Redis, 1, &[(1, 9.0), (64, 999.0)])].concat());
        let heights: Vec<f64> = plots[0]
            .svg
            .lines()
            .filter(|line| line.contains("fill=\"#") && line.starts_with("<text"))
            .filter_map(|line| line.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(heights.len(), 2);
        assert!((heights[0] - heights[1]).abs() >= APART, "{heights:?}");
    }

    #[test]
    fn plots_of_one_workload_have_the_same_scale_and_titles_of_their_own() {
        let one = lines(Peer::Leasehold, 1, &[(1, 10_000.0), (64, 100_000.0)]);
        let plots = drawn(&[one, lines(Peer::Leasehold, 3, &[(1, 100.0), (64, 900.0)])].concat());
        assert_eq!(plots.len(), 2);
        assert_ne!(plots[0].title, plots[1].title);
        for plot in &plots {
            assert!(plot.svg.contains(">100,000</text>") && plot.svg.contains(">100</text>"), "{}", plot.svg);
        }
    }
}
