//! Beginning: from what the files held to a node that campaigns.

use leasehold_core::LeaseTable;
use leasehold_core::holder::Reading;
use raft::eraftpb::{ConfState, Entry, EntryType, HardState};
use raft::{Config as RaftConfig, RawNode};

use super::{FOUNDER, Fatal, LogEntry, Node, Setup, SinceSnapshot};
use crate::batch::Queue;
use crate::changes::ChangeLog;
use crate::clock::STALL_CAP;
use crate::holds::Holds;
use crate::payload::NodeSnapshot;
use crate::reads::Reads;
use crate::routes::Routes;
use crate::stats::NodeStats;
use crate::storage::MemoryLog;
use leasehold_core::{Millis, Revision};
use std::collections::VecDeque;

/// One tick of raft: the interval of heartbeats.
pub(super) const TICK_NANOS: u64 = 50_000_000;
/// Elections begin after 6 to 12 ticks without a leader: 300 to 600 ms.
pub(super) const ELECTION_TICKS: usize = 6;
/// Bytes proposed and not committed at most; beyond it proposals wait in our own queue.
const MAX_UNCOMMITTED: u64 = 64 * 1024 * 1024;

impl Node {
    /// Begins with what the files held. The node campaigns in its first turn.
    ///
    /// # Errors
    /// When the snapshot cannot be read, the log ends before what it says is committed, or raft does not accept it.
    pub fn start(setup: Setup, now: Reading) -> Result<Self, Fatal> {
        let Setup { place, config, recovered, options, version, pid, seed } = setup;
        let has_snapshot = recovered.snapshot.is_some();
        let (table, stamped, changes, conf, covered) = match &recovered.snapshot {
            None => {
                let conf = ConfState { voters: vec![FOUNDER], ..ConfState::default() };
                (LeaseTable::new(config.clone()), None, ChangeLog::default(), conf, (0, 0))
            }
            Some(saved) => {
                let snapshot = NodeSnapshot::decode(&saved.bytes)?;
                snapshot.table.check_invariants().map_err(Fatal::Invariant)?;
                let conf = ConfState {
                    voters: snapshot.voters,
                    learners: snapshot.learners,
                    ..ConfState::default()
                };
                let unknown = || ChangeLog::after(Revision::new(saved.index));
                let changes = snapshot.changes.unwrap_or_else(unknown);
                (snapshot.table, snapshot.stamped, changes, conf, (saved.index, saved.term))
            }
        };
        let hard_state = HardState {
            term: recovered.vote.term,
            vote: recovered.vote.vote,
            // Noted only beside a new term or vote: raft finds the rest again.
            commit: recovered.vote.commit.max(covered.0),
            ..HardState::default()
        };
        let last = recovered.entries.last().map_or(covered.0, |entry| entry.index);
        if hard_state.commit > last {
            let commit = hard_state.commit;
            return Err(Fatal::Invariant(format!(
                "the log ends at entry {last}, before its commit {commit}"
            )));
        }
        let mut log = MemoryLog::new(hard_state, conf, covered);
        log.append(&recovered.entries.into_iter().map(to_raft).collect::<Vec<_>>());
        let raft_config = RaftConfig {
            id: FOUNDER,
            election_tick: ELECTION_TICKS,
            heartbeat_tick: 1,
            min_election_tick: ELECTION_TICKS,
            max_election_tick: 2 * ELECTION_TICKS,
            applied: covered.0,
            max_uncommitted_size: MAX_UNCOMMITTED,
            max_size_per_msg: 1024 * 1024,
            pre_vote: true,
            check_quorum: true,
            ..RaftConfig::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raft =
            RawNode::new(&raft_config, log, &logger).map_err(|error| Fatal::Raft(error.to_string()))?;
        let mut node = Self {
            raft,
            table,
            place,
            options,
            version,
            pid,
            random: seed,
            election_timeout: 0,
            last_tick: now,
            leadership: None,
            early: Vec::new(),
            queue: Queue::default(),
            proposed: VecDeque::new(),
            reads: Reads::default(),
            routes: Routes::default(),
            writes: VecDeque::new(),
            write_allowance: STALL_CAP,
            applied: covered.0,
            applied_term: covered.1,
            stamped,
            found: (!has_snapshot).then_some(config),
            cut_before: Millis::ZERO,
            // What the files held behind the snapshot counts when it is applied.
            since_snapshot: SinceSnapshot::default(),
            holds: Holds::default(),
            changes,
            draining: false,
            now,
            stats: NodeStats::default(),
        };
        node.draw_election_timeout();
        let alone = node.raft.store().conf_state().voters == [FOUNDER];
        if alone {
            // Nobody else could win: there is nothing to wait for.
            node.raft.campaign().map_err(|error| Fatal::Raft(error.to_string()))?;
            node.draw_election_timeout();
        }
        Ok(node)
    }

    /// Moves raft's ticks along with real time, at most two per turn: a stall must not look like silence of the leader.
    pub(super) fn tick(&mut self, now: Reading) {
        const MAX_TICKS: u64 = 2;
        let elapsed = now.since(self.last_tick).smaller().as_nanos();
        let ticks = u64::try_from(elapsed / u128::from(TICK_NANOS)).unwrap_or(u64::MAX);
        if ticks == 0 {
            return;
        }
        self.last_tick = now;
        for _ in 0..ticks.min(MAX_TICKS) {
            self.raft.tick();
            self.draw_election_timeout();
        }
    }

    /// Replaces a timeout that raft drew for itself by one from our own seed: one seed then decides a whole run.
    pub(super) fn draw_election_timeout(&mut self) {
        if self.raft.raft.randomized_election_timeout() == self.election_timeout {
            return;
        }
        // One step of splitmix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        let extra = usize::try_from(bits % ELECTION_TICKS as u64).expect("a handful of ticks");
        self.election_timeout = ELECTION_TICKS + extra;
        self.raft.raft.set_randomized_election_timeout(self.election_timeout);
    }
}

fn to_raft(entry: LogEntry) -> Entry {
    let mut raft =
        Entry { index: entry.index, term: entry.term, data: entry.payload.into(), ..Entry::default() };
    raft.set_entry_type(match entry.kind {
        1 => EntryType::EntryConfChange,
        2 => EntryType::EntryConfChangeV2,
        _ => EntryType::EntryNormal,
    });
    raft
}
