//! What must be true at every moment, whatever the test is about.
//!
//! Entries that a node has applied are replayed into one table. Every node has applied the same entries, has the same table
//! behind each of them, and says nothing that replaying did not give. Nobody votes twice in a term, a term has one leader, tokens rise, log time neither falls nor
//! outruns real time, and a request takes effect once, or not at all if its caller was told so. What is violated is
//! kept as a sentence: tests with a mistake planted want to find one.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::protocol::{Change, Changes, Failure, RequestId, Response, ToClient};
use leasehold_core::{
    Answer, Command, Config, Event, Item, ItemNumber, LeaseTable, Op, Refusal, Reply, Revision, Sequence,
    SessionId, Token, WaitEnding,
};
use leasehold_node::payload::Payload;
use leasehold_node::{LogEntry, Node};
use raft::eraftpb::{Message, MessageType};

/// A plain acquire carries a tag as its value, so that it can be found in the log.
pub(crate) type Tag = u64;

pub(crate) struct Checks {
    pub(crate) violations: Vec<String>,
    leaders: BTreeMap<u64, u64>,
    /// For whom a member voted in a term.
    votes: BTreeMap<(u64, u64), u64>,
    /// Who has asked for votes, or whether it might.
    candidates: BTreeSet<u64>,
    committed: BTreeMap<u64, LogEntry>,
    applied: u64,
    pub(crate) table: LeaseTable,
    /// A hash of the table behind each entry.
    states: BTreeMap<u64, u64>,
    /// When an entry was first handed to a disk.
    proposed: BTreeMap<(u64, u64), u64>,
    /// Stamps of committed entries, with the real time at which they were proposed.
    stamps: Vec<(u64, u64)>,
    newest: Option<Token>,
    replies: BTreeMap<String, u64>,
    items: BTreeMap<(SessionId, ItemNumber), Item>,
    pub(crate) changes: Vec<Changes>,
    tags: BTreeMap<Tag, u64>,
    /// Requests with a tag: whether their callers were told that nothing was done.
    refused: BTreeSet<Tag>,
    asked: BTreeMap<RequestId, Tag>,
    answered: BTreeSet<RequestId>,
    /// Clocks of nodes may be off by so many millionths.
    drift: u64,
}

impl Checks {
    pub(crate) fn new(config: Config) -> Self {
        let drift = u64::from(config.drift.ppm());
        let table = LeaseTable::new(config);
        Self {
            violations: Vec::new(),
            leaders: BTreeMap::new(),
            votes: BTreeMap::new(),
            candidates: BTreeSet::new(),
            committed: BTreeMap::new(),
            // The founding snapshot.
            applied: 1,
            states: BTreeMap::from([(1, hash(&table.encode()))]),
            table,
            proposed: BTreeMap::new(),
            stamps: Vec::new(),
            newest: None,
            replies: BTreeMap::new(),
            items: BTreeMap::new(),
            changes: Vec::new(),
            tags: BTreeMap::new(),
            refused: BTreeSet::new(),
            asked: BTreeMap::new(),
            answered: BTreeSet::new(),
            drift,
        }
    }

    pub(crate) fn violated(&mut self, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(what);
        }
    }

    /// The last entry that any node has applied.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Whether one of the last entries changes the members.
    pub(crate) fn is_changing(&self) -> bool {
        self.committed.values().rev().take(8).any(|entry| entry.kind != 0)
    }

    /// How often an acquire stands in the log.
    pub(crate) fn count(&self, tag: Tag) -> u64 {
        self.tags.get(&tag).copied().unwrap_or(0)
    }

    pub(crate) fn proposed(&mut self, entry: &LogEntry, now: u64) {
        self.proposed.entry((entry.index, entry.term)).or_insert(now);
    }

    /// A message of raft goes out: nobody votes twice in a term, and a term has one leader.
    pub(crate) fn raft(&mut self, message: &Message) {
        let leads = matches!(
            message.get_msg_type(),
            MessageType::MsgAppend | MessageType::MsgHeartbeat | MessageType::MsgSnapshot
        );
        if message.get_msg_type() == MessageType::MsgRequestVoteResponse && !message.reject {
            let (voter, term) = (message.from, message.term);
            let first = *self.votes.entry((voter, term)).or_insert(message.to);
            if first != message.to {
                self.violated(format!("{voter} voted twice in term {term}: for {first} and {}", message.to));
            }
        }
        if matches!(message.get_msg_type(), MessageType::MsgRequestVote | MessageType::MsgRequestPreVote) {
            self.candidates.insert(message.from);
        }
        if leads {
            let first = *self.leaders.entry(message.term).or_insert(message.from);
            if first != message.from {
                self.violated(format!("two leaders in term {}: {first} and {}", message.term, message.from));
            }
        }
    }

    /// Whether a member has asked for votes, or whether it might ask.
    pub(crate) fn is_candidate(&self, id: u64) -> bool {
        self.candidates.contains(&id)
    }

    /// In how many terms a member has voted for somebody else.
    pub(crate) fn votes_of(&self, id: u64) -> usize {
        self.votes.keys().filter(|(voter, _)| *voter == id).count()
    }

    /// A node has applied this entry. Says whether it is the first to do so.
    pub(crate) fn commit(&mut self, entry: &LogEntry) -> bool {
        if let Some(known) = self.committed.get(&entry.index) {
            if known != entry {
                let (index, known, term) = (entry.index, known.term, entry.term);
                self.violated(format!("two truths at entry {index}: of terms {known} and {term}"));
            }
            return false;
        }
        if entry.index != self.applied + 1 {
            self.violated(format!("entry {} is applied behind {}", entry.index, self.applied));
            return false;
        }
        self.committed.insert(entry.index, entry.clone());
        self.applied = entry.index;
        self.replay(entry);
        self.states.insert(entry.index, hash(&self.table.encode()));
        true
    }

    fn replay(&mut self, entry: &LogEntry) {
        if entry.payload.is_empty() || entry.kind != 0 {
            return;
        }
        let payload = Payload::decode(&entry.payload).expect("a node wrote it");
        self.stamped(entry, payload.entry.at.get());
        if payload.entry.at < self.table.last_at() {
            return;
        }
        let applied = self.table.apply(&payload.entry);
        if let Err(why) = self.table.check_invariants() {
            self.violated(why);
        }
        for (command, reply) in payload.entry.commands.iter().zip(applied.replies) {
            self.tagged(command);
            if let Some(held) = answer_to_the_cancelled(command, &reply) {
                self.expect(&held);
            }
            if !matches!(command, Command::Tidy(_) | Command::System(_)) {
                self.expect(&reply);
            }
        }
        for (session, item) in applied.items {
            self.items.insert((session, item.number), item);
        }
        let changes: Vec<Change> = applied.events.iter().filter_map(Change::of).collect();
        if !changes.is_empty() {
            self.changes.push(Changes { revision: Revision::new(entry.index), changes });
        }
        for event in applied.events {
            self.happened(event);
        }
    }

    fn stamped(&mut self, entry: &LogEntry, at: u64) {
        let now = self.proposed.get(&(entry.index, entry.term)).copied().unwrap_or(0);
        // The last ones are enough: every one was compared with those before it.
        for &(earlier, then) in self.stamps.iter().rev().take(50).collect::<Vec<_>>() {
            if at < earlier {
                self.violations.push(format!("log time fell from {earlier} to {at}"));
                break;
            }
            let real = now.saturating_sub(then);
            // Rounding, the lead of one clock, and the rate error that is trusted to be kept.
            let most = real + real * self.drift / 1_000_000 + 1_100_000;
            if (at - earlier) * 1_000_000 > most {
                self.violations.push(format!("log time moved by {} ms in {real} ns", at - earlier));
                break;
            }
        }
        self.stamps.push((at, now));
    }

    fn tagged(&mut self, command: &Command) {
        let Command::Session(command) = command else { return };
        let (Sequence::Plain, Op::Acquire(acquire)) = (command.sequence, &command.op) else { return };
        let Ok(bytes) = acquire.value.as_bytes().try_into() else { return };
        let tag = u64::from_be_bytes(bytes);
        let count = self.tags.entry(tag).or_insert(0);
        *count += 1;
        if *count > 1 {
            self.violated(format!("request {tag} was applied twice"));
        }
        if self.refused.contains(&tag) {
            self.violated(format!("request {tag} took effect though its caller was told it did not"));
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Granted { grant, .. } => {
                if Some(grant.token) <= self.newest {
                    self.violated(format!("token {} does not rise", grant.token));
                }
                self.newest = self.newest.max(Some(grant.token));
            }
            Event::WaitGranted { session, command, grants } => {
                if let Some(renewal) = self.table.renewal(session) {
                    let answer = Answer::Granted(grants);
                    self.expect(&Reply::Plain { number: command, answer, renewal });
                }
            }
            Event::WaitEnded { command, why, .. } => {
                self.expect(&Reply::PlainWaitEnded { number: command, why });
            }
            _ => {}
        }
    }

    fn expect(&mut self, reply: &Reply) {
        *self.replies.entry(format!("{reply:?}")).or_insert(0) += 1;
    }

    /// A request was sent that can be found in the log by its tag.
    pub(crate) fn asked(&mut self, id: RequestId, tag: Tag) {
        self.asked.insert(id, tag);
    }

    /// Something goes to a client.
    pub(crate) fn sent(&mut self, message: &ToClient) {
        match message {
            ToClient::Items { session, items } => {
                for item in items {
                    if self.items.get(&(*session, item.number)) != Some(item) {
                        self.violated(format!("{item:?} was sent and no committed entry gave it"));
                    }
                }
            }
            ToClient::Response { id, response } => {
                if !self.answered.insert(*id) {
                    self.violated(format!("request {} was answered twice, now with {response:?}", id.0));
                }
                self.response(*id, response);
            }
            // A wish says nothing that could be wrong.
            ToClient::Hint { .. } => {}
            ToClient::Watched { .. } => self.violated("watches are not the node's business".into()),
        }
    }

    fn response(&mut self, id: RequestId, response: &Response) {
        match response {
            // Judged before the log: true from what was applied, and never to change again.
            Response::Reply(Reply::Refused(Refusal::SessionEnded { session })) => {
                if self.table.nonce(*session).is_some() {
                    self.violated(format!("living session {session} was said to have ended"));
                }
            }
            Response::Reply(Reply::Refused(Refusal::WrongSessionKind)) => {}
            Response::Reply(Reply::Refused(Refusal::NotYetInUse)) => {
                if self.table.version() >= leasehold_node::members::CLUSTER_VERSION {
                    self.violated("what is in use was said not to be".into());
                }
            }
            Response::Reply(reply) => match self.replies.get_mut(&format!("{reply:?}")) {
                Some(count) if *count > 0 => *count -= 1,
                _ => self.violated(format!("{reply:?} was sent and no committed entry gave it")),
            },
            Response::Failed(Failure::OutcomeUnknown) | Response::Read { .. } | Response::Cluster(_) => {}
            Response::Failed(Failure::Unavailable { why }) if why.contains("withdrawn") => {}
            Response::Failed(_) => {
                let Some(tag) = self.asked.get(&id).copied() else { return };
                self.refused.insert(tag);
                if self.count(tag) > 0 {
                    self.violated(format!("request {tag} took effect and was answered {response:?}"));
                }
            }
        }
    }

    pub(crate) fn is_answered(&self, id: RequestId) -> bool {
        self.answered.contains(&id)
    }

    /// A node tells its watchers; `told` is how far it had come. Says how far it is now.
    pub(crate) fn changed(&mut self, told: usize, changes: &Changes) -> usize {
        if self.changes.get(told) != Some(changes) {
            self.violated(format!("watchers are told of entry {} out of turn", changes.revision.get()));
        }
        told + 1
    }

    /// How many batches of changes there are up to an entry.
    pub(crate) fn told_by(&self, index: u64) -> usize {
        self.changes.partition_point(|changes| changes.revision.get() <= index)
    }

    /// A node knows what was committed, and nothing else.
    pub(crate) fn compare(&mut self, node: &Node, told: usize) {
        let applied = node.applied();
        match self.states.get(&applied) {
            Some(state) if *state == hash(&node.table().encode()) => {}
            // A blank one knows nothing.
            None if applied == 0 => {}
            _ => self.violated(format!("the table behind entry {applied} is not what the log says")),
        }
        if applied > 0 && told != self.told_by(applied) {
            self.violated(format!("watchers were not told of everything up to entry {applied}"));
        }
    }

    /// What a node keeps for its watchers is what happened.
    pub(crate) fn compare_changes(&mut self, node: &Node) {
        let (oldest, end) = (node.changes().oldest(), self.told_by(node.applied()));
        let expected = self.changes[..end].iter().filter(|changes| changes.revision > oldest);
        if !node.changes().kept().map(|kept| &**kept).eq(expected) {
            self.violated("what is kept for watchers is not what happened".into());
        }
    }
}

/// What a caller hears whose wait another request has cancelled.
fn answer_to_the_cancelled(command: &Command, reply: &Reply) -> Option<Reply> {
    match (command, reply) {
        (Command::Session(command), Reply::Plain { answer: Answer::Cancelled, .. }) => match command.op {
            Op::Cancel { acquire } => {
                Some(Reply::PlainWaitEnded { number: acquire, why: WaitEnding::Cancelled })
            }
            _ => None,
        },
        _ => None,
    }
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
