//! What a directory that had been served before brings with it.

use std::path::Path;

use leasehold_core::protocol::Member;
use leasehold_core::{Drift, Millis, Revision};
use leasehold_host::Inspection;
use leasehold_node::Membership;

/// What was found in a directory at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Sessions, overdue ones among them.
    pub sessions: usize,
    /// Leases.
    pub leases: u64,
    /// The last entry applied.
    pub revision: Revision,
    /// Members of its cluster, this one among them. With others, what the log has is applied when they agree that it is decided.
    pub members: usize,
    /// The longest ttl and the drift that it was made with, unless it waits to be told them by others.
    pub rules: Option<(Millis, Drift)>,
    /// How long nothing is granted, because the state was restored or recovered.
    pub restore_wait: Option<Millis>,
}

/// What a node has found.
pub(super) fn look(inspection: &Inspection) -> Found {
    let counters = &inspection.counters;
    let endings = counters.voluntary_endings + counters.involuntary_endings;
    Found {
        sessions: inspection.sessions,
        leases: counters.grants.saturating_sub(endings),
        revision: inspection.applied,
        members: inspection.membership.members.len(),
        rules: (!inspection.membership.is_blank()).then_some((inspection.max_ttl, inspection.drift)),
        restore_wait: inspection.restore_wait,
    }
}

/// A directory that is gone, because its volume is not mounted, looks like one that never was. Nothing here can tell them apart, and a first
/// start is no reason for a warning. A node of a cluster that looks for its member here is: see `leasehold_host`.
pub(super) fn say_that_it_is_new(directory: &Path) {
    tracing::info!(
        "{} held no store: a NEW one was founded there, and its tokens begin at 1. If this node served leases before, stop it and mount its \
         directory; if it belongs to a cluster, start it with --initial-cluster or --join, every time",
        directory.display()
    );
}

/// Other nodes and clients go where the cluster has recorded that this node is.
pub(super) fn warn_of_another_address(membership: &Membership, advertised: &str) {
    if let Some(recorded) = membership.member(membership.me)
        && recorded.address != advertised
    {
        let Member { name, address, .. } = recorded;
        let moves = if membership.members.len() > 1 {
            format!(
                "`leasehold cluster remove {name}`, and add it with an empty directory at its new address"
            )
        } else {
            "stop it and use `leasehold data recover --listen-address`".to_owned()
        };
        tracing::warn!(
            "this node says that it is reached at {advertised}, but is recorded at {address}: its peers, clients and nodes that are added look for \
             it there. Start it with --advertise {address} if that leads here; to move it, {moves}"
        );
    }
}

/// A directory that is gone looks like one that never was, unless the node is told that it is one of several.
pub(super) fn warn_of_a_start_as_if_alone(membership: &Membership) {
    let others = membership.members.len().saturating_sub(1);
    if others > 0 {
        tracing::warn!(
            "this node has {others} other members in its cluster, but was started with neither --join nor --initial-cluster: give it one of \
             them at every start (--join if it was added or had been alone). Without, it founds a NEW store if its directory is ever gone; \
             see docs/guides/operate-a-cluster.md"
        );
    }
}

/// Says what a node that is to join waits for.
pub(super) fn say_that_it_waits(name: &str, advertised: &str) {
    tracing::info!(
        "this node waits to be added to a cluster: `leasehold cluster add {name}={advertised}`, asked of a member of it"
    );
}
