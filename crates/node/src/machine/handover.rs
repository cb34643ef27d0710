//! Handing leadership over: asked for, in order to stop, or because the disk does not answer.
//!
//! What was taken in is finished first, and what arrives meanwhile waits for the new leader, except renewals: log time goes on, and
//! sessions that live must not be found overdue by the last entries of this leadership. While raft hands over, nothing is
//! proposed: raft would drop it.

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{ClusterRefusal, ClusterReply, Failure, MemberId, RequestId, Response};

use super::intake::respond;
use super::{Node, Output};
use crate::routes::ConnectionId;

/// A write that is on its way for so long has a disk that stands still: others can do better.
const STUCK_DISK: Duration = Duration::from_millis(500);
/// How long a handover may take, also in order to stop.
const MAX_HANDOVER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Handover {
    to: MemberId,
    began: Reading,
    /// Whether raft was told.
    pub(super) asked: bool,
    origins: Vec<(ConnectionId, RequestId)>,
}

impl Node {
    /// The voter that is furthest, among those that were heard of lately.
    pub(super) fn successor(&self) -> Option<MemberId> {
        let progress = self.raft.raft.prs();
        let able = self.other_voters().filter_map(|id| Some((id, progress.get(id.0)?)));
        let able = able.filter(|(id, _)| self.is_heard(*id));
        able.max_by_key(|(id, progress)| (progress.matched, std::cmp::Reverse(*id))).map(|(id, _)| id)
    }

    /// Whether a member has written all that this one has not: where every disk is slow, moving on makes nothing faster.
    fn has_everything(&self, id: MemberId) -> bool {
        let last = self.raft.raft.raft_log.last_index();
        self.raft.raft.prs().get(id.0).is_some_and(|progress| progress.matched >= last)
    }

    pub(super) fn begin_handover(&mut self, to: MemberId, origin: Option<(ConnectionId, RequestId)>) {
        match &mut self.handover {
            Some(handover) => handover.origins.extend(origin),
            None => {
                let origins = origin.into_iter().collect();
                self.owe_last_stamp();
                self.handover = Some(Handover { to, began: self.now, asked: false, origins });
            }
        }
    }

    /// The disk has room, or not.
    pub(super) fn note_space(&mut self, enough: bool) {
        self.full = !enough;
        if enough {
            self.passed_on_full = false;
        }
        self.pass_on_if_full();
    }

    /// A leader without room lets the next one try, once until it has room again: that one may have none either, and passes it on in
    /// the same way, so that leadership comes to rest with one that has room or has been round.
    pub(super) fn pass_on_if_full(&mut self) {
        if !self.full || self.passed_on_full || !self.is_leader() {
            return;
        }
        let me = self.id();
        let heard = self.other_voters().filter(|id| self.is_heard(*id));
        // In a ring: those with greater ids first.
        if let Some(to) = heard.min_by_key(|id| (*id < me, *id)) {
            self.passed_on_full = true;
            self.begin_handover(to, None);
        }
    }

    /// Drives a handover, and begins one if the disk stands still.
    pub(super) fn hand_over(&mut self, out: &mut Vec<Output>) {
        if !self.is_leader() {
            return self.after_handover(out);
        }
        if self.handover.is_none()
            && self.write_waited >= STUCK_DISK
            && let Some(to) = self.successor().filter(|to| self.has_everything(*to))
        {
            self.begin_handover(to, None);
        }
        let stuck = self.write_waited >= STUCK_DISK;
        // Renewals may arrive for ever; their clients send those that are left again.
        let finished = self.queue.has_only_renewals()
            && !self.owes_stamp
            && self.proposed.is_empty()
            && self.writes.is_empty();
        let Some(handover) = &mut self.handover else { return };
        if !handover.asked && (finished || stuck) {
            handover.asked = true;
            self.raft.transfer_leader(handover.to.0);
            return;
        }
        let given_up = handover.asked && self.raft.raft.lead_transferee.is_none();
        if given_up || self.now.since(handover.began).smaller() >= MAX_HANDOVER {
            self.raft.raft.abort_leader_transfer();
            let origins = self.handover.take().map(|handover| handover.origins).unwrap_or_default();
            let refused = ClusterReply::Refused(ClusterRefusal::NobodyToTakeOver);
            for (connection, id) in origins {
                respond(out, connection, id, Response::Cluster(refused.clone()));
            }
            if self.leaving.take().is_some() {
                self.drain(out);
            }
        }
    }

    fn after_handover(&mut self, out: &mut Vec<Output>) {
        let (leader, now) = (self.leader(), self.now);
        let is_late = |since: Reading| now.since(since).smaller() >= MAX_HANDOVER;
        let over = self.handover.take_if(|handover| leader.is_some() || is_late(handover.began));
        for (connection, id) in over.map(|handover| handover.origins).unwrap_or_default() {
            let response = match leader {
                Some(to) => Response::Cluster(ClusterReply::Transferred { to }),
                None => Response::Failed(Failure::OutcomeUnknown),
            };
            respond(out, connection, id, response);
        }
        let Some(since) = self.leaving else { return };
        if is_late(since) || (self.leader().is_some() && self.early.is_empty()) {
            self.leaving = None;
            self.drain(out);
        }
    }

    /// Stops: a leader of others hands over first, so that they need not notice by its silence.
    pub(super) fn leave(&mut self, out: &mut Vec<Output>) {
        if self.draining || self.leaving.is_some() {
            return;
        }
        match self.successor() {
            Some(to) if self.is_leader() => {
                self.leaving = Some(self.now);
                self.begin_handover(to, None);
            }
            _ => {
                // What nobody else can confirm might never be written.
                if self.is_alone() {
                    self.owe_last_stamp();
                }
                self.drain(out);
            }
        }
    }
}
