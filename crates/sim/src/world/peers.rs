//! Between nodes: a connection in each direction between any two, kept up as the service keeps it.
//!
//! What is sent on one connection arrives in order, late or, when the connection breaks, not at all; both ends hear of a break, each at its own
//! time. Only messages of raft may be lost, doubled or overtaken one by one: raft repeats its own, and nothing else relies on more. A cut holds
//! back what is sent, as TCP does, until it is healed or the connection is given up.

use leasehold_core::protocol::MemberId;
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::{Input, PeerMessage};
use raft::eraftpb::MessageType;

use super::process::Standing;
use super::{Event, World};
use crate::plan::Fault;
use crate::trace::{MICRO, MILLI, SECOND};

/// Data that is not acknowledged for so long breaks a connection.
const UNACKNOWLEDGED: u64 = 1_500 * MILLI;
/// In millionths: something of everything arrives as it was sent.
const MOST_DISORDER: u64 = 500_000;
/// Pauses between attempts to connect.
const SHORTEST_PAUSE: u64 = 20 * MILLI;
const LONGEST_PAUSE: u64 = 250 * MILLI;

/// The present version of what may stand in the log, which a cluster that is upgraded comes to.
pub(super) const NEXT_VERSION: u32 = CLUSTER_VERSION;
/// What the release knows that such a cluster begins with.
pub(super) const OLD_VERSION: u32 = CLUSTER_VERSION - 1;

/// The way from one node to another.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) up: bool,
    /// Counts connections.
    number: u32,
    latest: u64,
    /// Nothing arrives while this is so.
    pub(super) cut: bool,
    stalled: Vec<PeerMessage>,
    /// Who is thought to be there.
    wanted: Option<MemberId>,
    dialling: bool,
    pause: u64,
    /// Its sender is gone: it ends when what was sent has arrived.
    dying: bool,
}

fn is_snapshot(message: &PeerMessage) -> bool {
    matches!(message, PeerMessage::Raft(raft) if raft.get_msg_type() == MessageType::MsgSnapshot)
}

impl World {
    fn link(&mut self, from: usize, to: usize) -> &mut Link {
        let slots = self.processes.len();
        &mut self.links[from * slots + to]
    }

    pub(super) fn is_cut(&self, from: usize, to: usize) -> bool {
        self.links[from * self.processes.len() + to].cut
    }

    pub(super) fn slot_of(&self, member: MemberId) -> Option<usize> {
        self.processes.iter().position(|own| own.member.id == member && own.standing == Standing::Used)
    }

    /// Makes sure that every other member is dialled.
    pub(super) fn keep_links(&mut self, at: usize) {
        let membership = std::sync::Arc::clone(&self.processes[at].membership);
        let others = membership.members.iter().map(|(member, _)| member.id);
        let met = self.processes[at].met.clone();
        for id in others.chain(met).filter(|id| *id != membership.me && !membership.removed.contains(id)) {
            if let Some(to) = self.slot_of(id) {
                self.wants_link(at, to, id);
            }
        }
        for removed in &membership.removed {
            if let Some(to) = self.slot_of(*removed) {
                // Both directions end; it comes again, and hears that it was removed.
                self.break_link(to, at);
                self.break_link(at, to);
            }
        }
    }

    fn wants_link(&mut self, from: usize, to: usize, wanted: MemberId) {
        let (life, at) = (self.processes[from].life, self.now + MICRO);
        let link = self.link(from, to);
        if link.wanted != Some(wanted) {
            link.wanted = Some(wanted);
            if link.up {
                self.break_link(from, to);
            }
        }
        let link = self.link(from, to);
        if !link.up && !link.dialling {
            link.dialling = true;
            link.pause = SHORTEST_PAUSE;
            self.queue.push(at, Event::PeerDials { from, to, life });
        }
    }

    pub(super) fn peer_dials(&mut self, from: usize, to: usize, life: u32) {
        if self.processes[from].life != life || !self.processes[from].is_running() {
            return;
        }
        let is_gone =
            self.processes[from].membership.removed.iter().any(|id| self.link_wants(from, to) == Some(*id));
        if is_gone {
            self.link(from, to).dialling = false;
            return;
        }
        match self.try_dial(from, to) {
            Dialled::Accepted => self.link_comes_up(from, to),
            Dialled::Removed => self.was_removed(from),
            Dialled::TooOld => self.is_too_old(from),
            Dialled::NotNow => {
                let jitter = self.net.below(5 * MILLI);
                let link = self.link(from, to);
                let pause = link.pause;
                link.pause = (pause * 2).min(LONGEST_PAUSE);
                self.queue.push(self.now + pause + jitter, Event::PeerDials { from, to, life });
            }
        }
    }

    fn link_wants(&self, from: usize, to: usize) -> Option<MemberId> {
        self.links[from * self.processes.len() + to].wanted
    }

    fn try_dial(&self, from: usize, to: usize) -> Dialled {
        let (own, other) = (&self.processes[from], &self.processes[to]);
        let reachable = other.is_running() && !other.paused && !own.paused;
        if !reachable || self.is_cut(from, to) || self.is_cut(to, from) {
            return Dialled::NotNow;
        }
        if self.link_wants(from, to) != Some(other.member.id) {
            return Dialled::NotNow;
        }
        let (theirs, ours) = (own.membership.incarnation, other.membership.incarnation);
        if other.membership.removed.contains(&own.member.id) {
            return Dialled::Removed;
        }
        if theirs.is_known() && ours.is_known() && theirs != ours {
            return Dialled::NotNow;
        }
        if ours.is_known() && !theirs.is_known() && other.membership.member(own.member.id).is_none() {
            return Dialled::NotNow;
        }
        if own.knows < other.membership.version.min(other.knows) {
            return Dialled::TooOld;
        }
        Dialled::Accepted
    }

    fn link_comes_up(&mut self, from: usize, to: usize) {
        if self.link(from, to).up {
            self.break_link(from, to);
        }
        let now = self.now;
        let link = self.link(from, to);
        link.up = true;
        link.dying = false;
        link.dialling = false;
        link.number += 1;
        link.latest = now;
        let (met, version, soon) = (self.processes[from].member.id, self.processes[from].knows, self.soon());
        self.processes[to].push(Input::PeerKnows { member: met, version }, soon);
        self.processes[to].met.insert(met);
        self.wants_link(to, from, met);
    }

    pub(super) fn send_peer(&mut self, at: usize, member: MemberId, message: PeerMessage) {
        let Some(to) = self.slot_of(member) else { return self.undelivered(at, None, member, &message) };
        if is_snapshot(&message) {
            return self.send_snapshot(at, to, member, message);
        }
        if !self.link(at, to).up {
            return self.undelivered(at, Some(to), member, &message);
        }
        let is_raft = matches!(message, PeerMessage::Raft(_));
        let calm = self.phase == super::Phase::Healing;
        if is_raft && !calm && self.net.millionths(self.plan.peer_loss) {
            return;
        }
        let disorder = match &message {
            PeerMessage::Raft(raft) if !calm => {
                // What confirms that somebody leads must be worth nothing when it comes once more.
                let confirms =
                    raft.get_msg_type() == MessageType::MsgHeartbeatResponse && !raft.context.is_empty();
                if confirms { (self.plan.disorder * 10).min(MOST_DISORDER) } else { self.plan.disorder }
            }
            _ => 0,
        };
        let takes = self.net.between(self.plan.peer_delay.0, self.peer_delay_now());
        if self.net.millionths(disorder) {
            self.disorder(at, to, &message);
            if self.plan.faults.has(Fault::PeerReorder) {
                let (link, late) = (self.link(at, to).number, self.now + takes * 3);
                let message = Box::new(message);
                return self.queue.push(late, Event::PeerArrives { from: at, to, link, message });
            }
        }
        let now = self.now;
        let link = self.link(at, to);
        if link.cut {
            link.stalled.push(message);
            if link.stalled.len() == 1 {
                let number = link.number;
                self.queue.push(now + UNACKNOWLEDGED, Event::LinkTimesOut { from: at, to, link: number });
            }
            return;
        }
        link.latest = link.latest.max(now + takes);
        let (link, arrives) = (link.number, link.latest);
        self.queue.push(arrives, Event::PeerArrives { from: at, to, link, message: Box::new(message) });
    }

    fn peer_delay_now(&self) -> u64 {
        if self.phase == super::Phase::Healing {
            self.plan.peer_delay.1.min(2 * MILLI).max(self.plan.peer_delay.0)
        } else {
            self.plan.peer_delay.1
        }
    }

    /// The same message once more, soon or much later.
    fn disorder(&mut self, from: usize, to: usize, message: &PeerMessage) {
        let link = self.link(from, to).number;
        let (twice, again) =
            (self.plan.faults.has(Fault::PeerDuplicate), self.plan.faults.has(Fault::PeerReplay));
        if twice {
            let at = self.now + self.net.between(self.plan.peer_delay.0, self.plan.peer_delay.1 * 2);
            self.queue.push(at, Event::PeerArrives { from, to, link, message: Box::new(message.clone()) });
        }
        if again {
            let latest = if self.net.one_in(2) { SECOND } else { 5 * SECOND };
            let at = self.now + self.net.below(latest);
            self.queue.push(at, Event::PeerArrives { from, to, link, message: Box::new(message.clone()) });
        }
    }

    fn send_snapshot(&mut self, at: usize, to: usize, member: MemberId, message: PeerMessage) {
        let fits = matches!(self.try_dial(at, to), Dialled::Accepted) || self.link(at, to).up;
        let cut = self.is_cut(at, to) || self.is_cut(to, at);
        let takes = 2 * MILLI + self.net.between(self.plan.peer_delay.0, self.peer_delay_now()) * 3;
        let life = self.processes[at].life;
        let arrived = fits && !cut && self.processes[to].is_running();
        self.queue.push(self.now + takes, Event::SnapshotSent { at, life, to: member, arrived });
        if arrived {
            let link = self.link(at, to).number;
            self.queue.push(
                self.now + takes,
                Event::PeerArrives { from: at, to, link, message: Box::new(message) },
            );
        }
    }

    /// A message that cannot be sent. Raft repeats its own; for any other both sides must know that they have lost each other.
    fn undelivered(&mut self, at: usize, to: Option<usize>, member: MemberId, message: &PeerMessage) {
        let soon = self.soon();
        match message {
            PeerMessage::Raft(_) => {
                if is_snapshot(message) {
                    self.processes[at].push(Input::SnapshotSent { to: member, arrived: false }, soon);
                }
            }
            PeerMessage::Request { connection, id, .. } => {
                let message = PeerMessage::NotLeading { connection: *connection, id: *id };
                self.processes[at].push(Input::Peer { from: member, message }, soon);
            }
            _ => {
                self.processes[at].push(Input::PeerLost(member), soon);
                if let Some(to) = to {
                    self.break_link(to, at);
                }
            }
        }
    }

    pub(super) fn peer_arrives(&mut self, from: usize, to: usize, link: u32, message: Box<PeerMessage>) {
        let known = self.link(from, to);
        if !is_snapshot(&message) && (!known.up || known.number != link) {
            return;
        }
        let (theirs, ours) =
            (self.processes[from].membership.incarnation, self.processes[to].membership.incarnation);
        if theirs.is_known() && ours.is_known() && theirs != ours {
            return self.break_link(from, to);
        }
        self.trace.note(self.now, 4, (from as u64) << 8 | to as u64);
        let soon = self.soon();
        let from = self.processes[from].member.id;
        self.processes[to].push(Input::Peer { from, message: *message }, soon);
    }

    /// A connection ends, and both ends hear of it.
    pub(super) fn break_link(&mut self, from: usize, to: usize) {
        let link = self.link(from, to);
        if !link.up {
            return;
        }
        link.up = false;
        link.dying = false;
        link.number += 1;
        link.stalled.clear();
        link.dialling = false;
        let notices = (self.net.below(MILLI), self.net.below(20 * MILLI));
        let (sender, receiver) = (&self.processes[from], &self.processes[to]);
        let to_sender = Event::PeerLost { at: from, life: sender.life, peer: receiver.member.id };
        let to_receiver = Event::PeerLost { at: to, life: receiver.life, peer: sender.member.id };
        let (life, is_running) = (sender.life, sender.is_running());
        self.queue.push(self.now + notices.0, to_sender);
        self.queue.push(self.now + notices.1, to_receiver);
        if is_running {
            let link = self.link(from, to);
            link.dialling = true;
            link.pause = SHORTEST_PAUSE;
            self.queue.push(self.now + SHORTEST_PAUSE, Event::PeerDials { from, to, life });
        }
    }

    pub(super) fn link_times_out(&mut self, from: usize, to: usize, link: u32) {
        let known = self.link(from, to);
        if known.number != link || !known.up || !(known.cut || known.dying) {
            return;
        }
        self.break_link(from, to);
        // What the other direction sends is not acknowledged either.
        if self.is_cut(from, to) {
            self.break_link(to, from);
        }
    }

    pub(super) fn peer_lost(&mut self, at: usize, life: u32, peer: MemberId) {
        if self.processes[at].life == life {
            let soon = self.soon();
            self.processes[at].push(Input::PeerLost(peer), soon);
        }
    }

    pub(super) fn snapshot_sent(&mut self, at: usize, life: u32, to: MemberId, arrived: bool) {
        if self.processes[at].life == life {
            let soon = self.soon();
            self.processes[at].push(Input::SnapshotSent { to, arrived }, soon);
        }
    }

    /// What a dead process had sent still arrives; what was on its way to it is lost.
    pub(super) fn links_of_the_dead(&mut self, at: usize) {
        for other in (0..self.processes.len()).filter(|other| *other != at) {
            self.break_link(other, at);
            let now = self.now;
            let link = self.link(at, other);
            link.dialling = false;
            if link.up {
                link.dying = true;
                let (end, number) = (link.latest.max(now) + 1, link.number);
                self.queue.push(end, Event::LinkTimesOut { from: at, to: other, link: number });
            }
        }
    }

    pub(super) fn set_cut(&mut self, from: usize, to: usize, cut: bool) {
        let (takes, now) = (self.plan.peer_delay.1, self.now);
        let link = self.link(from, to);
        link.cut = cut;
        if cut || link.stalled.is_empty() {
            return;
        }
        let (stalled, number) = (std::mem::take(&mut link.stalled), link.number);
        link.latest = link.latest.max(now + takes);
        let arrives = link.latest;
        for message in stalled {
            let message = Box::new(message);
            self.queue.push(arrives, Event::PeerArrives { from, to, link: number, message });
        }
    }
}

/// How an attempt to connect ended.
enum Dialled {
    Accepted,
    /// Nobody there, or nobody that lets this one in yet.
    NotNow,
    /// This node was removed.
    Removed,
    /// The other one says that this one cannot read what stands in the log.
    TooOld,
}
