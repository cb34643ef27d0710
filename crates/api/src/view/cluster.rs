//! The nodes as JSON.

#![expect(missing_docs, reason = "the names say it")]

use leasehold_core::protocol::{self, ClusterView, MemberRole, MemberView};
use leasehold_core::{Millis, Revision};
use serde::{Deserialize, Serialize};

use super::number;
use crate::Number;
use crate::answer;

views! {
    /// The nodes as their leader sees them.
    #[derive(Clone, Deserialize)]
    Cluster from(state: answer::ClusterState) {
        pub incarnation: String = state.view.incarnation.to_string(),
        pub epoch: u16 = state.view.epoch,
        pub version: u32 = state.view.version,
        pub leader: Option<String> = leader(&state.view).map(|seen| seen.member.name.clone()),
        pub term: Number = state.view.term.into(),
        pub committed: Number = state.view.committed.into(),
        pub restore_wait_ms: Option<u64> = state.restore_wait.map(Millis::get),
        pub members: Vec<Member> = state.view.members.iter().map(|seen| Member::new(&state.view, seen)).collect(),
    }

    /// What one node knows by itself.
    #[derive(Clone, Deserialize)]
    LocalCluster from(node: answer::LocalNode) {
        pub name: Option<String> = node.name(node.me),
        pub id: String = node.me.to_string(),
        pub advertised: String = node.advertised.clone(),
        pub incarnation: String = node.incarnation.to_string(),
        pub epoch: u16 = node.epoch,
        pub leader: Option<String> = node.leader.and_then(|leader| node.name(leader)),
        pub ready: bool = node.ready,
        pub applied: Number = number(node.applied),
        pub restore_wait_ms: Option<u64> = node.restore_wait.map(Millis::get),
        pub members: Vec<LocalMember> = node.members.iter().map(LocalMember::new).collect(),
    }

    /// One node as another one has it recorded.
    #[derive(Clone, Deserialize)]
    LocalMember new(recorded: &(protocol::Member, MemberRole)) {
        pub name: String = recorded.0.name.clone(),
        pub id: String = recorded.0.id.to_string(),
        pub address: String = recorded.0.address.clone(),
        #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["voter", "learner"])))]
        pub role: String = role(recorded.1).to_owned(),
    }

    /// A change of the nodes: the entry from which on it is so.
    #[derive(Clone, Deserialize)]
    Changed from(revision: Revision) {
        pub revision: Number = number(revision),
    }

    /// Who leads now.
    #[derive(Clone, Deserialize)]
    Transferred from(transferred: answer::Transferred) {
        pub leader: Option<String> = transferred.name,
        pub leader_id: String = transferred.leader.to_string(),
    }
}

/// One node as its leader sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Member {
    pub name: String,
    pub id: String,
    pub address: String,
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["voter", "learner"])))]
    pub role: String,
    pub leader: bool,
    pub reachable: bool,
    pub matched: Number,
    pub behind: u64,
    pub receiving_snapshot: bool,
}

impl Member {
    fn new(view: &ClusterView, seen: &MemberView) -> Self {
        Self {
            name: seen.member.name.clone(),
            id: seen.member.id.to_string(),
            address: seen.member.address.clone(),
            role: role(seen.role).to_owned(),
            leader: seen.member.id == view.leader,
            reachable: seen.reachable,
            matched: seen.matched.into(),
            behind: view.committed.saturating_sub(seen.matched),
            receiving_snapshot: seen.receiving_snapshot,
        }
    }
}

fn leader(view: &ClusterView) -> Option<&MemberView> {
    view.members.iter().find(|seen| seen.member.id == view.leader)
}

const fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Voter => "voter",
        MemberRole::Learner => "learner",
    }
}
