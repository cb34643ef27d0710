//! The node: one turn of its loop takes in what has arrived, moves log time, proposes, and hands out what is to be done.

mod deliver;
mod held;
mod intake;
mod lead;
mod ready;
mod start;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{Changes, Request, RequestId, Status, ToClient};
use leasehold_core::{Config, LeaseTable, LogTime, Millis};
use raft::eraftpb::Message;
use raft::{RawNode, StateRole};

use crate::anchor::{Anchor, Machine, ResumeError};
use crate::batch::{Proposed, Queue};
use crate::changes::ChangeLog;
use crate::clock::{LogClock, STALL_CAP};
use crate::holds::Holds;
use crate::payload::PayloadError;
use crate::reads::Reads;
use crate::routes::{ConnectionId, Routes};
use crate::stats::NodeStats;
use crate::storage::MemoryLog;

/// What happened since the last turn.
#[derive(Debug)]
pub enum Input {
    /// A client asks for something.
    Request {
        /// Through which connection.
        connection: ConnectionId,
        /// The id that the connection gave it.
        id: RequestId,
        /// What.
        request: Request,
    },
    /// Whoever sent this request does not wait for its answer any more.
    Abandoned {
        /// Through which connection.
        connection: ConnectionId,
        /// The request.
        id: RequestId,
    },
    /// A connection is gone.
    Disconnected(ConnectionId),
    /// A write was synced, and with it all before it.
    Written {
        /// Its number.
        number: u64,
    },
    /// A snapshot is safe on disk.
    SnapshotSaved {
        /// The last entry it covers.
        index: u64,
        /// The term of that entry.
        term: u64,
    },
    /// Take in nothing more, and finish what was taken in.
    Drain,
}

/// What is to be done, in order.
#[derive(Debug)]
pub enum Output {
    /// Write to the log and sync, then say so with [`Input::Written`].
    Write(LogWrite),
    /// Send to a client.
    Send {
        /// Through which connection.
        connection: ConnectionId,
        /// What.
        message: ToClient,
    },
    /// An applied entry changed something that is watched. Comes before every answer that depends on it.
    Changed(Arc<Changes>),
    /// Save a snapshot, then say so with [`Input::SnapshotSaved`].
    SaveSnapshot {
        /// The last entry it covers.
        index: u64,
        /// The term of that entry.
        term: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Send to another node. A log with one voter has none.
    SendPeer(Box<Message>),
}

/// One write to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWrite {
    /// To be named when it is synced.
    pub number: u64,
    /// The term and vote, if they changed.
    pub vote: Option<Vote>,
    /// Entries; they supersede what was there from the first of them on.
    pub entries: Vec<LogEntry>,
}

/// What a node must never forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vote {
    /// Its term.
    pub term: u64,
    /// Whom it voted for in that term; zero is nobody.
    pub vote: u64,
    /// How far the log is known to be committed.
    pub commit: u64,
}

/// One entry as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Its place.
    pub index: u64,
    /// The term it was proposed in.
    pub term: u64,
    /// Raft's kind of entry.
    pub kind: u8,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// What the files held.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Term and vote.
    pub vote: Vote,
    /// Entries after the snapshot.
    pub entries: Vec<LogEntry>,
    /// The newest snapshot.
    pub snapshot: Option<SavedSnapshot>,
}

/// A snapshot as it was saved.
#[derive(Debug)]
pub struct SavedSnapshot {
    /// The last entry it covers.
    pub index: u64,
    /// The term of that entry.
    pub term: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Where the node runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// In a directory that processes of one machine share: time without a server counts.
    Embedded {
        /// The clocks' machine.
        machine: Machine,
        /// End everything and wait, where the clocks cannot be compared.
        end_all_after_wait: bool,
    },
    /// As a service: time without a leader does not count.
    Served,
}

/// What a node begins with.
#[derive(Debug)]
pub struct Setup {
    /// Where it runs.
    pub place: Place,
    /// The choices for a log that is new; an old one keeps its own.
    pub config: Config,
    /// What the files held.
    pub recovered: Recovered,
    /// Knobs.
    pub options: Options,
    /// The release and process, for the status.
    pub version: String,
    /// The process that serves.
    pub pid: u32,
    /// Seeds the election timeouts.
    pub seed: u64,
}

/// Knobs, with defaults that fit.
#[derive(Debug, Clone)]
pub struct Options {
    /// A snapshot is taken after this many entries.
    pub snapshot_entries: u64,
    /// Or after this many bytes of entries.
    pub snapshot_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        // A restart reads the snapshot and what came after it: this keeps that to tens of milliseconds.
        Self { snapshot_entries: 8_192, snapshot_bytes: 8 * 1024 * 1024 }
    }
}

/// Why a node cannot begin or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// Log time cannot go on.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The log or snapshot cannot be read.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The state contradicts itself.
    #[error("the files contradict themselves: {0}")]
    Invariant(String),
    /// Raft's word for it.
    #[error("consensus failed: {0}")]
    Raft(String),
}

/// The first member of a log. Members that join later get other ids.
const FOUNDER: u64 = 1;

/// A node.
pub struct Node {
    raft: RawNode<MemoryLog>,
    table: LeaseTable,
    place: Place,
    options: Options,
    version: String,
    pid: u32,
    random: u64,
    /// What we last set as raft's election timeout, to notice when raft drew its own.
    election_timeout: usize,
    last_tick: Reading,
    leadership: Option<Leadership>,
    /// Requests that arrived before this node could judge them.
    early: Vec<(ConnectionId, RequestId, Request)>,
    queue: Queue,
    proposed: VecDeque<Proposed>,
    reads: Reads,
    routes: Routes,
    /// Writes handed out and not yet synced, with what may only be sent afterwards.
    writes: VecDeque<(u64, Vec<Message>)>,
    /// How much of the time until the present write is synced may still count.
    write_allowance: Duration,
    applied: u64,
    applied_term: u64,
    stamped: Option<(LogTime, Option<Anchor>)>,
    /// The choices for a log that has no stamped entry yet; used up by the first leadership that finds none. A log that holds
    /// only raft's own entries is still new: without this its choices would be those of whoever replays it.
    found: Option<Config>,
    cut_before: Millis,
    since_snapshot: SinceSnapshot,
    holds: Holds,
    changes: ChangeLog,
    /// Nothing more is taken in.
    draining: bool,
    /// The clocks at the present turn.
    now: Reading,
    stats: NodeStats,
}

#[derive(Debug, Default)]
struct SinceSnapshot {
    entries: u64,
    bytes: u64,
    saving: bool,
}

/// What is known only while leading, and discarded with the leadership.
struct Leadership {
    term: u64,
    clock: LogClock,
    /// The index of the first entry of this leadership: before it is applied nothing is judged.
    opening: Option<u64>,
    /// The stamp of the last entry proposed.
    last_stamp: LogTime,
}

impl Node {
    /// One turn of the loop: `now` was read after the last of the inputs was taken in.
    ///
    /// # Errors
    /// When the node cannot go on; the process must stop.
    pub fn turn(
        &mut self,
        now: Reading,
        inputs: impl IntoIterator<Item = Input>,
    ) -> Result<Vec<Output>, Fatal> {
        let mut out = Vec::new();
        self.now = now;
        if let Some(leadership) = &mut self.leadership {
            // While a write is on its way nothing can be proposed: a disk that stands still costs nobody more than the cap.
            let most = if self.writes.is_empty() { STALL_CAP } else { self.write_allowance };
            let counted = leadership.clock.turn(now, most);
            self.write_allowance = self.write_allowance.saturating_sub(counted);
        }
        self.tick(now);
        for input in inputs {
            self.take_in(&mut out, input);
        }
        self.handle_ready(&mut out)?;
        self.take_early(&mut out);
        // What was just applied may have made room for the next batch.
        while self.lead(&mut out, now)? {
            self.handle_ready(&mut out)?;
        }
        self.ask_reads();
        self.handle_ready(&mut out)?;
        self.answer_reads(&mut out);
        self.snapshot_if_due(&mut out);
        Ok(out)
    }

    /// How long the loop may sleep if nothing arrives: until the next thing is due, and never longer than
    /// [`MAX_SLEEP`](Self::MAX_SLEEP).
    pub fn sleep(&self) -> Millis {
        let Some(leadership) = &self.leadership else { return Self::MAX_SLEEP };
        if self.reads.has_due(self.applied) {
            return Millis::new(1);
        }
        match self.table.next_due() {
            Some(due) => Millis::new(due.since(leadership.clock.stamp()).get() + 1).min(Self::MAX_SLEEP),
            None => Self::MAX_SLEEP,
        }
    }

    /// The loop wakes at least this often, so that a stall can be told from idleness.
    pub const MAX_SLEEP: Millis = Millis::new(20);

    /// Whether this node leads and has applied the first entry of its leadership.
    pub fn is_serving(&self) -> bool {
        let opening = self.leadership.as_ref().and_then(|leadership| leadership.opening);
        opening.is_some_and(|opening| self.applied >= opening)
    }

    /// Whether everything that was taken in before [`Input::Drain`] is answered and on disk.
    pub fn is_drained(&self) -> bool {
        self.draining
            && self.early.is_empty()
            && self.queue.is_empty()
            && self.proposed.is_empty()
            && self.writes.is_empty()
            && self.holds.is_empty()
            && self.reads.is_empty()
    }

    /// The last changes of the table.
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// What was counted.
    pub fn stats(&self) -> NodeStats {
        let (queued, queued_bytes) = self.queue.size();
        NodeStats { queued, queued_bytes, held_calls: self.holds.len(), ..self.stats.clone() }
    }

    /// The table as of the last entry applied.
    pub fn table(&self) -> &LeaseTable {
        &self.table
    }

    /// The index of the last entry applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Time cut from log time by this process because its loop stood still.
    pub fn cut(&self) -> Millis {
        let now = self.leadership.as_ref().map_or(Millis::ZERO, |leadership| leadership.clock.cut());
        self.cut_before.saturating_add(now)
    }

    fn status(&self) -> Status {
        let (sessions, resources) = self.table.sizes();
        Status {
            version: self.version.clone(),
            pid: self.pid,
            sessions: sessions as u64,
            resources: resources as u64,
            applied: self.applied,
            log_time: Millis::new(self.table.last_at().get()),
            cut: self.cut(),
        }
    }

    fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }
}
