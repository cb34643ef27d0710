//! Between members: raft's messages, and requests of clients that reached a node that does not lead.
//!
//! A request goes to the leader as it came, once. If its fate cannot be known any more it is not sent again: a stream is closed, so
//! that its client attaches and sends again under the same numbers, and a single call is answered.

use std::time::Duration;

use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{
    ClusterCommand, ClusterReply, Failure, MemberId, Plain, Request, RequestId, Response, ToClient,
};
use raft::eraftpb::{Message, MessageType};

use super::intake::{in_use, respond, unavailable};
use super::start::{ELECTION_TICKS, TICK_NANOS};
use super::{Early, Fatal, Input, Node, Output};
use crate::forwards::Visitors;
use crate::peer::PeerMessage;
use crate::routes::{CALLS, ConnectionId};

/// Whoever is silent for so long may be gone.
pub(super) const ELECTION_TIMEOUT: Duration = Duration::from_nanos(TICK_NANOS * ELECTION_TICKS as u64);
/// How long a request waits for somebody to lead. Elections take less than a second; a client that is told can try elsewhere.
const MAX_WAIT_FOR_LEADER: Duration = Duration::from_secs(5);

impl Node {
    pub(super) fn take_peer(&mut self, out: &mut Vec<Output>, from: MemberId, message: PeerMessage) {
        match message {
            PeerMessage::Raft(message) => self.step(from, *message),
            PeerMessage::Request { connection, id, request } => {
                if self.is_leader() {
                    let connection = self.visitors.enter(from, connection);
                    self.take_in(out, Input::Request { connection, id, request });
                } else {
                    let message = PeerMessage::NotLeading { connection, id };
                    out.push(Output::SendPeer { to: from, message });
                }
            }
            PeerMessage::NotLeading { connection: CALLS, id } => {
                // It was not taken in: whoever leads next gets it.
                if let Some((request, since)) = self.forwards.forget_call(id) {
                    self.forwards.turned_away(self.now);
                    self.early.push_back(Early { connection: CALLS, id, request, since });
                }
            }
            PeerMessage::Close { connection: CALLS } => {
                if self.forwards.leader().is_some_and(|(leader, _)| leader == from) {
                    self.lose_calls(out, Some(from));
                }
            }
            PeerMessage::NotLeading { connection, .. } | PeerMessage::Close { connection } => {
                if self.forwards.forget_stream(connection) {
                    out.push(Output::Close(connection));
                }
            }
            PeerMessage::Abandoned { connection, id } => {
                if let Some(connection) = self.visitors.local(from, connection) {
                    self.take_in(out, Input::Abandoned { connection, id });
                }
            }
            PeerMessage::HungUp { connection } => {
                if let Some(connection) = self.visitors.local(from, connection) {
                    self.take_in(out, Input::HungUp(connection));
                }
            }
            PeerMessage::Disconnected { connection } => {
                if let Some(connection) = self.visitors.leave(from, connection) {
                    self.take_in(out, Input::Disconnected(connection));
                }
            }
            PeerMessage::Reply { connection, message } => {
                let waited_for = match &message {
                    ToClient::Response { id, .. } if connection == CALLS => {
                        self.forwards.forget_call(*id).is_some()
                    }
                    _ => self.forwards.has_stream(connection),
                };
                if waited_for {
                    out.push(Output::Send { connection, message });
                }
            }
        }
    }

    fn step(&mut self, from: MemberId, message: Message) {
        let me = self.raft.raft.id;
        let kind = message.get_msg_type();
        // Proposals are made by the leader alone, from unstamped requests, and it alone decides to hand over.
        let only_here = matches!(kind, MessageType::MsgPropose | MessageType::MsgTransferLeader);
        let only_here = only_here && !planted(Bug::StampByDeposedLeader);
        if message.from != from.0 || message.to != me || only_here {
            return;
        }
        self.heard.insert(from, self.running);
        self.note_leader(from);
        if let Some(why) = self.contradiction(&message) {
            self.fatal = Some(Fatal::Invariant(why));
            return;
        }
        if kind == MessageType::MsgTimeoutNow && self.installing.is_some() {
            return;
        }
        // What raft does not want to hear (from somebody who is no member any more, say) has no effect.
        let _ = self.raft.step(message);
        self.draw_election_timeout();
    }

    /// What the leader says and what this member's files say, where both cannot be: somebody's directory was set back. Raft itself
    /// answers some of this as if all were well, and then nothing is committed any more, without a word.
    fn contradiction(&self, message: &Message) -> Option<String> {
        let log = &self.raft.raft.raft_log;
        match message.get_msg_type() {
            MessageType::MsgHeartbeat if message.commit > log.last_index() => Some(format!(
                "the log ends at entry {}, and this member has acknowledged entry {}: the directory is an old copy",
                log.last_index(),
                message.commit
            )),
            // A deposed leader may have had other entries in these places. Whoever leads in this term or a later one has all that is
            // committed.
            MessageType::MsgAppend if message.term >= self.raft.raft.term => {
                let before = (message.index, message.log_term);
                let entries = message.entries.iter().map(|entry| (entry.index, entry.term));
                // What was compacted has no term any more.
                let known = |index: u64| log.term(index).ok().filter(|term| *term != 0);
                std::iter::once(before)
                    .chain(entries)
                    .take_while(|(index, _)| *index <= log.committed)
                    .find_map(|(index, theirs)| {
                        let ours = known(index).filter(|ours| *ours != theirs)?;
                        Some(contradicted(index, ours, theirs))
                    })
            }
            MessageType::MsgSnapshot if message.term >= self.raft.raft.term => {
                let theirs = message.get_snapshot().get_metadata();
                let ours =
                    log.term(theirs.index).ok().filter(|term| *term != 0 && theirs.index <= log.committed);
                ours.filter(|ours| *ours != theirs.term)
                    .map(|ours| contradicted(theirs.index, ours, theirs.term))
            }
            _ => None,
        }
    }

    /// A connection to or from another member has ended.
    pub(super) fn lose_peer(&mut self, out: &mut Vec<Output>, peer: MemberId) {
        for (connection, local) in self.visitors.leave_all(peer) {
            self.take_in(out, Input::Disconnected(local));
            // The other end may have noticed long ago, and sent this on a connection that is up: it must not wait for ever.
            out.push(Output::SendPeer { to: peer, message: PeerMessage::Close { connection } });
        }
        if self.forwards.leader().is_some_and(|(leader, _)| leader == peer) {
            self.lose_leader(out);
        }
        self.raft.report_unreachable(peer.0);
    }

    /// Notices another leader, and requests that have waited too long for one.
    pub(super) fn follow(&mut self, out: &mut Vec<Output>) {
        let present = self.leader().map(|leader| (leader, self.raft.raft.term));
        if self.forwards.leader().is_some_and(|forwarded| Some(forwarded) != present) {
            self.lose_leader(out);
        }
        if let Some(leader) = self.leader() {
            self.answer_transfers(out, Some(leader));
        }
        self.catch_up();
        if self.is_alone() {
            return;
        }
        // Not in the order of their arrival: what was sent in vain comes back behind what arrived meanwhile.
        let now = self.now;
        let is_late = |early: &Early| now.since(early.since).smaller() >= MAX_WAIT_FOR_LEADER;
        if !self.early.iter().any(is_late) {
            return;
        }
        let (late, early) = std::mem::take(&mut self.early).into_iter().partition(is_late);
        self.early = early;
        let late: std::collections::VecDeque<Early> = late;
        for Early { connection, id, .. } in late {
            let why = "no node leads: too few of them run or reach each other";
            respond(out, connection, id, unavailable(why));
        }
    }

    /// Finds out whether this node has come as far as its leader. What it knows to be committed does not say it: a heartbeat names
    /// no more than this node has. So it asks, as a read would, until an answer is here.
    fn catch_up(&mut self) {
        if self.caught_up {
            return;
        }
        if self.is_leader() {
            self.caught_up = self.is_serving();
            return;
        }
        if self.leader().is_none() {
            self.reads.forget_position();
            return;
        }
        if let Some(position) = self.reads.position() {
            self.caught_up = self.applied >= position;
        } else if let Some(context) =
            self.reads.ask_position(self.raft.raft.id, self.raft.raft.term, self.now)
        {
            self.raft.read_index(context);
        }
    }

    /// What was sent to the leader has an unknown fate. Reads have none and are asked again.
    fn lose_leader(&mut self, out: &mut Vec<Output>) {
        self.lose_calls(out, None);
        out.extend(self.forwards.take_streams().into_iter().map(Output::Close));
    }

    /// The calls that were sent to the leader have an unknown fate. If it has only forgotten those of before, it is told that nobody
    /// waits for the others either.
    fn lose_calls(&mut self, out: &mut Vec<Output>, still: Option<MemberId>) {
        let leader = self.forwards.leader().map(|(leader, _)| leader);
        for (id, (request, since)) in self.forwards.take_calls() {
            if let Some(to) = still {
                let message = PeerMessage::Abandoned { connection: CALLS, id };
                out.push(Output::SendPeer { to, message });
            }
            match (request, leader) {
                (request @ Request::Read(_), _) => {
                    self.early.push_back(Early { connection: CALLS, id, request, since });
                }
                (Request::Cluster(ClusterCommand::Transfer { .. }), Some(leader)) => {
                    self.forwards.watch_transfer(id, leader);
                }
                _ => respond(out, CALLS, id, Response::Failed(Failure::OutcomeUnknown)),
            }
        }
    }

    /// A handover that was asked for through this node has its answer in who leads afterwards.
    fn answer_transfers(&mut self, out: &mut Vec<Output>, leader: Option<MemberId>) {
        for (id, before) in self.forwards.take_transfers() {
            let response = match leader.filter(|leader| *leader != before) {
                Some(to) => Response::Cluster(ClusterReply::Transferred { to }),
                None => Response::Failed(Failure::OutcomeUnknown),
            };
            respond(out, CALLS, id, response);
        }
    }

    /// Whether somebody else leads, and has not just said that it does not: then the next one is waited for.
    pub(super) fn can_forward(&self) -> bool {
        let term = self.raft.raft.term;
        let turned_away = |leader| match self.forwards.last_turned_away() {
            Some((by, at)) => by == (leader, term) && self.now.since(at).smaller() < ELECTION_TIMEOUT,
            None => false,
        };
        let other = self.leader().filter(|leader| *leader != self.id());
        !self.is_leader() && other.is_some_and(|leader| !turned_away(leader))
    }

    pub(super) fn forward(&mut self, out: &mut Vec<Output>, early: Early) {
        let Early { connection, id, request, since } = early;
        if let Some((to, connection)) = self.visitors.origin(connection) {
            // Whoever sent it here finds the leader by itself.
            let message = PeerMessage::NotLeading { connection, id };
            return out.push(Output::SendPeer { to, message });
        }
        if Visitors::is_visitor(connection) {
            // Gone meanwhile: nobody asks for this any more.
            return;
        }
        let Some(to) = self.leader() else { return };
        let leader = (to, self.raft.raft.term);
        // A leader that knows what this is judges by itself whether it may stand in the log.
        let knows = self.known_versions.get(&to).copied().unwrap_or(0);
        let request = match in_use(request, self.roster.version.max(knows)) {
            Ok(request) => request,
            Err(response) => return respond(out, connection, id, response),
        };
        if self.forwards.leader().is_some_and(|before| before != leader) {
            // Met in this very turn: what the one before was sent must not count as sent to this one.
            self.lose_leader(out);
        }
        self.forwards.sent(leader, connection, id, &request, since);
        let message = PeerMessage::Request { connection, id, request };
        out.push(Output::SendPeer { to, message });
    }

    /// Nobody waits for this request any more, if it was sent to the leader.
    pub(super) fn abandon_forwarded(
        &mut self,
        out: &mut Vec<Output>,
        connection: ConnectionId,
        id: RequestId,
    ) {
        let leader = self.forwards.leader();
        if connection == CALLS
            && self.forwards.forget_call(id).is_some()
            && let Some((to, _)) = leader
        {
            out.push(Output::SendPeer { to, message: PeerMessage::Abandoned { connection, id } });
        }
    }

    /// A client that speaks with the leader through this node has gone.
    pub(super) fn disconnect_forwarded(&mut self, out: &mut Vec<Output>, connection: ConnectionId) {
        let leader = self.forwards.leader();
        if self.forwards.forget_stream(connection)
            && let Some((to, _)) = leader
        {
            out.push(Output::SendPeer { to, message: PeerMessage::Disconnected { connection } });
        }
    }

    /// Calls that the leader keeps waiting would keep this node from stopping.
    pub(super) fn withdraw_forwarded(&mut self, out: &mut Vec<Output>) {
        self.answer_transfers(out, None);
        let holds = |request: &Request| {
            matches!(request, Request::Plain { plain: Plain::Command { hold: true, .. }, .. })
        };
        let held: Vec<RequestId> =
            self.forwards.calls().filter(|(_, request)| holds(request)).map(|(id, _)| id).collect();
        for id in held {
            self.abandon_forwarded(out, CALLS, id);
            // The leader may have granted it already, or may yet before it hears that nobody waits.
            respond(out, CALLS, id, Response::Failed(Failure::OutcomeUnknown));
        }
    }

    /// What is meant for clients at other members goes to those.
    pub(super) fn answer_visitors(&mut self, out: &mut [Output]) {
        for output in out.iter_mut() {
            let (Output::Send { connection: local, .. } | Output::Close(local)) = output else { continue };
            if !Visitors::is_visitor(*local) {
                continue;
            }
            let Some((to, connection)) = self.visitors.origin(*local) else {
                // Gone meanwhile; a message to nobody is dropped by whoever hands it out.
                continue;
            };
            let message = match std::mem::replace(output, Output::Close(ConnectionId(u64::MAX))) {
                Output::Send { message, .. } => PeerMessage::Reply { connection, message },
                _ => PeerMessage::Close { connection },
            };
            *output = Output::SendPeer { to, message };
        }
        if !self.is_leader() && self.early.is_empty() && self.reads.is_empty() {
            // Nothing of theirs is left here, and they do not say any more when they go.
            self.visitors.clear();
        }
    }

    /// Whether a member was heard of within the last election timeout. Raft's own note is not enough: it is wiped at every look
    /// for the quorum, and says nothing until the next answers are here.
    pub(super) fn is_heard(&self, id: MemberId) -> bool {
        let noted = self.raft.raft.prs().get(id.0).is_some_and(|progress| progress.recent_active);
        let lately = |at: &Duration| self.running.saturating_sub(*at) < ELECTION_TIMEOUT;
        noted || self.heard.get(&id).is_some_and(lately)
    }
}

fn contradicted(index: u64, ours: u64, theirs: u64) -> String {
    format!(
        "entry {index} is committed here as one of term {ours}, and the leader has one of term {theirs} in its place: the directory of a \
         member was set back to an old copy, of this one or of those that elected the leader"
    )
}
