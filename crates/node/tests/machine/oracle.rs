//! What must be true after every turn, whatever the test is about.
//!
//! The oracle replays the synced entries into a table of its own. A node may only have applied what is synced, its table must
//! be byte for byte the oracle's, and everything it sends as the table's word must be something that replaying gave.

use std::collections::BTreeMap;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Response, ToClient};
use leasehold_core::{
    Command, Config, Event, Item, ItemNumber, LeaseTable, Refusal, Reply, SessionId, Token,
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
    replies: BTreeMap<String, usize>,
    items: BTreeMap<(SessionId, ItemNumber), Item>,
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
            if !matches!(command, Command::Tidy(_) | Command::System(_)) {
                *self.replies.entry(format!("{reply:?}")).or_default() += 1;
            }
        }
        for (session, item) in applied.items {
            self.items.insert((session, item.number), item);
        }
        for event in applied.events {
            if let Event::Granted { grant, .. } = event {
                let token = grant.token;
                assert!(Some(token) > self.newest_token, "token {token} does not rise");
                self.newest_token = Some(token);
            }
        }
    }

    /// Something is sent: it was synced before.
    pub(crate) fn sent(&mut self, message: &ToClient) {
        match message {
            ToClient::Items { session, items } => {
                for item in items {
                    let synced = self.items.get(&(*session, item.number));
                    assert_eq!(synced, Some(item), "an item was sent that no synced entry gave");
                }
            }
            // Judged before the log: true from what was applied, and never to change again.
            ToClient::Response {
                response: Response::Reply(Reply::Refused(Refusal::SessionEnded { session })),
                ..
            } => {
                assert_eq!(self.table.nonce(*session), None, "a living session was said to have ended");
            }
            ToClient::Response { response: Response::Reply(reply), .. } => {
                let left = self.replies.get_mut(&format!("{reply:?}"));
                let left = left.unwrap_or_else(|| panic!("{reply:?} was sent and no synced entry gave it"));
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{reply:?} was sent once too often"));
            }
            ToClient::Response { .. } => {}
        }
    }

    /// Another process has read the files.
    pub(crate) fn compare_again(&mut self) {
        self.compared = 0;
    }

    /// The node knows what is synced, and nothing else.
    pub(crate) fn compare(&mut self, node: &Node) {
        assert!(node.applied() <= self.applied, "the node has applied an entry that is not synced");
        if node.applied() == self.applied && self.compared != self.applied {
            self.compared = self.applied;
            assert!(
                node.table().encode() == self.table.encode(),
                "the node's table is not what its log says"
            );
        }
    }
}
