//! Repeats of one measurement put together: the median, and the range beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::results::{Line, Outcome};
use crate::peers::Peer;
use crate::workloads::{Figures, Work};

/// One figure over all repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The middle one; of an even number the mean of the two.
    pub middle: f64,
    /// The smallest.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// Of how many.
    pub count: usize,
}

impl Median {
    /// Of some values, if there are any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (least, most, count) = (*values.first()?, *values.last()?, values.len());
        let middle = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
        Some(Self { middle, least, most, count })
    }

    /// The same in another unit.
    #[must_use]
    pub fn divided(self, by: f64) -> Self {
        let Self { middle, least, most, count } = self;
        Self { middle: middle / by, least: least / by, most: most / by, count }
    }
}

/// All repeats of one cell.
#[derive(Debug, Clone)]
pub struct Cell<'a> {
    /// Which system.
    pub peer: Peer,
    /// With how many nodes.
    pub nodes: usize,
    /// What was done.
    pub work: Work,
    /// Its repeats.
    pub lines: Vec<&'a Line>,
}

impl Cell<'_> {
    /// A figure over the repeats that have it.
    pub fn figure(&self, name: &str) -> Option<Median> {
        of_lines(self.lines.iter().copied(), name)
    }

    /// The names of all figures that a repeat has.
    pub fn names(&self) -> BTreeSet<&str> {
        self.lines.iter().filter_map(|line| line.figures()).flat_map(Figures::names).collect()
    }

    /// Why repeats have no figures, one reason for each that has none.
    pub fn failures(&self) -> Vec<&str> {
        let failed = self.lines.iter().filter_map(|line| match &line.outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            Outcome::Measured(_) => None,
        });
        failed.collect()
    }
}

/// A figure over those of some results that have it.
pub fn of_lines<'a>(lines: impl Iterator<Item = &'a Line>, name: &str) -> Option<Median> {
    Median::of(lines.filter_map(|line| line.figures()?.get(name)).collect())
}

/// Lines by what was measured, in the order of their first appearance.
pub fn cells(lines: &[Line]) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for line in lines {
        let key = &line.key;
        let same =
            |cell: &&mut Cell<'_>| cell.peer == key.peer && cell.nodes == key.nodes && cell.work == key.work;
        match cells.iter_mut().find(same) {
            Some(cell) => cell.lines.push(line),
            None => {
                let (peer, nodes, work) = (key.peer, key.nodes, key.work);
                cells.push(Cell { peer, nodes, work, lines: vec![line] });
            }
        }
    }
    cells
}

/// A plain table for whoever watches: one row for each cell.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::new();
    for cell in cells(lines) {
        // Writing into a string does not fail.
        let _ = write!(
            text,
            "{:<10} {} {} node{} {:<36}",
            cell.peer.name(),
            cell.work.letter(),
            cell.nodes,
            if cell.nodes == 1 { " " } else { "s" },
            cell.work.size()
        );
        for name in cell.names() {
            if let Some(Median { middle, least, most, .. }) = cell.figure(name) {
                let _ = write!(text, " {name} {middle:.1} ({least:.1}..{most:.1})");
            }
        }
        if let Some(why) = cell.failures().first() {
            let _ = write!(text, " FAILED: {}", why.lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_its_range() {
        let median = Median::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!(median, Median { middle: 2.0, least: 1.0, most: 3.0, count: 3 });
        assert_eq!(Median::of(Vec::new()), None);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        let median = Median::of(vec![4.0, 1.0]).unwrap();
        assert_eq!(median, Median { middle: 2.5, least: 1.0, most: 4.0, count: 2 });
        assert_eq!(Median::of(vec![9.0, 1.0, 3.0, 2.0]).unwrap().middle, 2.5);
    }
}
