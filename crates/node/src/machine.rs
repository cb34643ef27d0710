//! The node: one turn of its loop takes in what has arrived, moves log time, proposes, and hands out what is to be done.

mod cluster;
mod deliver;
mod forward;
mod handover;
mod held;
mod intake;
mod io;
mod lead;
mod outage;
mod pace;
mod ready;
mod start;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::measure::RoundTrips;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{MemberId, Request, RequestId, Status};
use leasehold_core::{Config, LeaseTable, LogTime, Millis};
use raft::eraftpb::{ConfState, Message};
use raft::{RawNode, StateRole};

use crate::anchor::Anchor;
use crate::batch::{Proposed, Queue};
use crate::changes::ChangeLog;
use crate::clock::{LogClock, STALL_CAP};
use crate::forwards::{Forwards, Visitors};
use crate::hints::Hints;
use crate::holds::Holds;
use crate::members::Roster;
use crate::meter::GapMeter;
use crate::planted::Kept;
use crate::reads::Reads;
use crate::routes::{ConnectionId, Routes};
use crate::stats::NodeStats;
use crate::storage::MemoryLog;
use outage::Silent;
use pace::Pace;

pub use io::{
    Fatal, Input, LogEntry, LogWrite, Options, Output, Place, Recovered, SavedSnapshot, Setup, Start, Vote,
};
pub use start::founding_snapshot;

/// The only member of a log that nobody joins: a directory that processes of one machine share.
pub const FOUNDER: MemberId = MemberId(1);

/// Room for what a turn with a single operation hands out.
const FEWEST_OUTPUTS: usize = 4;

/// A node.
pub struct Node {
    raft: RawNode<MemoryLog>,
    table: LeaseTable,
    roster: Roster,
    /// What all outcomes so far come to.
    outcomes: Option<u64>,
    place: Place,
    options: Options,
    version: String,
    pid: u32,
    seed: u64,
    last_tick: Reading,
    leadership: Option<Leadership>,
    /// Requests that arrived before this node could judge them.
    early: VecDeque<Early>,
    /// What was sent to the leader.
    forwards: Forwards,
    /// Connections of clients at other members.
    visitors: Visitors,
    /// For how long this loop has run, stalls cut: what others said meanwhile may still be in its inbox.
    running: Duration,
    /// When other members were last heard of, by that.
    heard: BTreeMap<MemberId, Duration>,
    /// Which version of what may stand in a log others know.
    known_versions: BTreeMap<MemberId, u32>,
    /// The version that this leadership has proposed.
    raising: Option<u32>,
    /// A change of the members that was proposed here and is not applied.
    change: Option<cluster::Change>,
    handover: Option<handover::Handover>,
    /// Leadership is being given up in order to stop.
    leaving: Option<Reading>,
    /// Whether this node has once come as far as its leader.
    caught_up: bool,
    /// There is no room for more than ending things.
    full: bool,
    /// Noticed while taking something in: this turn is the last.
    fatal: Option<Fatal>,
    queue: Queue,
    proposed: VecDeque<Proposed>,
    reads: Reads,
    routes: Routes,
    /// The write with a snapshot of another member, until it is synced. Raft does not count it as applied before, and must not
    /// begin an election meanwhile: it would look for entries that are gone.
    installing: Option<u64>,
    /// Writes handed out and not yet synced, with what may only be sent afterwards.
    writes: VecDeque<(u64, Vec<Message>)>,
    /// How much of the time until the present write is synced, and the entry in it committed, may still count.
    write_allowance: Duration,
    /// For how long the present write has been on its way, while this loop was running.
    write_waited: Duration,
    /// How long writes have taken lately.
    write_took: Duration,
    /// Where raft stood when its election timeout was drawn, and what was drawn.
    drawn: Option<([u64; 4], usize)>,
    /// The last write on its way that has a new term or vote in it.
    vote_write: Option<u64>,
    /// Leadership was offered to others because there is no room here; once is enough until there is.
    passed_on_full: bool,
    applied: u64,
    applied_term: u64,
    stamped: Option<(LogTime, Option<Anchor>)>,
    /// The choices for a log that has no stamped entry yet; used up by the first leadership that finds none. A log that holds
    /// only raft's own entries is still new: without this its choices would be those of whoever replays it.
    found: Option<Config>,
    cut_before: Millis,
    since_snapshot: SinceSnapshot,
    /// The last entry of a snapshot that is being made for another member, and the members that it knows.
    making: Option<(u64, ConfState)>,
    holds: Holds,
    hints: Hints,
    changes: ChangeLog,
    /// Nothing more is taken in.
    draining: bool,
    /// The clocks at the present turn.
    now: Reading,
    stats: NodeStats,
    /// Counts gaps.
    meter: GapMeter,
    /// Connections that ended, to be noted in the log: a courtesy, and bounded.
    silent: Silent,
    /// When this node last knew of a leader that served, by its own clocks; nothing before it has heard of one.
    led: Option<Reading>,
    pace: Pace,
    /// One more entry is proposed before this leader leaves.
    owes_stamp: bool,
    /// The last entry of the log when this process began: what is up to there was counted by another.
    recovered: u64,
    /// How long entries of the last minutes took from their proposal to their application.
    commits: Box<RoundTrips>,
    /// Room in which the bytes of the next entry are made.
    encoding: Vec<u8>,
    /// What known bugs keep.
    kept: Kept,
}

/// A request that arrived before anybody could judge it.
struct Early {
    connection: ConnectionId,
    id: RequestId,
    request: Request,
    since: Reading,
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
    began: Reading,
    clock: LogClock,
    /// The index of the first entry of this leadership: before it is applied nothing is judged.
    opening: Option<u64>,
    /// The stamp of the last entry proposed.
    last_stamp: LogTime,
    /// How much its clock had cut when it could last propose.
    cut_seen: Millis,
    /// For how long it stood still, and the log does not say so yet.
    stalled: Millis,
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
        let mut out = Vec::with_capacity(FEWEST_OUTPUTS);
        let passed = now.since(self.now).smaller().min(STALL_CAP);
        self.running += passed;
        self.write_waited = if self.writes.is_empty() { Duration::ZERO } else { self.write_waited + passed };
        self.now = now;
        if let Some(leadership) = &mut self.leadership {
            // While a write or an entry is on its way nothing can be proposed: a disk that stands still, and others that do not
            // answer, cost nobody more than the cap.
            let free = self.writes.is_empty() && self.proposed.is_empty();
            let most = if free { STALL_CAP } else { self.write_allowance };
            let most = if planted(Bug::StallCounted) { Duration::from_secs(1 << 30) } else { most };
            let counted = leadership.clock.turn(now, most);
            let smallest_ttl = 8 * self.table.time_step().unwrap_or(Millis::ZERO).duration();
            if planted(Bug::FreshTtlPerFailover) && now.since(leadership.began).smaller() < smallest_ttl {
                leadership.clock = LogClock::start(leadership.last_stamp, now);
            }
            self.write_allowance = self.write_allowance.saturating_sub(counted);
        }
        self.kept.turn(now);
        self.tick(now);
        self.note_serving();
        for input in inputs {
            self.take_in(&mut out, input);
        }
        if let Some(fatal) = self.fatal.take() {
            return Err(fatal);
        }
        self.handle_ready(&mut out)?;
        self.follow(&mut out);
        self.hand_over(&mut out);
        self.take_early(&mut out);
        // What was just applied may have made room for the next batch.
        while self.lead(&mut out, now)? {
            self.handle_ready(&mut out)?;
        }
        self.ask_reads();
        self.handle_ready(&mut out)?;
        self.answer_reads(&mut out);
        self.snapshot_if_due(&mut out);
        self.make_wanted_snapshot(&mut out);
        self.answer_visitors(&mut out);
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
        let term = self.raft.raft.term;
        let leadership = self.leadership.as_ref().filter(|leadership| leadership.term == term);
        let opening = leadership.filter(|_| self.is_leader()).and_then(|leadership| leadership.opening);
        opening.is_some_and(|opening| self.applied >= opening || planted(Bug::ServesBeforeOpening))
    }

    /// Whether this leader is about to let another lead: it proposes nothing until that is over.
    pub const fn is_handing_over(&self) -> bool {
        self.handover.is_some()
    }

    /// Whether everything that was taken in before [`Input::Drain`] is answered and on disk.
    pub fn is_drained(&self) -> bool {
        self.draining
            && !self.owes_stamp
            && self.early.is_empty()
            && self.queue.is_empty()
            && self.proposed.is_empty()
            && self.writes.is_empty()
            && self.holds.is_empty()
            && self.reads.is_empty()
            && self.forwards.is_empty()
            && self.change.is_none()
            && self.handover.is_none()
    }

    /// Who leads, as far as this node knows.
    pub fn leader(&self) -> Option<MemberId> {
        let leader = self.raft.raft.leader_id;
        (leader != 0).then_some(MemberId(leader))
    }

    /// Whether this node has seen what its leader had committed when they met: its changes are nobody's distant past.
    pub fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// This node's id.
    pub fn id(&self) -> MemberId {
        MemberId(self.raft.raft.id)
    }

    /// Everything that a backup needs, as of the last entry applied, and that entry.
    pub fn snapshot(&self) -> SavedSnapshot {
        self.image().save()
    }

    /// The last changes of the table.
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// What was counted.
    pub fn stats(&self) -> NodeStats {
        let (queued, queued_bytes) = self.queue.size();
        let gaps = self.meter.figures();
        NodeStats {
            queued,
            queued_bytes,
            held_calls: self.holds.len(),
            gaps,
            operations: self.stats.operations(),
            ..self.stats.clone()
        }
    }

    /// Commit times are forgotten after one to two times this.
    const COMMITS_KEPT: Duration = Duration::from_secs(60);

    /// All but one in a thousand of the entries of the last minutes took at most so long from their proposal to their application.
    pub fn recent_commit_time(&mut self, now: Reading) -> Option<Duration> {
        self.commits.age(now);
        self.commits.quantile(999)
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
