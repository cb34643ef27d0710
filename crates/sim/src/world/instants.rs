//! Instants at which faults find most: around an election, an installed snapshot, an answer, an expiry.

use leasehold_core::protocol::{MemberId, Response, ToClient};
use leasehold_core::{ItemKind, Reply};
use leasehold_node::PeerMessage;
use raft::eraftpb::MessageType;

use super::faults::NEAR;
use super::nodes::End;
use super::{Event, Phase, World};
use crate::plan::Fault;
use crate::record::{Fault as What, Machine};
use crate::trace::{MICRO, MILLI};

/// One answer of so many is followed by a fault.
const ANSWERS: u64 = 500;
/// One word of so many that a node would vote for somebody is the last that others hear of the candidate.
const PROMISES: u64 = 6;
/// One vote of so many is the last thing its voter does.
const VOTES: u64 = 3;

impl World {
    /// Something just happened after which a fault is worth more than at any other time.
    pub(super) fn interesting(&mut self) {
        if self.phase == Phase::Faults && self.chance.one_in(6) {
            let soon = self.now + self.chance.below(NEAR);
            self.queue.push(soon, Event::FaultNow);
        }
    }

    /// An answer leaves a node: right behind it, or right before it arrives, something may go wrong.
    pub(super) fn answer_leaves(&mut self, messages: &[ToClient]) {
        let matters = |message: &ToClient| match message {
            ToClient::Response { response, .. } => {
                matches!(response, Response::Reply(Reply::Renewed(_) | Reply::Opened(_)))
            }
            ToClient::Items { items, .. } => items
                .iter()
                .any(|item| matches!(item.kind, ItemKind::WaitGranted { .. } | ItemKind::LeaseEnded { .. })),
            ToClient::Hint { .. } | ToClient::Watched { .. } => false,
        };
        if self.phase == Phase::Faults && self.chance.one_in(ANSWERS) && messages.iter().any(matters) {
            let soon = self.now + self.chance.below(500 * MICRO);
            self.queue.push(soon, Event::FaultNow);
        }
    }

    /// A vote leaves a node, or its word that it would vote so: right behind it something may go wrong.
    pub(super) fn vote_leaves(&mut self, at: usize, to: MemberId, message: &PeerMessage) {
        let PeerMessage::Raft(raft) = message else { return };
        let (is_vote, of) = match raft.get_msg_type() {
            MessageType::MsgRequestPreVoteResponse => (false, PROMISES),
            MessageType::MsgRequestVoteResponse => (true, VOTES),
            _ => return,
        };
        let is_on = self.phase == Phase::Faults && self.plan.faults.has(Fault::Kill);
        if raft.reject || !is_on || !self.chance.one_in(of) {
            return;
        }
        let Some(candidate) = self.slot_of(to) else { return };
        let life = self.processes[at].life;
        if is_vote {
            let soon = self.now + self.chance.below(2 * MILLI);
            self.queue.push(soon, Event::VoterDies { at, life, candidate });
        } else {
            self.queue.push(self.now + 1, Event::CandidateCut { at, candidate });
        }
    }

    /// A candidate is heard by one voter and by nobody else.
    pub(super) fn candidate_cut(&mut self, at: usize, candidate: usize) {
        if self.phase != Phase::Faults {
            return;
        }
        self.totals.faults += 1;
        self.trace.say(self.now, || format!("fault: n{} is heard by n{} alone", candidate + 1, at + 1));
        let length = self.some_length();
        self.note_for(Machine::World, What::Network, true, length);
        for other in (0..self.processes.len()).filter(|other| *other != at) {
            self.cut_one(candidate, other, length);
            self.cut_one(other, candidate, length);
        }
    }

    /// A voter dies and is back before the election is over: it must not vote for another.
    pub(super) fn voter_dies(&mut self, at: usize, life: u32, candidate: usize) {
        let own = &self.processes[at];
        if self.phase != Phase::Faults || own.life != life || !own.is_running() {
            return;
        }
        self.totals.faults += 1;
        self.trace
            .say(self.now, || format!("fault: n{} dies behind its vote for n{}", at + 1, candidate + 1));
        if self.chance.one_in(2) {
            let length = self.some_length();
            self.note_for(Machine::World, What::Network, true, length);
            // It does not hear from whom it has made a leader.
            self.cut_one(candidate, at, length);
        }
        self.kill(at, End::Killed);
        let (life, soon) = (self.processes[at].life, self.now + self.chance.below(20 * MILLI));
        self.queue.push(soon, Event::Starts { at, life });
    }

    /// A point near the end of somebody's belief, or near the moment at which the service may give the lease to the next.
    pub(super) fn near_a_deadline(&mut self) -> Option<u64> {
        let client = self.chance.index(self.clients.len());
        let own = &self.clients[client];
        let token = own.app.held.first()?.token;
        let lease = own.machine.as_ref()?.lease(token)?;
        let deadline = own.clock.when(self.now, lease.until());
        let ttl = self.plan.ttl.1 * MILLI;
        let early = self.chance.below(20 * MILLI);
        let late = if self.chance.one_in(2) { 0 } else { self.chance.below(ttl / 4 + 1) };
        (deadline < self.now + 2 * ttl).then(|| deadline.saturating_sub(early) + late)
    }
}
