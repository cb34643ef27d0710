//! The network: a connection in each direction between any two processes.
//!
//! What is sent on one connection arrives in order, late or, when the connection breaks, not at all. Both ends hear of a break, each
//! at its own time. Messages of raft may be lost one by one: queues are bounded, and raft repeats them.

use std::collections::{BTreeMap, VecDeque};

use leasehold_core::planted::{Bug, planted};
use leasehold_node::{CALLS, PeerMessage};
use raft::eraftpb::MessageType;

use crate::actor::tag_of;
use crate::random::Random;

/// On its way.
enum Parcel {
    Message(PeerMessage),
    /// The sender is gone, and what it had sent is all here.
    Broken,
}

#[derive(Default)]
struct Link {
    queue: VecDeque<(u64, Parcel)>,
    cut: bool,
    latest: u64,
}

/// What the network tells a process.
pub(crate) enum News {
    Arrived { from: usize, message: PeerMessage },
    Lost { peer: usize },
    SnapshotSent { to: usize, arrived: bool },
}

pub(crate) struct Net {
    links: BTreeMap<(usize, usize), Link>,
    /// Reports of broken connections, with the time at which they are noticed.
    reports: Vec<(u64, usize, News)>,
    /// Nanoseconds that a message takes, at least and at most.
    pub(crate) delay: (u64, u64),
    /// So many of a thousand messages of raft are lost.
    pub(crate) loss: u64,
    /// On this way nothing of the log arrives, everything else does.
    pub(crate) held_up: Option<(usize, usize)>,
    pub(crate) random: Random,
}

fn is_snapshot(message: &PeerMessage) -> bool {
    matches!(message, PeerMessage::Raft(raft) if raft.get_msg_type() == MessageType::MsgSnapshot)
}

fn brings_entries(message: &PeerMessage) -> bool {
    let PeerMessage::Raft(raft) = message else { return false };
    matches!(raft.get_msg_type(), MessageType::MsgAppend | MessageType::MsgSnapshot)
}

impl Net {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            links: BTreeMap::new(),
            reports: Vec::new(),
            delay: (1_000_000, 1_000_000),
            loss: 0,
            held_up: None,
            random: Random::new(seed),
        }
    }

    /// Sends, and says what the sender hears at once.
    pub(crate) fn send(&mut self, from: usize, to: usize, message: PeerMessage, now: u64) -> Option<News> {
        let link = self.links.entry((from, to)).or_default();
        let is_raft = matches!(message, PeerMessage::Raft(_));
        if link.cut {
            if is_raft {
                return is_snapshot(&message).then_some(News::SnapshotSent { to, arrived: false });
            }
            // What cannot be said must not be waited for: the way back is broken as well, so that the other end notices.
            self.lose_queue(to, from, now);
            self.reports.push((now, to, News::Lost { peer: from }));
            return Some(News::Lost { peer: to });
        }
        if self.held_up == Some((from, to)) && brings_entries(&message) {
            return None;
        }
        if is_raft && !is_snapshot(&message) && self.random.below(1_000) < self.loss {
            return None;
        }
        if matches!(message, PeerMessage::Reply { connection: CALLS, .. })
            && planted(Bug::ForwardLost)
            && self.random.below(4) == 0
        {
            return None;
        }
        let takes = self.delay.0 + self.random.below(self.delay.1 - self.delay.0 + 1);
        link.latest = link.latest.max(now + takes);
        let tagged = matches!(&message, PeerMessage::Request { request, .. } if tag_of(request).is_some());
        if tagged && planted(Bug::ForwardedTwice) {
            link.queue.push_back((link.latest, Parcel::Message(message.clone())));
        }
        link.queue.push_back((link.latest, Parcel::Message(message)));
        None
    }

    /// Everything whose time has come, and to whom.
    pub(crate) fn due(&mut self, now: u64) -> Vec<(usize, News)> {
        let mut news = Vec::new();
        for (&(from, to), link) in &mut self.links {
            while link.queue.front().is_some_and(|(at, _)| *at <= now) {
                match link.queue.pop_front().expect("the front was just looked at").1 {
                    Parcel::Message(message) => {
                        if is_snapshot(&message) {
                            news.push((from, News::SnapshotSent { to, arrived: true }));
                        }
                        news.push((to, News::Arrived { from, message }));
                    }
                    Parcel::Broken => news.push((to, News::Lost { peer: from })),
                }
            }
        }
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.reports).into_iter().partition(|(at, ..)| *at <= now);
        self.reports = later;
        news.extend(due.into_iter().map(|(_, to, report)| (to, report)));
        news
    }

    /// Cuts what `from` sends to `to`. The ends notice so many nanoseconds later.
    pub(crate) fn cut(&mut self, from: usize, to: usize, now: u64, noticed: (u64, u64)) {
        let link = self.links.entry((from, to)).or_default();
        if link.cut {
            return;
        }
        link.cut = true;
        self.lose_queue(from, to, now);
        self.reports.push((now + noticed.0, from, News::Lost { peer: to }));
        self.reports.push((now + noticed.1, to, News::Lost { peer: from }));
    }

    pub(crate) fn heal(&mut self, from: usize, to: usize) {
        self.links.entry((from, to)).or_default().cut = false;
    }

    pub(crate) fn heal_all(&mut self) {
        self.links.values_mut().for_each(|link| link.cut = false);
    }

    /// A process is gone. What it had sent still arrives; what was on its way to it is lost.
    pub(crate) fn gone(&mut self, process: usize, others: usize, now: u64) {
        for other in (0..others).filter(|other| *other != process) {
            let out = self.links.entry((process, other)).or_default();
            out.queue.push_back((out.latest.max(now), Parcel::Broken));
            self.lose_queue(other, process, now);
            self.reports.push((now, other, News::Lost { peer: process }));
        }
    }

    fn lose_queue(&mut self, from: usize, to: usize, now: u64) {
        let link = self.links.entry((from, to)).or_default();
        let lost: Vec<Parcel> = link.queue.drain(..).map(|(_, parcel)| parcel).collect();
        link.latest = now;
        for parcel in lost {
            match parcel {
                Parcel::Message(message) if is_snapshot(&message) => {
                    // The sender of a snapshot notices with its connection, and says so beside the loss.
                    self.reports.push((now, from, News::SnapshotSent { to, arrived: false }));
                }
                Parcel::Broken => self.reports.push((now, to, News::Lost { peer: from })),
                Parcel::Message(_) => {}
            }
        }
    }
}
