//! The members: asked to change, changed by entries, and shown.

use std::sync::Arc;

use leasehold_core::Revision;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{
    ClusterCommand, ClusterRefusal, ClusterReply, ClusterView, Failure, Member, MemberId, MemberRole,
    MemberView, RequestId, Response,
};
use raft::eraftpb::Entry;

use super::intake::{respond, unavailable};
use super::{Fatal, Node, Output};
use crate::members::{self, Membership, Roster, RosterChange};
use crate::payload::PayloadError;
use crate::routes::ConnectionId;

/// A learner that is not further behind than this can vote: it catches up while the change is on its way.
const MAX_BEHIND: u64 = 256;
/// Members of a cluster at most.
const LIMIT: usize = leasehold_core::cluster::MAX_MEMBERS;

/// A change that was proposed here.
#[derive(Debug)]
pub(super) struct Change {
    index: u64,
    term: u64,
    origin: (ConnectionId, RequestId),
}

impl Node {
    /// Puts what a cluster is asked for on its way, or answers at once.
    pub(super) fn cluster_command(
        &mut self,
        origin: (ConnectionId, RequestId),
        command: ClusterCommand,
    ) -> Result<(), Response> {
        let change = match command {
            ClusterCommand::Transfer { to: Some(to) } if self.named(&to) == Ok(self.id()) => {
                return Err(Response::Cluster(ClusterReply::Transferred { to: self.id() }));
            }
            ClusterCommand::Transfer { to } => return self.transfer(origin, to).map_err(refused),
            ClusterCommand::Add(member) if self.roster.members.contains(&member) => {
                // Asked again after an unknown outcome.
                let revision = Revision::new(self.applied);
                return Err(Response::Cluster(ClusterReply::Changed { revision }));
            }
            ClusterCommand::Add(member) => self.add(member).map_err(refused)?,
            ClusterCommand::Promote { name } => self.promote(&name).map_err(refused)?,
            ClusterCommand::Remove { name } => self.remove(&name).map_err(refused)?,
        };
        if self.change.is_some() || self.raft.raft.has_pending_conf() {
            return Err(refused(ClusterRefusal::ChangeUnderWay));
        }
        if self.raft.propose_conf_change(Vec::new(), members::to_raft(&change)).is_err() {
            return Err(unavailable("leadership is being handed over"));
        }
        let (index, term) = (self.raft.raft.raft_log.last_index(), self.raft.raft.term);
        self.change = Some(Change { index, term, origin });
        Ok(())
    }

    fn add(&self, member: Member) -> Result<RosterChange, ClusterRefusal> {
        let taken = |what: &str, value: String, by: &Member| ClusterRefusal::Taken {
            what: what.into(),
            value,
            name: by.name.clone(),
        };
        for known in &self.roster.members {
            if known.id == member.id {
                return Err(taken("the data directory with id", member.id.to_string(), known));
            }
            if known.name == member.name {
                return Err(taken("the name", member.name, known));
            }
            if known.address == member.address {
                return Err(taken("the address", member.address, known));
            }
        }
        if self.roster.removed.contains(&member.id) {
            return Err(ClusterRefusal::WasRemoved { name: member.name });
        }
        if self.roster.members.len() >= LIMIT {
            return Err(ClusterRefusal::TooManyMembers { limit: LIMIT });
        }
        Ok(RosterChange::Add(member))
    }

    fn promote(&self, name: &str) -> Result<RosterChange, ClusterRefusal> {
        let id = self.named(name)?;
        if self.is_voter(id) {
            return Err(ClusterRefusal::IsVoter { name: name.into() });
        }
        let committed = self.raft.raft.raft_log.committed;
        let progress = self.raft.raft.prs().get(id.0).filter(|_| self.is_heard(id));
        let matched = progress.map_or(0, |progress| progress.matched);
        let behind = committed.saturating_sub(matched);
        if matched == 0 || behind > MAX_BEHIND {
            return Err(ClusterRefusal::NotCaughtUp { name: name.into(), behind });
        }
        Ok(RosterChange::Promote(id))
    }

    fn remove(&mut self, name: &str) -> Result<RosterChange, ClusterRefusal> {
        let id = self.named(name)?;
        if !self.is_voter(id) {
            return Ok(RosterChange::Remove(id));
        }
        let name = || name.to_owned();
        let left: Vec<u64> =
            self.raft.store().conf_state().voters.iter().copied().filter(|voter| *voter != id.0).collect();
        if left.is_empty() {
            return Err(ClusterRefusal::LastVoter { name: name() });
        }
        let heard = |voter: u64| voter == self.raft.raft.id || self.is_heard(MemberId(voter));
        let reachable = left.iter().filter(|voter| heard(**voter)).count();
        let began = self.leadership.as_ref().map(|leadership| leadership.began);
        if reachable <= left.len() / 2
            && began.is_some_and(|began| self.now.since(began).smaller() < super::forward::ELECTION_TIMEOUT)
        {
            // It has heard of those whose votes it needed, and of the others not yet: followers say nothing to each other.
            return Err(ClusterRefusal::HandingOver { name: name() });
        }
        if reachable <= left.len() / 2 {
            return Err(ClusterRefusal::NoMajorityLeft { name: name(), reachable, voters: left.len() });
        }
        if id == self.id() {
            let to = self.successor().ok_or(ClusterRefusal::NobodyToTakeOver)?;
            self.begin_handover(to, None);
            return Err(ClusterRefusal::HandingOver { name: name() });
        }
        Ok(RosterChange::Remove(id))
    }

    fn transfer(
        &mut self,
        origin: (ConnectionId, RequestId),
        to: Option<String>,
    ) -> Result<(), ClusterRefusal> {
        let to = match to {
            None => self.successor().ok_or(ClusterRefusal::NobodyToTakeOver)?,
            Some(name) => {
                let id = self.named(&name)?;
                if !self.is_voter(id) {
                    return Err(ClusterRefusal::IsLearner { name });
                }
                if !self.is_heard(id) {
                    return Err(ClusterRefusal::NobodyToTakeOver);
                }
                id
            }
        };
        self.begin_handover(to, Some(origin));
        Ok(())
    }

    fn named(&self, name: &str) -> Result<MemberId, ClusterRefusal> {
        let member = self.roster.by_name(name);
        member.map(|member| member.id).ok_or_else(|| ClusterRefusal::NoSuchMember { name: name.into() })
    }

    fn is_voter(&self, id: MemberId) -> bool {
        let conf = self.raft.store().conf_state();
        conf.voters.contains(&id.0) || conf.voters_outgoing.contains(&id.0)
    }

    /// An entry changes the members.
    pub(super) fn apply_change(&mut self, out: &mut Vec<Output>, entry: &Entry) -> Result<(), Fatal> {
        let damaged = || PayloadError::Damaged { what: "entry that changes the members" };
        let (change, ours) = members::from_log(&entry.data).map_err(|()| damaged())?;
        let removes = matches!(ours, Some(RosterChange::Remove(_)));
        if !(removes && planted(Bug::RemovedStillCounted)) {
            let applied = self.raft.apply_conf_change(&change);
            let conf_state = applied.map_err(|error| Fatal::Raft(error.to_string()))?;
            self.raft.mut_store().set_conf_state(conf_state);
        }
        let removed = ours == Some(RosterChange::Remove(self.id()));
        if let Some(ours) = ours {
            self.roster.apply(ours);
        }
        out.push(Output::Members(Arc::new(self.membership())));
        if removed { Err(Fatal::Removed) } else { Ok(()) }
    }

    /// Answers whoever asked for a change that was decided by now, one way or the other.
    pub(super) fn answer_change(&mut self, out: &mut Vec<Output>, entry: &Entry) {
        let Some(change) = self.change.take_if(|change| change.index <= entry.index) else { return };
        let (connection, id) = change.origin;
        let is_it = change.index == entry.index
            && change.term == entry.term
            && entry.get_entry_type() != raft::eraftpb::EntryType::EntryNormal;
        let response = if is_it {
            Response::Cluster(ClusterReply::Changed { revision: Revision::new(entry.index) })
        } else {
            Response::Failed(Failure::OutcomeUnknown)
        };
        respond(out, connection, id, response);
    }

    /// A change that was proposed by a leadership that is over.
    pub(super) fn forget_change(&mut self, out: &mut Vec<Output>) {
        if let Some(Change { origin: (connection, id), .. }) = self.change.take() {
            respond(out, connection, id, Response::Failed(Failure::OutcomeUnknown));
        }
    }

    /// Who keeps the log, as far as it was applied.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Who keeps the log.
    pub fn membership(&self) -> Membership {
        let role = |id| if self.is_voter(id) { MemberRole::Voter } else { MemberRole::Learner };
        Membership {
            me: self.id(),
            incarnation: self.roster.incarnation,
            epoch: self.table.epoch().get(),
            version: self.roster.version,
            members: self.roster.members.iter().map(|member| (member.clone(), role(member.id))).collect(),
            removed: self.roster.removed.clone(),
        }
    }

    /// Whether nobody else is a member, so that nobody waits for a sign of life.
    pub fn is_only_member(&self) -> bool {
        self.is_alone() && self.roster.members.len() <= 1
    }

    /// How the cluster stands, as its leader sees it.
    pub(super) fn cluster_view(&self) -> ClusterView {
        let me = self.id();
        let last = self.raft.raft.raft_log.last_index();
        let members = self.roster.members.iter().map(|member| {
            let progress = self.raft.raft.prs().get(member.id.0);
            let mine = member.id == me;
            MemberView {
                member: member.clone(),
                role: if self.is_voter(member.id) { MemberRole::Voter } else { MemberRole::Learner },
                matched: if mine { last } else { progress.map_or(0, |progress| progress.matched) },
                reachable: mine || self.is_heard(member.id),
                receiving_snapshot: progress
                    .is_some_and(|progress| progress.state == raft::ProgressState::Snapshot),
            }
        });
        ClusterView {
            incarnation: self.roster.incarnation,
            epoch: self.table.epoch().get(),
            version: self.roster.version,
            leader: self.leader().unwrap_or(me),
            term: self.raft.raft.term,
            committed: self.raft.raft.raft_log.committed,
            members: members.collect(),
        }
    }
}

fn refused(refusal: ClusterRefusal) -> Response {
    Response::Cluster(ClusterReply::Refused(refusal))
}
