//! What must be true after every turn, whatever the test is about.
//!
//! The oracle replays the synced entries into a table of its own. A node may only have applied what is synced, its table must
//! be byte for byte the oracle's, and everything it sends as the table's word must be something that replaying gave. What it
//! tells watchers is what replaying gave, each entry once and in order, and before anything that depends on it.

use std::collections::{BTreeMap, VecDeque};

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Change, Changes, Response, ToClient};
use leasehold_core::{
    Answer, Command, Config, Event, Item, ItemNumber, LeaseTable, Op, Refusal, Reply, Revision, SessionId,
    Token, WaitEnding,
};
use leasehold_node::clock::MAX_LEAD;
use leasehold_node::payload::Payload;
use leasehold_node::{LogEntry, Node};

/// One stamped entry and the readings at which it was handed to the disk.
struct Stamp {
    index: u64,
    at: u64,
    /// Nothing after a reboot: then it cannot be compared.
    reading: Option<Reading>,
}

pub(crate) struct Oracle {
    table: LeaseTable,
    applied: u64,
    /// Entries that gave a reply, the first of them first.
    replies: BTreeMap<String, VecDeque<u64>>,
    /// Items with the entries that gave them.
    items: BTreeMap<(SessionId, ItemNumber), (u64, Item)>,
    /// What watchers are to see, all of it.
    changes: Vec<Changes>,
    /// How many of these the present process has told of, or found in its snapshot.
    told: usize,
    /// Up to here the node may have forgotten what watchers saw: nothing, unless a test says so.
    pub(crate) forgotten: Revision,
    newest_token: Option<Token>,
    stamps: Vec<Stamp>,
    /// The entry up to which the node's table was last compared.
    compared: u64,
}

impl Oracle {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            table: LeaseTable::new(config),
            applied: 0,
            replies: BTreeMap::new(),
            items: BTreeMap::new(),
            changes: Vec::new(),
            told: 0,
            forgotten: Revision::default(),
            newest_token: None,
            stamps: Vec::new(),
            compared: 0,
        }
    }

    /// Stamps of all entries in the log, in order.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = u64> {
        self.stamps.iter().map(|stamp| stamp.at)
    }

    /// Readings of before cannot be compared with those to come; the stamps stand.
    pub(crate) fn forget_readings(&mut self) {
        for stamp in &mut self.stamps {
            stamp.reading = None;
        }
    }

    /// An entry is handed to the disk: log time has not fallen, and has not outrun real time since any entry before.
    pub(crate) fn handed_over(&mut self, entry: &LogEntry, now: Reading) {
        self.stamps.retain(|stamp| stamp.index < entry.index);
        if entry.payload.is_empty() {
            return;
        }
        let at = Payload::decode(&entry.payload).expect("the node wrote it").entry.at.get();
        for stamp in &self.stamps {
            assert!(at >= stamp.at, "log time fell from {} to {at}", stamp.at);
            let Some(reading) = stamp.reading else { continue };
            let real = now.since(reading).smaller().as_nanos();
            let logged = u128::from(at - stamp.at) * 1_000_000;
            // Stamps are rounded down, so two of them may lie apart by up to a millisecond more than their readings.
            let most = real + 1_000_000 + MAX_LEAD.as_nanos();
            assert!(logged < most, "log time moved by {logged} ns in {real} ns of real time");
        }
        self.stamps.push(Stamp { index: entry.index, at, reading: Some(now) });
    }

    /// An entry is synced.
    pub(crate) fn synced(&mut self, entry: &LogEntry) {
        assert_eq!(entry.index, self.applied + 1, "entries are synced in order");
        self.applied = entry.index;
        if entry.payload.is_empty() {
            return;
        }
        let payload = Payload::decode(&entry.payload).expect("the node wrote it");
        let applied = self.table.apply(&payload.entry);
        self.table.check_invariants().expect("the table keeps its invariants");
        for (command, reply) in payload.entry.commands.iter().zip(applied.replies) {
            if let Some(held) = answer_to_the_cancelled(command, &reply) {
                self.expect(entry.index, &held);
            }
            if !matches!(command, Command::Tidy(_) | Command::System(_)) {
                self.expect(entry.index, &reply);
            }
        }
        for (session, item) in applied.items {
            self.items.insert((session, item.number), (entry.index, item));
        }
        let changes: Vec<Change> = applied.events.iter().filter_map(Change::of).collect();
        if !changes.is_empty() {
            self.changes.push(Changes { revision: Revision::new(entry.index), changes });
        }
        for event in applied.events {
            self.happened(entry.index, event);
        }
    }

    fn happened(&mut self, index: u64, event: Event) {
        match event {
            Event::Granted { grant, .. } => {
                let token = grant.token;
                assert!(Some(token) > self.newest_token, "token {token} does not rise");
                self.newest_token = Some(token);
            }
            // For a caller that is kept waiting.
            Event::WaitGranted { session, command, grants } => {
                if let Some(renewal) = self.table.renewal(session) {
                    let answer = Answer::Granted(grants);
                    self.expect(index, &Reply::Plain { number: command, answer, renewal });
                }
            }
            Event::WaitEnded { command, why, .. } => {
                self.expect(index, &Reply::PlainWaitEnded { number: command, why });
            }
            _ => {}
        }
    }

    fn expect(&mut self, index: u64, reply: &Reply) {
        self.replies.entry(format!("{reply:?}")).or_default().push_back(index);
    }

    /// Something is sent: it was synced before, and whoever watches was told before.
    pub(crate) fn sent(&mut self, message: &ToClient) {
        match message {
            ToClient::Items { session, items } => {
                for item in items {
                    let Some((index, synced)) = self.items.get(&(*session, item.number)) else {
                        panic!("{item:?} was sent and no synced entry gave it");
                    };
                    assert_eq!(synced, item, "an item was sent otherwise than the synced entry gave it");
                    self.watchers_know(*index);
                }
            }
            // Judged before the log: true from what was applied, and never to change again.
            ToClient::Response {
                response: Response::Reply(Reply::Refused(Refusal::SessionEnded { session })),
                ..
            } => {
                assert_eq!(self.table.nonce(*session), None, "a living session was said to have ended");
            }
            // The kind of a session never changes.
            ToClient::Response {
                response: Response::Reply(Reply::Refused(Refusal::WrongSessionKind)),
                ..
            } => {}
            ToClient::Response { response: Response::Reply(reply), .. } => {
                let given = self.replies.get_mut(&format!("{reply:?}"));
                let given = given.unwrap_or_else(|| panic!("{reply:?} was sent and no synced entry gave it"));
                let index = given.pop_front();
                self.watchers_know(index.unwrap_or_else(|| panic!("{reply:?} was sent once too often")));
            }
            ToClient::Response { .. } => {}
            // A wish says nothing that could be wrong.
            ToClient::Hint { .. } => {}
            ToClient::Watched { .. } => panic!("watches are not the node's business"),
        }
    }

    /// Watchers were told of everything up to an entry.
    fn watchers_know(&self, index: u64) {
        let next = self.changes.get(self.told).map_or(u64::MAX, |changes| changes.revision.get());
        assert!(next > index, "something of entry {index} was sent before the changes of entry {next}");
    }

    /// Watchers are told.
    pub(crate) fn changed(&mut self, changes: &Changes) {
        assert_eq!(Some(changes), self.changes.get(self.told), "these are not the changes that come next");
        self.told += 1;
    }

    /// All that watchers were told or will be, in order.
    pub(crate) fn changes(&self) -> &[Changes] {
        &self.changes
    }

    /// Another process has read the files, with a snapshot up to this entry.
    pub(crate) fn begin_again(&mut self, covered: u64) {
        self.compared = 0;
        self.told = self.changes.partition_point(|changes| changes.revision.get() <= covered);
    }

    /// The node knows what is synced, and nothing else.
    pub(crate) fn compare(&mut self, node: &Node) {
        assert!(node.applied() <= self.applied, "the node has applied an entry that is not synced");
        let told = self.changes[..self.told].last().map_or(0, |changes| changes.revision.get());
        assert!(told <= node.applied(), "watchers were told of entry {told}, which is not applied");
        if node.applied() == self.applied && self.compared != self.applied {
            self.compared = self.applied;
            assert!(
                node.table().encode() == self.table.encode(),
                "the node's table is not what its log says"
            );
            assert_eq!(self.told, self.changes.len(), "watchers were not told of everything");
            assert_eq!(node.changes().oldest(), self.forgotten, "another point is the oldest to go on from");
            let kept = self.changes.iter().filter(|changes| changes.revision > self.forgotten);
            assert!(node.changes().kept().map(|kept| &**kept).eq(kept), "changes are missing");
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
