//! The nodes as JSON.

use leasehold_core::protocol::{ClusterView, MemberId, MemberRole, MemberView};
use leasehold_core::{Millis, Revision};
use leasehold_host::Inspection;
use leasehold_node::Membership;
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct ClusterJson {
    incarnation: String,
    epoch: u16,
    version: u32,
    leader: Option<String>,
    term: String,
    committed: String,
    restore_wait_ms: Option<u64>,
    members: Vec<MemberJson>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MemberJson {
    name: String,
    id: String,
    address: String,
    role: &'static str,
    leader: bool,
    reachable: bool,
    matched: String,
    behind: u64,
    receiving_snapshot: bool,
}

/// What one node knows by itself.
#[derive(Debug, Serialize)]
pub(crate) struct LocalJson {
    name: Option<String>,
    id: String,
    advertised: String,
    incarnation: String,
    epoch: u16,
    leader: Option<String>,
    ready: bool,
    applied: String,
    restore_wait_ms: Option<u64>,
    members: Vec<LocalMemberJson>,
}

#[derive(Debug, Serialize)]
struct LocalMemberJson {
    name: String,
    id: String,
    address: String,
    role: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct ChangedJson {
    revision: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct TransferredJson {
    leader: Option<String>,
    leader_id: String,
}

impl ClusterJson {
    /// As the leader sees it. The wait after a restore is that of the node which was asked: all of them have applied the same.
    pub(crate) fn new(view: &ClusterView, restore_wait: Option<Millis>) -> Self {
        let leader = view.members.iter().find(|seen| seen.member.id == view.leader);
        Self {
            incarnation: view.incarnation.to_string(),
            epoch: view.epoch,
            version: view.version,
            leader: leader.map(|seen| seen.member.name.clone()),
            term: view.term.to_string(),
            committed: view.committed.to_string(),
            restore_wait_ms: restore_wait.map(Millis::get),
            members: view.members.iter().map(|seen| MemberJson::new(view, seen)).collect(),
        }
    }
}

impl MemberJson {
    fn new(view: &ClusterView, seen: &MemberView) -> Self {
        Self {
            name: seen.member.name.clone(),
            id: seen.member.id.to_string(),
            address: seen.member.address.clone(),
            role: role(seen.role),
            leader: seen.member.id == view.leader,
            reachable: seen.reachable,
            matched: seen.matched.to_string(),
            behind: view.committed.saturating_sub(seen.matched),
            receiving_snapshot: seen.receiving_snapshot,
        }
    }
}

impl LocalJson {
    pub(crate) fn new(look: &Inspection, advertised: &str) -> Self {
        let membership = &look.membership;
        let name = |id: MemberId| membership.member(id).map(|member| member.name.clone());
        let members = membership.members.iter().map(|(member, part)| LocalMemberJson {
            name: member.name.clone(),
            id: member.id.to_string(),
            address: member.address.clone(),
            role: role(*part),
        });
        Self {
            name: name(membership.me),
            id: membership.me.to_string(),
            advertised: advertised.to_owned(),
            incarnation: membership.incarnation.to_string(),
            epoch: membership.epoch,
            leader: look.leader.and_then(name),
            ready: look.ready,
            applied: look.applied.to_string(),
            restore_wait_ms: look.restore_wait.map(Millis::get),
            members: members.collect(),
        }
    }
}

const fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Voter => "voter",
        MemberRole::Learner => "learner",
    }
}

impl From<Revision> for ChangedJson {
    fn from(revision: Revision) -> Self {
        Self { revision: revision.to_string() }
    }
}

impl TransferredJson {
    pub(crate) fn new(leader: MemberId, membership: &Membership) -> Self {
        let name = membership.member(leader).map(|member| member.name.clone());
        Self { leader: name, leader_id: leader.to_string() }
    }
}
