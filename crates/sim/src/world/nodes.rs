//! The loop of a node, as the service drives it, and the beginnings and ends of its process.

mod ends;
mod stalls;

use std::sync::Arc;

use leasehold_core::limits::Limits;
use leasehold_core::protocol::{Failure, Member, MemberId, Response, ToClient};
use leasehold_core::{Config, Drift, Millis};
use leasehold_node::{
    CALLS, Input, LogEntry, LogWrite, Membership, Node, Options, Output, Place, Recovered, SavedSnapshot,
    Setup, Start, Vote, founding_snapshot,
};
use leasehold_wal::mem::MemDisk;
use leasehold_wal::{
    HardState, Identity, Index, OpenError, Options as WalOptions, RESERVE_SEGMENTS, Record, SnapshotKind,
    Term, Wal,
};

use super::disk::Job;
use super::faults::rollback;
use super::peers::{NEXT_VERSION, OLD_VERSION};
use super::plain::is_plain;
use super::process::{Death, DiskThread, Files, Process, Standing, Unapplied};
use super::{Event, Phase, World};
use crate::check::sometimes::Situation;
use crate::clock::MachineClock;
use crate::plan::{Fault, Plan};
use crate::random::Random;
use crate::record::{self, Event as Noted, LogId, NodeId, Stopped, TrueTime};
use crate::trace::{MICRO, MILLI, SECOND, member_name};

pub(super) use stalls::Stalls;

/// Small segments: worlds write little, and must change segments often.
const FIRST_SEGMENT_BYTES: u64 = 8 << 10;
const SEGMENT_BYTES: u64 = 16 << 10;

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is gone; what it wrote is there.
    Killed,
    /// Its machine has lost power; what it had not synced may be gone.
    PowerLost,
}

pub(super) fn config(plan: &Plan) -> Config {
    let drift = Drift::from_ppm(plan.drift_ppm).expect("plans have possible bounds");
    let limits = Limits { tidy_leases: plan.tidy_leases, ..Limits::default() };
    Config { max_ttl: Millis::new(plan.max_ttl), drift, limits }
}

fn member(slot: usize, generation: u32) -> Member {
    let id = MemberId((u64::from(generation) + 1) << 8 | (slot as u64 + 1));
    let name = format!("n{}", slot + 1);
    Member::new(id, &name, &format!("10.0.0.{}:7070", slot + 1)).expect("a good name and address")
}

fn wal_options(must_exist: bool) -> WalOptions {
    WalOptions {
        first_segment_bytes: FIRST_SEGMENT_BYTES,
        segment_bytes: SEGMENT_BYTES,
        reserve_segments: RESERVE_SEGMENTS,
        must_exist,
    }
}

/// The lock file of the directory that a slot begins with.
const fn lock_inode(slot: usize) -> u64 {
    slot as u64 + 1
}

/// A disk with a log that begins with a snapshot, as a founding or a restore leaves it.
pub(super) fn disk_with(slot: usize, snapshot: &SavedSnapshot) -> MemDisk {
    let identity = Identity { lock_inode: lock_inode(slot) };
    let mut wal = Wal::create(MemDisk::new(), identity, wal_options(false)).expect("nothing fails yet");
    let (index, term) = (Index(snapshot.index), Term(snapshot.term));
    let state = Record::HardState(HardState { term, vote: None, commit: index });
    wal.save_snapshot(SnapshotKind::Installed, index, term, &snapshot.bytes, &[state])
        .expect("nothing fails yet");
    wal.into_disk()
}

impl World {
    /// When a loop that hears of something now takes its turn.
    pub(super) fn soon(&mut self) -> u64 {
        self.now + if self.plan.tight { MICRO } else { self.net.between(2 * MICRO, 40 * MICRO) }
    }

    pub(super) fn make_processes(&mut self, slots: usize, random: &mut Random) {
        let members: Vec<Member> = (0..self.plan.nodes).map(|slot| member(slot, 0)).collect();
        let founding = founding_snapshot(&config(&self.plan), members);
        let release = if self.plan.faults.has(Fault::Upgrade) { OLD_VERSION } else { NEXT_VERSION };
        for slot in 0..slots {
            let used = slot < self.plan.nodes;
            let clock = self.draw_clock(random, true);
            let disk = if used { disk_with(slot, &founding) } else { MemDisk::new() };
            let member = member(slot, 0);
            self.processes.push(Process {
                standing: if used { Standing::Used } else { Standing::Unused },
                membership: Arc::new(blank(member.id)),
                member,
                generation: 0,
                life: 0,
                node: None,
                files: Files::Disk(Box::new(disk)),
                founded: used,
                clock,
                wake_at: u64::MAX,
                paused: false,
                inbox: Vec::new(),
                met: std::collections::BTreeSet::new(),
                connections: std::collections::BTreeSet::new(),
                disk: DiskThread::default(),
                log: std::collections::BTreeMap::new(),
                noted: 0,
                state: LogId(0),
                term: 0,
                leads: None,
                hands_over: false,
                told_since: 0,
                interrupted: false,
                damaged: false,
                earlier: None,
                forgot: None,
                lock_inode: lock_inode(slot),
                knows: release,
                set_back: false,
                stalls: Stalls::default(),
            });
        }
        for slot in 0..self.plan.nodes {
            self.queue.push(random.below(50) * MILLI, Event::Starts { at: slot, life: 0 });
        }
    }

    /// Two clocks with rate errors within the bound. In a tight world nodes are as fast as can be and clients as slow.
    pub(super) fn draw_clock(&self, random: &mut Random, is_node: bool) -> MachineClock {
        let (boot, raw) = self.draw_errors(random, is_node);
        MachineClock::new(random.between(1, 1 << 50), random.between(1, 1 << 50), boot, raw)
    }

    /// Rate errors in billionths.
    pub(super) fn draw_errors(&self, random: &mut Random, is_node: bool) -> (i64, i64) {
        let bound = i64::from(self.plan.clock_ppm) * 1_000;
        if self.plan.tight {
            let error = if is_node { bound } else { -bound };
            return (error, error);
        }
        let mut draw = || {
            let error = i64::try_from(random.below(2 * bound.unsigned_abs() + 1)).expect("small") - bound;
            if random.one_in(3) { error.signum() * bound } else { error }
        };
        (draw(), draw())
    }

    /// A wiped slot: another id, and nothing on its disk.
    pub(super) fn wipe(&mut self, at: usize) {
        let own = &mut self.processes[at];
        own.generation += 1;
        own.member = member(at, own.generation);
        own.files = Files::Disk(Box::new(MemDisk::new()));
        own.founded = false;
        own.damaged = false;
        (own.earlier, own.forgot, own.lock_inode) = (None, None, lock_inode(at));
        own.membership = Arc::new(blank(own.member.id));
        // Whoever sets up a node takes a release that the others can talk to.
        if self.processes.iter().any(|other| other.knows > OLD_VERSION) {
            self.processes[at].knows = NEXT_VERSION;
        }
    }

    /// Begins a process, if it is still wanted.
    pub(super) fn starts(&mut self, at: usize, life: u32) {
        let own = &mut self.processes[at];
        if own.life != life || own.is_running() || own.standing == Standing::Unused {
            return;
        }
        if own.clock.stands_still() {
            return self.queue.push(self.now + OPERATOR_PAUSE, Event::Starts { at, life });
        }
        own.life += 1;
        own.inbox.clear();
        own.paused = false;
        let (slow, full, stuck) = (own.disk.slow, own.disk.full, own.disk.stuck);
        own.disk = DiskThread { slow, full, stuck, ..DiskThread::default() };
        let mut disk = own.take_disk();
        disk.restart();
        let must_exist = own.founded;
        let interrupted = std::mem::take(&mut own.interrupted);
        if self.plan.faults.has(Fault::CrashAtDisk) && self.phase == Phase::Faults {
            // Who lost power once loses it soon again, often: while what the first loss left is mended.
            if self.chance.one_in(if interrupted { 2 } else { 4 }) {
                return self.dies_while_opening(at, disk, must_exist);
            }
            if interrupted && self.chance.one_in(2) {
                let jobs = self.chance.below(4) / 3;
                let death = Death { jobs, after: false, at_snapshot: false };
                self.processes[at].disk.dies = Some(death);
            }
        }
        let own = &mut self.processes[at];
        let kept = disk.clone();
        let identity = Identity { lock_inode: own.lock_inode };
        self.trace.note(self.now, 2, at as u64);
        match Wal::open(disk, identity, wal_options(own.founded)) {
            Ok((mut wal, recovered)) => {
                wal.disk_mut().set_full(own.disk.full);
                own.files = Files::Log(Box::new(wal));
                self.begin_node(at, recovered);
            }
            Err(error) => {
                own.files = Files::Disk(Box::new(kept));
                let expected = match error {
                    OpenError::Damage(_) | OpenError::Missing => own.damaged,
                    OpenError::CopiedDirectory { .. } => own.lock_inode != lock_inode(at),
                    _ => false,
                };
                self.trace.say(self.now, || format!("n{} does not open: {error}", at + 1));
                let node = NodeId(self.processes[at].member.id.0);
                self.note_stopped(node, if expected { Stopped::Damaged } else { Stopped::Failed });
                if !expected {
                    self.notes.violated(format!("n{} does not open its log: {error}", at + 1));
                }
                self.replace_damaged(at);
            }
        }
    }

    /// Only some of what opening a log does to the disk happens.
    fn dies_while_opening(&mut self, at: usize, mut disk: MemDisk, must_exist: bool) {
        self.trace.say(self.now, || format!("n{} dies while it opens its log", at + 1));
        self.processes[at].interrupted = true;
        let most = if self.chance.one_in(2) { 6 } else { 24 };
        disk.stop_after(usize::try_from(self.chance.below(most)).expect("a few"));
        let identity = Identity { lock_inode: self.processes[at].lock_inode };
        // Whatever it says, it is not heard.
        let _ = Wal::open(&mut disk, identity, wal_options(must_exist));
        disk.restart();
        let disk = if self.chance.one_in(3) { disk } else { self.power_lost(&disk) };
        self.processes[at].files = Files::Disk(Box::new(disk));
        self.restart_later(at);
    }

    fn begin_node(&mut self, at: usize, recovered: leasehold_wal::Recovered) {
        let seed = self.chance.bits();
        let own = &mut self.processes[at];
        own.founded = true;
        let recovered = from_log(recovered);
        own.noted = recovered.snapshot.as_ref().map_or(0, |snapshot| snapshot.index);
        own.term = recovered.vote.term;
        own.log.clear();
        for entry in &recovered.entries {
            own.log.insert(entry.index, unapplied(entry));
        }
        own.told_since = self.now;
        let durable = spans(&recovered.entries);
        let setup = Setup {
            place: Place::Served,
            member: own.member.id,
            start: Start::Blank,
            config: config(&self.plan),
            recovered,
            options: Options {
                snapshot_entries: self.plan.snapshot_entries,
                cluster_version: own.knows,
                renewals_at_once: self.plan.renewals_at_once,
                ..Options::default()
            },
            version: "simulated".into(),
            pid: own.life,
            seed,
        };
        match Node::start(setup, own.clock.read(self.now)) {
            Ok(node) => {
                own.membership = Arc::new(node.membership());
                own.met.clear();
                own.node = Some(node);
                own.wake_at = self.now;
                self.totals.starts += 1;
                self.note_started(at);
                self.note_durable(at, &durable);
                self.note_kept_changes(at, u64::MAX);
                self.trace.say(self.now, || format!("n{} starts", at + 1));
                self.restock(at);
                self.tell_space(at);
                self.keep_links(at);
            }
            Err(fatal) => self.process_ends_fatally(at, &fatal),
        }
    }

    /// One turn of a node's loop with everything that arrived.
    pub(super) fn node_turn(&mut self, at: usize) {
        self.count_turn(at);
        let own = &mut self.processes[at];
        let Process { node: Some(node), inbox, clock, .. } = own else {
            own.wake_at = u64::MAX;
            return;
        };
        self.trace.note(self.now, 3, at as u64 ^ (inbox.len() as u64) << 8);
        self.totals.turns += 1;
        let turned = if self.faults.set_back {
            rollback::turn(node, clock.read(self.now), std::mem::take(inbox))
        } else {
            Ok(node.turn(clock.read(self.now), inbox.drain(..)))
        };
        let turned = match turned {
            Ok(turned) => turned,
            Err(words) => return self.process_panics(at, &words),
        };
        match turned {
            Ok(outputs) => {
                let sleep = u64::try_from(node.sleep().duration().as_nanos()).expect("a short sleep");
                own.wake_at = own.clock.after(self.now, sleep);
                let drained = node.is_drained();
                if !outputs.is_empty() {
                    self.carry_out(at, outputs);
                }
                self.note_turn(at);
                if drained {
                    self.drained(at);
                }
            }
            Err(fatal) => self.process_ends_fatally(at, &fatal),
        }
    }

    fn carry_out(&mut self, at: usize, outputs: Vec<Output>) {
        let mut outgoing: Vec<(u64, Vec<ToClient>)> = Vec::new();
        let mut closed = Vec::new();
        let told = outputs.iter().filter_map(|output| match output {
            Output::Changed(changes) => Some(changes.revision.get()),
            _ => None,
        });
        let first_told = told.min().unwrap_or(u64::MAX);
        for output in outputs {
            if let Output::Send { message: ToClient::Response { response, .. }, .. } = &output
                && matches!(response, Response::Failed(Failure::OutcomeUnknown))
            {
                self.notes.record.reached.reach(Situation::OutcomeUnknown);
            }
            match output {
                Output::Write(write) => {
                    self.note_write(at, &write);
                    self.hand_to_disk(at, Job::Write(write));
                }
                Output::SaveSnapshot(image) => self.make_snapshot(at, image, true),
                Output::MakeSnapshot(image) => self.make_snapshot(at, image, false),
                Output::Changed(changes) => self.note_changes(at, changes),
                Output::Send { connection: CALLS, message } => {
                    if let ToClient::Response { id, response } = message {
                        if is_plain(id) {
                            self.plain_leaves(at, id, response);
                        } else {
                            self.call_answered(at, id, response);
                        }
                    }
                }
                Output::Send { connection, message } => {
                    match outgoing.iter_mut().find(|(known, _)| *known == connection.0) {
                        Some((_, messages)) => messages.push(message),
                        None => outgoing.push((connection.0, vec![message])),
                    }
                }
                Output::SendPeer { to, message } => {
                    self.vote_leaves(at, to, &message);
                    self.send_peer(at, to, message);
                }
                Output::Close(connection) => closed.push(connection.0),
                Output::Members(membership) => {
                    self.processes[at].membership = membership;
                    self.note_members(at);
                    self.keep_links(at);
                }
                Output::Replaced => {
                    self.processes[at].told_since = self.now;
                    self.note_kept_changes(at, first_told);
                }
            }
        }
        for (connection, messages) in outgoing {
            self.send_to_client(at, connection, messages);
        }
        for connection in closed {
            self.node_closes(at, connection);
        }
    }

    fn note_write(&mut self, at: usize, write: &LogWrite) {
        let own = &mut self.processes[at];
        if let Some(vote) = &write.vote {
            if own.term != vote.term {
                let (term, voted) = (vote.term, vote.vote);
                self.trace.say(self.now, || {
                    format!("n{} is in term {term}, its vote is for {}", at + 1, member_name(voted))
                });
            }
            own.term = vote.term;
        }
        if let Some(snapshot) = &write.install {
            own.log.clear();
            own.noted = own.noted.max(snapshot.index);
            self.totals.installs += 1;
            self.note_installed(at, snapshot.index);
            self.interesting();
        }
        self.note_stamped(at, &write.entries);
        let own = &mut self.processes[at];
        own.stalls.wrote(self.now);
        if let Some(first) = write.entries.first() {
            own.log.split_off(&first.index);
        }
        for entry in &write.entries {
            own.log.insert(entry.index, unapplied(entry));
        }
    }

    /// Who leads and serves, as far as it knows itself: the one with the greatest term.
    pub(super) fn leader(&self) -> Option<usize> {
        let serving = self
            .processes
            .iter()
            .enumerate()
            .filter(|(_, own)| own.node.as_ref().is_some_and(Node::is_serving) && !own.paused);
        serving.max_by_key(|(_, own)| (own.state, own.term)).map(|(at, _)| at)
    }

    /// Those that run.
    pub(super) fn running(&self) -> Vec<usize> {
        (0..self.processes.len()).filter(|at| self.processes[*at].is_running()).collect()
    }

    pub(super) fn ask_to_drain(&mut self, at: usize) {
        let node = NodeId(self.processes[at].member.id.0);
        self.notes.record.push(TrueTime(self.now), Noted::Draining { node });
        self.note_handover();
        let soon = self.soon();
        self.processes[at].push(Input::Drain, soon);
    }
}

fn blank(me: MemberId) -> Membership {
    Membership {
        me,
        incarnation: leasehold_core::protocol::Incarnation::default(),
        epoch: 0,
        version: 0,
        members: Vec::new(),
        removed: Vec::new(),
    }
}

fn unapplied(entry: &LogEntry) -> Unapplied {
    Unapplied { term: entry.term, kind: entry.kind, payload: entry.payload.clone() }
}

/// First, last and term of the stretches of one term.
pub(super) fn spans(entries: &[LogEntry]) -> Vec<(u64, u64, u64)> {
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    for entry in entries {
        match spans.last_mut() {
            Some((_, last, term)) if *term == entry.term && *last + 1 == entry.index => *last = entry.index,
            _ => spans.push((entry.index, entry.index, entry.term)),
        }
    }
    spans
}

fn from_log(recovered: leasehold_wal::Recovered) -> Recovered {
    let state = recovered.hard_state;
    let entry = |entry: leasehold_wal::Entry| LogEntry {
        index: entry.index.0,
        term: entry.term.0,
        kind: entry.kind,
        payload: entry.payload,
    };
    let snapshot = |(meta, bytes): (leasehold_wal::SnapshotMeta, Vec<u8>)| SavedSnapshot {
        index: meta.index.0,
        term: meta.term.0,
        bytes,
    };
    Recovered {
        vote: Vote { term: state.term.0, vote: state.vote.map_or(0, |node| node.0), commit: state.commit.0 },
        entries: recovered.entries.into_iter().map(entry).collect(),
        snapshot: recovered.snapshot.map(snapshot),
    }
}

/// How long a slot is left alone after trouble that an operator must see to.
pub(super) const OPERATOR_PAUSE: u64 = SECOND;

/// A hash of what an entry is.
pub(super) fn entry_hash(kind: u8, payload: &[u8]) -> u64 {
    record::hash(payload) ^ u64::from(kind)
}
