//! The disk's thread of a node, as the service has it: one write after the other, each synced before it is reported.

use leasehold_node::payload::SnapshotImage;
use leasehold_node::{Input, LogEntry, LogWrite, SavedSnapshot};
use leasehold_wal::mem::MemDisk;
use leasehold_wal::{Entry, HardState, Index, NodeId, Record, SnapshotKind, Space, Term, Wal, WriteError};

use super::faults::Undo;
use super::nodes::End;
use super::process::{DiskThread, Files, Process};
use super::{Event, World};
use crate::trace::{MICRO, MILLI, SECOND};

/// While there is no space, it is asked for again this often.
const SPACE_INTERVAL: u64 = SECOND;
/// A write that finds no space waits this long between two tries, and gives up after so many.
const WRITE_INTERVAL: u64 = 100 * MILLI;
const WRITE_TRIES: u32 = 600;
/// A process that dies after a job is gone this much later at most: before or after its loop hears that it is done.
const LATER: u64 = 300 * MICRO;
/// Making the bytes of a snapshot takes less than this.
const SNAPSHOT_TIME: u64 = 200 * MILLI;
/// The longest write that a candidate counts with, as nodes have it.
const SLOWEST_VOTE: u64 = 2 * SECOND;
/// Bytes of entries in one batch at most: few, so that many writes take several batches, and nodes die between them.
const MAX_BATCH_BYTES: usize = 2 * 1024;

/// Something for the disk.
pub(super) enum Job {
    Write(LogWrite),
    Snapshot(SavedSnapshot),
}

impl Job {
    /// Whether it writes a snapshot, one of its own or one that it was sent.
    const fn is_snapshot(&self) -> bool {
        match self {
            Self::Write(write) => write.install.is_some(),
            Self::Snapshot(_) => true,
        }
    }
}

/// What is left of a write that found no space.
enum Progress {
    Done,
    NoSpace,
    Failed(WriteError),
}

impl World {
    pub(super) fn hand_to_disk(&mut self, at: usize, job: Job) {
        let disk = &mut self.processes[at].disk;
        if matches!(job, Job::Write(_)) {
            disk.writes_since.get_or_insert(self.now);
        }
        disk.jobs.push_back(job);
        self.disk_begins(at);
    }

    /// Has the bytes of a snapshot made, which takes a while: they must be those of this moment all the same.
    pub(super) fn make_snapshot(&mut self, at: usize, image: Box<SnapshotImage>, for_disk: bool) {
        // As long as the moment says: a number that is drawn would change what all others are.
        let takes = self.now % SNAPSHOT_TIME;
        let life = self.processes[at].life;
        self.queue.push(self.now + takes, Event::SnapshotMade { at, life, image, for_disk });
    }

    pub(super) fn snapshot_made(&mut self, at: usize, life: u32, image: &SnapshotImage, for_disk: bool) {
        if self.processes[at].life != life || !self.processes[at].is_running() {
            return;
        }
        if for_disk {
            return self.hand_to_disk(at, Job::Snapshot(image.save()));
        }
        let soon = self.soon();
        self.processes[at].push(Input::SnapshotMade(image.save()), soon);
    }

    /// How much longer an election may take because of writes that took long: a candidate waits for two votes of the slowest length that
    /// it remembers before it tries again.
    pub(super) fn slow_votes(&self) -> u64 {
        let slowest = |own: &Process| {
            let present = own.disk.writes_since.map_or(0, |since| self.now - since);
            own.disk.slowest_write.max(present)
        };
        let running = self.processes.iter().filter(|own| own.is_running());
        2 * running.map(slowest).max().unwrap_or(0).min(SLOWEST_VOTE)
    }

    /// Begins the next job, if there is one and nothing is being done.
    pub(super) fn disk_begins(&mut self, at: usize) {
        let takes = self.net.between(self.plan.disk_delay.0, self.plan.disk_delay.1);
        let own = &mut self.processes[at];
        if own.disk.busy.is_some() || own.disk.jobs.is_empty() || own.paused {
            return;
        }
        own.disk.next_job += 1;
        let job = own.disk.next_job;
        own.disk.busy = Some(job);
        let slow = if own.disk.slow > 0 { self.net.below(own.disk.slow) } else { 0 };
        self.queue.push(self.now + takes + slow, Event::DiskDone { at, life: own.life, job });
    }

    pub(super) fn disk_done(&mut self, at: usize, life: u32, job: u64) {
        let own = &mut self.processes[at];
        if own.life != life || own.disk.busy != Some(job) {
            return;
        }
        if own.paused || own.disk.stuck {
            own.disk.finished_in_pause = true;
            return;
        }
        self.trace.note(self.now, 1, at as u64);
        if self.dies_at_disk(at) {
            return;
        }
        let own = &mut self.processes[at];
        own.disk.busy = None;
        let Some(next) = own.disk.jobs.pop_front() else { return };
        match next {
            Job::Write(write) => self.do_write(at, write),
            Job::Snapshot(snapshot) => {
                self.processes[at].disk.waiting = Some(snapshot);
                self.save_waiting(at);
            }
        }
        self.after_job(at);
    }

    /// Whether the process dies in the middle of this job. If it is to die after it, that is planned.
    fn dies_at_disk(&mut self, at: usize) -> bool {
        let DiskThread { dies, jobs, .. } = &mut self.processes[at].disk;
        let Some(death) = dies else { return false };
        if death.at_snapshot && !jobs.front().is_some_and(Job::is_snapshot) {
            return false;
        }
        if death.jobs > 0 {
            death.jobs -= 1;
            return false;
        }
        let after = death.after;
        self.processes[at].disk.dies = None;
        if after {
            let (soon, life) = (self.chance.below(LATER), self.processes[at].life);
            self.queue.push(self.now + soon, Event::Undo(Undo::Lives { at, life }));
        } else {
            let end = if self.chance.one_in(2) { End::Killed } else { End::PowerLost };
            self.kill(at, end);
        }
        !after
    }

    fn do_write(&mut self, at: usize, mut write: LogWrite) {
        let number = write.number;
        let durable = super::nodes::spans(&write.entries);
        let installs = write.install.is_some();
        let own = &mut self.processes[at];
        let Files::Log(wal) = &mut own.files else { return };
        match self::write(wal, &mut write) {
            Progress::Done => {
                own.disk.tries = 0;
                let took = own.disk.writes_since.map_or(0, |since| self.now - since);
                own.disk.slowest_write = took.max(own.disk.slowest_write * 7 / 8);
                let more = own.disk.jobs.iter().any(|job| matches!(job, Job::Write(_)));
                own.disk.writes_since = more.then_some(self.now);
                self.note_durable(at, &durable);
                let soon = self.soon();
                self.processes[at].push(Input::Written { number }, soon);
                if installs {
                    self.restock_if_enough(at);
                }
            }
            Progress::NoSpace if own.disk.tries < WRITE_TRIES => {
                own.disk.tries += 1;
                own.disk.jobs.push_front(Job::Write(write));
                own.disk.next_job += 1;
                let (life, job) = (own.life, own.disk.next_job);
                own.disk.busy = Some(job);
                self.queue.push(self.now + WRITE_INTERVAL, Event::DiskDone { at, life, job });
                self.restock(at);
            }
            Progress::NoSpace => self.process_fails(at, "no space for a minute"),
            Progress::Failed(error) => self.process_fails(at, &error.to_string()),
        }
    }

    fn after_job(&mut self, at: usize) {
        let Files::Log(wal) = &mut self.processes[at].files else { return };
        if let Err(error) = without_space(wal.prepare()) {
            return self.process_fails(at, &error.to_string());
        }
        self.look_for_space(at);
        self.disk_begins(at);
    }

    fn look_for_space(&mut self, at: usize) {
        let own = &self.processes[at];
        if self.is_short(at) && self.now - own.disk.asked >= SPACE_INTERVAL {
            self.processes[at].disk.asked = self.now;
            self.save_waiting(at);
            self.restock(at);
        }
        self.tell_space(at);
        let own = &mut self.processes[at];
        if own.is_running() && !own.disk.looks && self.is_short(at) {
            let own = &mut self.processes[at];
            own.disk.looks = true;
            self.queue.push(self.now + SPACE_INTERVAL, Event::DiskLooks { at, life: own.life });
        }
    }

    pub(super) fn disk_looks(&mut self, at: usize, life: u32) {
        let own = &mut self.processes[at];
        if own.life != life || !own.is_running() {
            return;
        }
        own.disk.looks = false;
        if own.disk.busy.is_none() && !own.paused && !own.disk.stuck {
            self.look_for_space(at);
        } else {
            own.disk.looks = true;
            self.queue.push(self.now + SPACE_INTERVAL, Event::DiskLooks { at, life });
        }
    }

    fn is_short(&self, at: usize) -> bool {
        let own = &self.processes[at];
        let short = matches!(&own.files, Files::Log(wal) if wal.space() == Space::Reserved);
        short || own.disk.waiting.is_some()
    }

    /// Makes what is kept aside; says so if the process cannot go on.
    pub(super) fn restock(&mut self, at: usize) {
        let Files::Log(wal) = &mut self.processes[at].files else { return };
        if let Err(error) = wal.restock() {
            self.process_fails(at, &error.to_string());
        }
    }

    /// The table may have grown since the last snapshot, and with it what the next one needs.
    fn restock_if_enough(&mut self, at: usize) {
        if matches!(&self.processes[at].files, Files::Log(wal) if wal.space() == Space::Enough) {
            self.restock(at);
        }
    }

    pub(super) fn tell_space(&mut self, at: usize) {
        let soon = self.soon();
        let own = &mut self.processes[at];
        let Files::Log(wal) = &own.files else { return };
        let space = wal.space();
        if own.disk.told.unwrap_or(Space::Enough) != space {
            own.disk.told = Some(space);
            own.push(Input::Space { enough: space == Space::Enough }, soon);
            if space == Space::Reserved {
                self.totals.short_of_space += 1;
                self.note_handover();
            }
        }
    }

    fn save_waiting(&mut self, at: usize) {
        let soon = self.soon();
        let own = &mut self.processes[at];
        let (Some(snapshot), Files::Log(wal)) = (&own.disk.waiting, &mut own.files) else { return };
        let SavedSnapshot { index, term, bytes } = snapshot;
        let index = *index;
        let saved = wal.save_snapshot(SnapshotKind::Taken, Index(index), Term(*term), bytes, &[]).map(|_| ());
        let is_over = match saved {
            Err(WriteError::OutOfOrder { .. }) => Ok(true),
            saved => without_space(saved),
        };
        match is_over {
            Ok(true) => {
                own.disk.waiting = None;
                self.totals.snapshots += 1;
                own.push(Input::SnapshotSaved { index }, soon);
                self.restock_if_enough(at);
            }
            Ok(false) => {}
            Err(error) => self.process_fails(at, &error.to_string()),
        }
    }

    /// The process ends in the middle of what its disk was doing: some operations happened, the rest did not.
    pub(super) fn interrupt_disk(&mut self, at: usize) {
        let snapshot = self.processes[at].disk.jobs.front().is_some_and(Job::is_snapshot);
        // The time goes into what syncs: after the write of a batch; after a file was written, after it was renamed, and after it was
        // recorded.
        let syncs: &[u64] = if snapshot { &[3, 5, 7] } else { &[1] };
        let stop = if self.chance.one_in(2) { *self.chance.pick(syncs) } else { self.chance.below(9) };
        let own = &mut self.processes[at];
        let (Some(_), Files::Log(wal)) = (own.disk.busy, &mut own.files) else { return };
        let Some(job) = own.disk.jobs.pop_front() else { return };
        own.interrupted = true;
        wal.disk_mut().stop_after(usize::try_from(stop).expect("a few"));
        match job {
            Job::Write(mut write) => {
                let _ = self::write(wal, &mut write);
            }
            Job::Snapshot(SavedSnapshot { index, term, bytes }) => {
                let _ = wal.save_snapshot(SnapshotKind::Taken, Index(index), Term(term), &bytes, &[]);
            }
        }
        // What is done between two jobs may be what it is interrupted in.
        let _ = wal.prepare();
    }
}

/// Whether it was done; that there was no space is no error.
fn without_space(done: Result<(), WriteError>) -> Result<bool, WriteError> {
    match done {
        Ok(()) => Ok(true),
        Err(WriteError::NoSpace { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes and syncs everything that is left: first a snapshot that takes the place of what was before, then vote and entries.
fn write(wal: &mut Wal<MemDisk>, write: &mut LogWrite) -> Progress {
    if let Some(SavedSnapshot { index, term, bytes }) = &write.install {
        let (index, term) = (Index(*index), Term(*term));
        match without_space(wal.save_snapshot(SnapshotKind::Installed, index, term, bytes, &[]).map(|_| ())) {
            Ok(true) => write.install = None,
            Ok(false) => return Progress::NoSpace,
            Err(error) => return Progress::Failed(error),
        }
    }
    while let Some((batch, taken)) = next_batch(write) {
        match without_space(wal.append(&batch)) {
            Ok(true) => {
                write.entries.drain(..taken);
                if write.entries.is_empty() {
                    write.vote = None;
                }
            }
            Ok(false) => return Progress::NoSpace,
            Err(error) => return Progress::Failed(error),
        }
    }
    Progress::Done
}

/// What is appended next, and how many entries that takes. No batch says that more is committed than it and those before it hold.
fn next_batch(write: &LogWrite) -> Option<(Vec<Record>, usize)> {
    if write.vote.is_none() && write.entries.is_empty() {
        return None;
    }
    let (mut bytes, mut taken) = (0, 0);
    for entry in &write.entries {
        if bytes + entry.payload.len() > MAX_BATCH_BYTES && taken > 0 {
            break;
        }
        bytes += entry.payload.len();
        taken += 1;
    }
    let part = &write.entries[..taken];
    let last = part.last().map(|entry| entry.index);
    let state = write.vote.map(|vote| {
        Record::HardState(HardState {
            term: Term(vote.term),
            vote: (vote.vote != 0).then_some(NodeId(vote.vote)),
            commit: Index(last.map_or(vote.commit, |last| vote.commit.min(last))),
        })
    });
    Some((state.into_iter().chain(part.iter().map(record)).collect(), taken))
}

fn record(entry: &LogEntry) -> Record {
    Record::Entry(Entry {
        index: Index(entry.index),
        term: Term(entry.term),
        kind: entry.kind,
        payload: entry.payload.clone(),
    })
}
