//! What a simulated run leaves behind for the checkers, in true time.
//!
//! The world pushes small events as they happen; values with names in them (entries, replies, items, changes) are kept apart,
//! once each. Nothing here judges: see [`check`](crate::check). How to record what:
//!
//! - *Beliefs*: after every input to a client's machine, for each lease, call [`Record::belief`] with the true time up to which
//!   `guard` would say yes if nothing else happened (the deadline by the machine's own clocks, turned into true time; a point at
//!   which its clocks begin to disagree counts too), or with nothing if it says no. Call it again when a clock's rate changes.
//!   Unchanged ones cost a comparison.
//! - *Requests*: every sending of a frame is one [`Event::RequestSent`]; a copy made by the network is one more. Its answer is
//!   [`Record::replied`] or [`Event::RequestFailed`], at the client, when it arrives.
//! - *Commands*: [`Event::Asked`] when the application submits, [`Event::Told`] when it hears the outcome.
//! - *Entries*: [`Record::applied`] for every entry that a node applies, in order; a snapshot that takes the place of entries is an
//!   [`Event::Installed`]. [`Event::Durable`] when a write is synced, before the node is told so.
//! - *Restores*: [`Record::begin_log`], then the entries that the new life begins with (those of a survivor that were not known to
//!   be committed, and the `Restored` one), then nodes apply to the new log.

mod event;

use std::collections::BTreeMap;
use std::sync::Arc;

use leasehold_core::protocol::Changes;
use leasehold_core::{Config, Entry, Item, Reply, ResourceName, SessionId, Token};

use crate::check::sometimes::Sometimes;
use crate::trace::MILLI;

pub use event::{Asked, Event, Fault, RequestKey, Stopped, Told};

/// Nanoseconds of true time since the run began. Only the simulator knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TrueTime(pub u64);

impl TrueTime {
    /// Before everything.
    pub const ZERO: Self = Self(0);
    /// After everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `nanos` later.
    #[must_use]
    pub const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Nanoseconds since `earlier`; none if it lies ahead.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A client process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// A node, by its member id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A resource, by its place in [`Record::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// One life of the state: the first, or that after a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogId(pub u16);

/// What a lease is a lease of: a resource, or one slot of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which resource.
    pub resource: ResourceId,
    /// Which slot, if it has slots.
    pub slot: Option<u32>,
}

impl Place {
    /// Whether the two are different slots.
    pub fn is_apart(self, other: Self) -> bool {
        matches!((self.slot, other.slot), (Some(one), Some(two)) if one != two)
    }
}

/// Something with clocks, a process or a disk of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Machine {
    /// A node.
    Node(NodeId),
    /// A client.
    Client(ClientId),
    /// Everything at once, such as the network.
    World,
}

/// One committed entry, as the first node to apply it had it.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Its place.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// A hash of its kind and bytes.
    pub bytes: u64,
    /// When it was first applied.
    pub applied: TrueTime,
    /// What it says; nothing for raft's own entries.
    pub entry: Option<Entry>,
}

/// One life of the state.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The log and the entry up to which this one is the same; nothing for the first.
    pub from: Option<(LogId, u64)>,
    /// The index that the first of `entries` has. The founding snapshot covers index 1.
    pub first: u64,
    /// Committed entries, without gaps.
    pub entries: Vec<Committed>,
    /// Entries that were applied behind a gap: a node had what nobody had before it.
    pub stray: Vec<Committed>,
}

/// Who decides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoterSet {
    /// Those that vote.
    pub voters: Vec<NodeId>,
    /// Those that voted before a change that is not complete.
    pub outgoing: Vec<NodeId>,
}

/// A direct reply that reached a client.
#[derive(Debug, Clone)]
pub struct Replied {
    /// When.
    pub at: TrueTime,
    /// To what.
    pub key: RequestKey,
    /// What.
    pub reply: Reply,
}

/// An answer or event of a stream that reached a client.
#[derive(Debug, Clone)]
pub struct Received {
    /// When.
    pub at: TrueTime,
    /// Of which session.
    pub session: SessionId,
    /// What.
    pub item: Item,
}

/// What a node told its watchers.
#[derive(Debug, Clone)]
pub struct Published {
    /// Of which log.
    pub log: LogId,
    /// Which node.
    pub node: NodeId,
    /// When it started or took a snapshot last: what it said before does not bind it.
    pub since: TrueTime,
    /// When it told this.
    pub at: TrueTime,
    /// What.
    pub changes: Arc<Changes>,
}

/// What must hold after the faults, in true time. Set by the world, which knows how slow its network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// L1: a leader within this.
    pub leader: u64,
    /// L2: from the release to the next waiter's lease.
    pub handover: u64,
    /// L4 and L6: after this everything stands as if nothing had happened.
    pub recovery: u64,
    /// L5: an answer to a request that waits for nothing but the service.
    pub answer: u64,
    /// What clients count as the longest time that a write is under way.
    pub in_flight: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // Two election timeouts of at most 600 ms: the leader's silence is noticed, and one vote may be split.
            leader: 1_200 * MILLI,
            handover: 50 * MILLI,
            recovery: 30_000 * MILLI,
            answer: 10_000 * MILLI,
            in_flight: 500 * MILLI,
        }
    }
}

/// Everything that a run leaves behind.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The choices with which the first log was founded.
    pub config: Config,
    /// What must hold after the faults.
    pub bounds: Bounds,
    /// Names of resources, by id.
    pub names: Vec<ResourceName>,
    /// In the order in which they happened; times never fall.
    pub events: Vec<(TrueTime, Event)>,
    /// Lives of the state, the first one first.
    pub logs: Vec<Log>,
    /// Direct replies, as they reached clients.
    pub replies: Vec<Replied>,
    /// Items, as they reached clients.
    pub items: Vec<Received>,
    /// What nodes told their watchers.
    pub published: Vec<Published>,
    /// Situations that only the world can see, counted by it.
    pub reached: Sometimes,
    /// Sets of voters, named by [`Event::Voters`].
    pub voter_sets: Vec<VoterSet>,
    ids: BTreeMap<ResourceName, ResourceId>,
    believed: BTreeMap<(SessionId, Token), Option<TrueTime>>,
}

impl Record {
    /// An empty record of a run whose first log is founded with `config`.
    pub fn new(config: Config, bounds: Bounds) -> Self {
        let first = Log { from: None, first: 2, ..Log::default() };
        Self { config, bounds, logs: vec![first], ..Self::default() }
    }

    /// The id of a resource. Ask once and keep it.
    pub fn resource(&mut self, name: &ResourceName) -> ResourceId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = ResourceId(u32::try_from(self.names.len()).expect("runs have few resources"));
        self.names.push(name.clone());
        self.ids.insert(name.clone(), id);
        id
    }

    /// The id of a resource that was named before.
    pub fn known(&self, name: &ResourceName) -> Option<ResourceId> {
        self.ids.get(name).copied()
    }

    /// Something happened.
    pub fn push(&mut self, now: TrueTime, event: Event) {
        self.events.push((now, event));
    }

    /// What `guard` says about a lease from now on: yes until a point, or no. Kept only if it is another word than before.
    pub fn belief(
        &mut self,
        now: TrueTime,
        session: SessionId,
        place: Place,
        token: Token,
        until: Option<TrueTime>,
    ) {
        let last = self.believed.entry((session, token)).or_insert(None);
        if *last != until {
            *last = until;
            self.events.push((now, Event::Belief { session, place, token, until }));
        }
    }

    /// A node applied an entry; `entry` is asked for only if no node had applied one there before.
    pub fn applied(
        &mut self,
        now: TrueTime,
        (log, node): (LogId, NodeId),
        (index, term, bytes): (u64, u64, u64),
        entry: impl FnOnce() -> Option<Entry>,
    ) {
        self.events.push((now, Event::Applied { log, node, index, term, bytes }));
        self.logs[usize::from(log.0)].commit(now, (index, term, bytes), entry);
    }

    /// An entry that a new log begins with and no node applies.
    pub fn inherited(&mut self, now: TrueTime, log: LogId, index: u64, term: u64, entry: Option<Entry>) {
        self.logs[usize::from(log.0)].commit(now, (index, term, 0), || entry);
    }

    /// Another life begins behind entry `index` of `from`. Say [`Event::Restored`] too.
    pub fn begin_log(&mut self, from: LogId, index: u64) -> LogId {
        let id = LogId(u16::try_from(self.logs.len()).expect("epochs run out first"));
        self.logs.push(Log { from: Some((from, index)), first: index + 1, ..Log::default() });
        id
    }

    /// Lives of the state with their names, the first one first.
    pub fn lives(&self) -> impl DoubleEndedIterator<Item = (LogId, &Log)> {
        self.logs
            .iter()
            .enumerate()
            .map(|(number, log)| (LogId(u16::try_from(number).expect("begin_log counted them")), log))
    }

    /// A direct reply reached a client.
    pub fn replied(&mut self, at: TrueTime, key: RequestKey, reply: Reply) {
        self.replies.push(Replied { at, key, reply });
    }

    /// An item reached a client, whether it was processed or not.
    pub fn received(&mut self, at: TrueTime, session: SessionId, item: Item) {
        self.items.push(Received { at, session, item });
    }

    /// By these a node counts from now on, behind entry `index`.
    pub fn voters(&mut self, now: TrueTime, (log, node): (LogId, NodeId), index: u64, set: VoterSet) {
        let known = self.voter_sets.iter().position(|known| *known == set);
        let place = known.unwrap_or_else(|| {
            self.voter_sets.push(set);
            self.voter_sets.len() - 1
        });
        let set = u32::try_from(place).expect("runs change their members rarely");
        self.events.push((now, Event::Voters { log, node, index, set }));
    }

    /// When the run was over: the time of the last event.
    pub fn end(&self) -> TrueTime {
        self.events.last().map_or(TrueTime::ZERO, |(at, _)| *at)
    }
}

impl Log {
    fn commit(
        &mut self,
        applied: TrueTime,
        (index, term, bytes): (u64, u64, u64),
        entry: impl FnOnce() -> Option<Entry>,
    ) {
        let next = self.first + self.entries.len() as u64;
        if index >= next {
            let committed = Committed { index, term, bytes, applied, entry: entry() };
            let kept = if index == next { &mut self.entries } else { &mut self.stray };
            kept.push(committed);
        }
    }

    /// The entry at an index, if this log has it itself.
    pub fn entry(&self, index: u64) -> Option<&Committed> {
        let place = index.checked_sub(self.first)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// The last index known.
    pub fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }
}

/// FNV-1a of 64 bits.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
