//! One figure of one workload, picked out of all results for each system.

use super::medians::{Cell, Median};
use super::shown;
use crate::peers::Peer;
use crate::workloads::{Connections, Work};

/// What is picked.
pub(super) struct Pick {
    /// What it is, with its unit.
    pub(super) words: &'static str,
    /// With how many nodes.
    pub(super) nodes: usize,
    /// Of which workload.
    pub(super) is_of: fn(Work) -> bool,
    /// By its name in the results.
    pub(super) figure: &'static str,
    /// What the figure is divided by, so that the unit is that of the words.
    pub(super) unit: f64,
}

impl Pick {
    fn cell<'a, 'b>(&self, cells: &'a [Cell<'b>], peer: Peer) -> Option<&'a Cell<'b>> {
        cells.iter().find(|cell| cell.peer == peer && cell.nodes == self.nodes && (self.is_of)(cell.work))
    }

    /// The figure of a system, if it has one.
    pub(super) fn figure(&self, cells: &[Cell<'_>], peer: Peer) -> Option<Median> {
        let median = self.cell(cells, peer)?.figure(self.figure)?;
        Some(median.divided(self.unit))
    }

    /// The sign that belongs behind it.
    pub(super) fn mark(&self, cells: &[Cell<'_>], peer: Peer) -> &'static str {
        self.cell(cells, peer).map_or("", |cell| shown::mark(peer, cell.work, self.figure))
    }

    /// What stands in its place if there is none.
    pub(super) fn gap(&self, cells: &[Cell<'_>], peer: Peer) -> &'static str {
        match self.cell(cells, peer) {
            Some(cell) if !cell.failures().is_empty() => "failed",
            _ => "-",
        }
    }
}

/// Cycles of so many clients, each with a connection of its own.
pub(super) fn own(work: Work, count: usize) -> bool {
    matches!(work, Work::Cycles { clients, connections: Connections::Own } if clients == count)
}

/// Cycles of so many clients over few connections.
pub(super) fn shared(work: Work, count: usize) -> bool {
    matches!(work, Work::Cycles { clients, connections: Connections::Shared } if clients == count)
}

/// So many leases, of few sessions.
pub(super) fn many(work: Work, count: usize) -> bool {
    matches!(work, Work::Many { leases, session_each: false } if leases == count)
}
