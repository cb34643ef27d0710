//! The nodes as JSON.

#![expect(missing_docs, reason = "the names say it")]

use leasehold_core::protocol::{ClusterView, MemberRole, MemberView};
use leasehold_core::{Millis, Revision};
use serde::{Deserialize, Serialize};

use super::number;
use crate::Number;
use crate::answer;

/// The nodes as their leader sees them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Cluster {
    pub incarnation: String,
    pub epoch: u16,
    pub version: u32,
    pub leader: Option<String>,
    pub term: Number,
    pub committed: Number,
    pub restore_wait_ms: Option<u64>,
    pub members: Vec<Member>,
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

/// What one node knows by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct LocalCluster {
    pub name: Option<String>,
    pub id: String,
    pub advertised: String,
    pub incarnation: String,
    pub epoch: u16,
    pub leader: Option<String>,
    pub ready: bool,
    pub applied: Number,
    pub restore_wait_ms: Option<u64>,
    pub members: Vec<LocalMember>,
}

/// One node as another one has it recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct LocalMember {
    pub name: String,
    pub id: String,
    pub address: String,
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = ["voter", "learner"])))]
    pub role: String,
}

/// A change of the nodes: the entry from which on it is so.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Changed {
    pub revision: Number,
}

/// Who leads now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Transferred {
    pub leader: Option<String>,
    pub leader_id: String,
}

impl From<answer::ClusterState> for Cluster {
    fn from(state: answer::ClusterState) -> Self {
        let view = &state.view;
        let leader = view.members.iter().find(|seen| seen.member.id == view.leader);
        Self {
            incarnation: view.incarnation.to_string(),
            epoch: view.epoch,
            version: view.version,
            leader: leader.map(|seen| seen.member.name.clone()),
            term: view.term.into(),
            committed: view.committed.into(),
            restore_wait_ms: state.restore_wait.map(Millis::get),
            members: view.members.iter().map(|seen| Member::new(view, seen)).collect(),
        }
    }
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

impl From<answer::LocalNode> for LocalCluster {
    fn from(node: answer::LocalNode) -> Self {
        let name = |id| {
            let mut members = node.members.iter().filter(|(member, _)| member.id == id);
            members.next().map(|(member, _)| member.name.clone())
        };
        let members = node.members.iter().map(|(member, part)| LocalMember {
            name: member.name.clone(),
            id: member.id.to_string(),
            address: member.address.clone(),
            role: role(*part).to_owned(),
        });
        Self {
            name: name(node.me),
            id: node.me.to_string(),
            advertised: node.advertised.clone(),
            incarnation: node.incarnation.to_string(),
            epoch: node.epoch,
            leader: node.leader.and_then(name),
            ready: node.ready,
            applied: number(node.applied),
            restore_wait_ms: node.restore_wait.map(Millis::get),
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

impl From<Revision> for Changed {
    fn from(revision: Revision) -> Self {
        Self { revision: number(revision) }
    }
}

impl From<answer::Transferred> for Transferred {
    fn from(transferred: answer::Transferred) -> Self {
        Self { leader: transferred.name, leader_id: transferred.leader.to_string() }
    }
}
