//! Beginning: from what the files held to a node that campaigns.

use leasehold_core::LeaseTable;
use leasehold_core::holder::Reading;
use leasehold_core::measure::RoundTrips;
use leasehold_core::protocol::{Member, MemberId};
use raft::eraftpb::{ConfState, Entry, EntryType, HardState};
use raft::{Config as RaftConfig, RawNode, StateRole};

use super::{Fatal, LogEntry, Node, Options, SavedSnapshot, Setup, SinceSnapshot, Start, outage};
use crate::batch::Queue;
use crate::changes::ChangeLog;
use crate::clock::STALL_CAP;
use crate::forwards::{Forwards, Visitors};
use crate::hints::Hints;
use crate::holds::Holds;
use crate::members::Roster;
use crate::meter::GapMeter;
use crate::payload::{NodeSnapshot, Voters};
use crate::planted::Kept;
use crate::reads::Reads;
use crate::routes::Routes;
use crate::stats::NodeStats;
use crate::storage::MemoryLog;
use leasehold_core::{Config, Millis, Revision};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// One tick of raft. Short, so that two nodes rarely draw the same time for an election.
pub(super) const TICK_NANOS: u64 = 10_000_000;
/// Elections begin after 30 to 60 ticks without a leader: 300 to 600 ms.
pub(super) const ELECTION_TICKS: usize = 30;
/// Heartbeats go out this often: every 50 ms.
const HEARTBEAT_TICKS: usize = 5;
/// Where disks are slow, two votes of at most this length are waited for.
const SLOWEST_VOTE: Duration = Duration::from_secs(2);
/// The same in ticks.
const MAX_EXTRA_TICKS: usize = 2 * 2_000 / 10;
/// Bytes proposed and not committed at most; beyond it proposals wait in our own queue.
const MAX_UNCOMMITTED: u64 = 64 * 1024 * 1024;
/// Messages with entries on their way to one member at most, so that one whose disk stands still costs bounded memory.
const MAX_INFLIGHT: usize = 64;

/// The founding snapshot has this index and term: a log without it is not a part of the cluster yet.
const FOUNDING: u64 = 1;

/// What all founders of a cluster write before raft begins, byte for byte the same.
pub fn founding_snapshot(config: &Config, members: Vec<Member>) -> SavedSnapshot {
    let voters = members.iter().map(|member| member.id.0).collect::<std::collections::BTreeSet<_>>();
    let voters = Voters { voters: voters.into_iter().collect(), ..Voters::default() };
    let (roster, table) = (Roster::founding(members), LeaseTable::new(config.clone()));
    // Nothing has happened before it: whoever watches from the very beginning misses nothing.
    let changes = ChangeLog::default();
    let bytes = NodeSnapshot::encode(voters, &roster, Some(0), None, &changes, &table);
    SavedSnapshot { index: FOUNDING, term: FOUNDING, bytes }
}

impl Node {
    /// Begins with what the files held. The node campaigns in its first turn.
    ///
    /// # Errors
    /// When the snapshot cannot be read, the log ends before what it says is committed, or raft does not accept it.
    pub fn start(setup: Setup, now: Reading) -> Result<Self, Fatal> {
        let Setup { place, member, start, config, recovered, options, version, pid, seed } = setup;
        let founds = recovered.snapshot.is_none() && start == Start::Alone;
        let (table, stamped, changes, conf, covered, roster, outcomes) = match &recovered.snapshot {
            None => {
                let voters = if founds { vec![member.0] } else { Vec::new() };
                let conf = ConfState { voters, ..ConfState::default() };
                let table = LeaseTable::new(config.clone());
                (table, None, ChangeLog::default(), conf, (0, 0), Roster::default(), Some(0))
            }
            Some(saved) => {
                let snapshot = NodeSnapshot::decode(&saved.bytes)?;
                snapshot.table.check_invariants().map_err(Fatal::Invariant)?;
                let conf = to_conf_state(snapshot.voters);
                let unknown = || ChangeLog::after(Revision::new(saved.index));
                let changes = snapshot.changes.unwrap_or_else(unknown);
                let covered = (saved.index, saved.term);
                let (roster, outcomes) = (snapshot.roster, snapshot.outcomes);
                check_version(roster.version, &options)?;
                (snapshot.table, snapshot.stamped, changes, conf, covered, roster, outcomes)
            }
        };
        let hard_state = HardState {
            // A snapshot may be newer than the last vote that was noted.
            term: recovered.vote.term.max(covered.1),
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
            id: member.0,
            election_tick: ELECTION_TICKS,
            heartbeat_tick: HEARTBEAT_TICKS,
            min_election_tick: ELECTION_TICKS,
            // Raft's own draws are replaced; this only bounds ours.
            max_election_tick: 2 * ELECTION_TICKS + MAX_EXTRA_TICKS + 1,
            applied: covered.0,
            max_uncommitted_size: MAX_UNCOMMITTED,
            max_size_per_msg: 1024 * 1024,
            max_inflight_msgs: MAX_INFLIGHT,
            pre_vote: true,
            check_quorum: true,
            ..RaftConfig::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raft =
            RawNode::new(&raft_config, log, &logger).map_err(|error| Fatal::Raft(error.to_string()))?;
        let hints = Hints::new(options.renewals_at_once);
        let mut node = Self {
            raft,
            table,
            roster,
            outcomes,
            place,
            options,
            version,
            pid,
            seed,
            last_tick: now,
            leadership: None,
            early: VecDeque::new(),
            forwards: Forwards::default(),
            visitors: Visitors::default(),
            running: Duration::ZERO,
            heard: BTreeMap::new(),
            known_versions: BTreeMap::new(),
            raising: None,
            change: None,
            handover: None,
            leaving: None,
            caught_up: false,
            full: false,
            fatal: None,
            queue: Queue::default(),
            proposed: VecDeque::new(),
            reads: Reads::default(),
            routes: Routes::default(),
            installing: None,
            writes: VecDeque::new(),
            write_allowance: STALL_CAP,
            write_waited: Duration::ZERO,
            write_took: Duration::ZERO,
            drawn: None,
            vote_write: None,
            passed_on_full: false,
            applied: covered.0,
            applied_term: covered.1,
            stamped,
            found: founds.then_some(config),
            cut_before: Millis::ZERO,
            // What the files held behind the snapshot counts when it is applied.
            since_snapshot: SinceSnapshot::default(),
            making: None,
            holds: Holds::default(),
            hints,
            changes,
            draining: false,
            now,
            stats: NodeStats::default(),
            meter: GapMeter::default(),
            silent: outage::Silent::default(),
            led: None,
            pace: super::Pace::default(),
            owes_stamp: false,
            recovered: last,
            commits: Box::new(RoundTrips::new(Self::COMMITS_KEPT, now)),
            encoding: Vec::new(),
            kept: Kept::default(),
        };
        node.meter = GapMeter::new(node.options.gap_patterns.clone());
        node.meter.begin(&node.table, node.table.last_at());
        if let Some((stamp, _)) = node.last_stamped()? {
            node.pace = super::Pace::begun(stamp, now);
        }
        node.draw_election_timeout();
        if node.is_alone() {
            // Nobody else could win: there is nothing to wait for.
            node.raft.campaign().map_err(|error| Fatal::Raft(error.to_string()))?;
            node.draw_election_timeout();
        }
        Ok(node)
    }

    /// Moves raft's ticks along with real time, at most 100 ms per turn: a stall must not look like silence of the leader.
    pub(super) fn tick(&mut self, now: Reading) {
        const MAX_TICKS: u64 = 10;
        let elapsed = now.since(self.last_tick).smaller().as_nanos();
        let ticks = u64::try_from(elapsed / u128::from(TICK_NANOS)).unwrap_or(u64::MAX);
        if ticks == 0 || self.installing.is_some() {
            return;
        }
        if self.vote_write.is_some() && !self.is_leader() {
            // Nobody hears of its vote before it is written: until then no time passes for the election.
            self.last_tick = now;
            return;
        }
        if self.is_alone() && !self.is_leader() && !self.writes.is_empty() {
            // It would lead at once, and raft wants everything written before.
            return;
        }
        // What is left over counts for the next one; what a stall has left over does not.
        let counted = self.last_tick.plus(Duration::from_nanos(ticks.min(MAX_TICKS) * TICK_NANOS));
        self.last_tick = if ticks > MAX_TICKS { now } else { counted };
        for _ in 0..ticks.min(MAX_TICKS) {
            self.raft.tick();
            self.draw_election_timeout();
        }
    }

    /// Replaces a timeout that raft drew for itself by one that follows from our own seed and from where raft stands: one seed then
    /// decides a whole run, however often raft draws.
    pub(super) fn draw_election_timeout(&mut self) {
        let raft = &self.raft.raft;
        let stands = [raft.id, raft.term, raft.state as u64, raft.leader_id];
        let extra = match self.drawn {
            Some((then, extra)) if then == stands => extra,
            _ => {
                let bits = stands.into_iter().fold(self.seed, |bits, part| mix(bits ^ mix(part)));
                self.election_turn(bits)
            }
        };
        self.drawn = Some((stands, extra));
        // Votes are written down on both sides before they count. Whoever campaigns with a slow disk, which others may have as well,
        // waits for that, or no election would ever end.
        let slow = if raft.state == StateRole::Candidate {
            let slow = 2 * self.write_took.min(SLOWEST_VOTE);
            usize::try_from(slow.as_nanos() / u128::from(TICK_NANOS)).expect("it is bounded")
        } else {
            0
        };
        self.raft.raft.set_randomized_election_timeout(ELECTION_TICKS + extra + slow);
    }

    /// The ticks beyond the smallest timeout. Each voter draws from a span of its own, which moves on with each term, and from the
    /// first half of it alone: voters that lost sight of a leader at one moment, or split a vote, begin apart from each other, so
    /// that one vote may be split and no second one, unless messages take longer than half a span.
    fn election_turn(&self, bits: u64) -> usize {
        let raft = &self.raft.raft;
        let voters = raft.prs().conf().voters();
        let count = voters.ids().len().max(1);
        let before = voters.ids().iter().filter(|id| *id < raft.id).count();
        let place =
            (before + usize::try_from(raft.term % count as u64).expect("less than the voters")) % count;
        let half = u64::try_from(ELECTION_TICKS / (2 * count)).expect("a handful").max(1);
        place * ELECTION_TICKS / count + usize::try_from(bits % half).expect("a handful of ticks")
    }
}

/// Refuses a log that may hold what this release does not know.
pub(super) const fn check_version(needs: u32, options: &Options) -> Result<(), Fatal> {
    let knows = options.cluster_version;
    if needs > knows { Err(Fatal::TooOld { needs, knows }) } else { Ok(()) }
}

/// One step of splitmix64.
const fn mix(state: u64) -> u64 {
    let mut bits = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// The members as raft has them.
pub(super) fn to_conf_state(voters: Voters) -> ConfState {
    ConfState {
        voters: voters.voters,
        learners: voters.learners,
        voters_outgoing: voters.outgoing,
        learners_next: voters.learners_next,
        auto_leave: voters.auto_leave,
        ..ConfState::default()
    }
}

/// The members as a snapshot has them.
pub(super) fn from_conf_state(conf: &ConfState) -> Voters {
    // Raft keeps them in no order: equal states must have equal bytes.
    let sorted = |ids: &[u64]| {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids
    };
    Voters {
        voters: sorted(&conf.voters),
        learners: sorted(&conf.learners),
        outgoing: sorted(&conf.voters_outgoing),
        learners_next: sorted(&conf.learners_next),
        auto_leave: conf.auto_leave,
    }
}

impl Node {
    /// Whether nobody else decides anything.
    pub(super) fn is_alone(&self) -> bool {
        let conf = self.raft.store().conf_state();
        conf.voters == [self.raft.raft.id] && conf.voters_outgoing.is_empty()
    }

    /// Whether this node does not know any member yet.
    pub(super) fn is_blank(&self) -> bool {
        self.raft.store().conf_state().voters.is_empty()
    }

    /// The voters other than this one.
    pub(super) fn other_voters(&self) -> impl Iterator<Item = MemberId> + '_ {
        let me = self.raft.raft.id;
        self.raft.store().conf_state().voters.iter().copied().filter(move |id| *id != me).map(MemberId)
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
