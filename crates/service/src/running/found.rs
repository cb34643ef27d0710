//! What a directory that had been served before brings with it.

use std::path::Path;

use leasehold_core::{Drift, Millis, Revision};
use leasehold_server::Inspection;

/// The log of a directory lies in here.
const LOG: &str = "log";

/// What was found in a directory at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Sessions, overdue ones among them.
    pub sessions: usize,
    /// Leases.
    pub leases: u64,
    /// The last entry applied.
    pub revision: Revision,
    /// The longest ttl and the drift that it was made with, unless it waits to be told them by others.
    pub rules: Option<(Millis, Drift)>,
}

/// Whether a directory was served before.
pub(super) fn is_there(directory: &Path) -> bool {
    directory.join(LOG).exists()
}

/// What a node has found.
pub(super) fn look(inspection: &Inspection) -> Found {
    let counters = &inspection.counters;
    let endings = counters.voluntary_endings + counters.involuntary_endings;
    Found {
        sessions: inspection.sessions,
        leases: counters.grants.saturating_sub(endings),
        revision: inspection.applied,
        rules: (!inspection.membership.is_blank()).then_some((inspection.max_ttl, inspection.drift)),
    }
}
