//! What is written, and how: in batches, with patience where there is no space, and with an eye on how long it takes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_node::{Buckets, Input, LogEntry, LogWrite, SavedSnapshot};
use leasehold_wal::{Entry, HardState, Index, NodeId, Record, SnapshotKind, Space, Term, Wal, WriteError};

use super::super::ToLoop;
use super::ToDisk;
use crate::disk::FileDisk;
use crate::inbox::Inbox;

/// A disk that syncs within this time is quick. The loop's longest sleep is five times that, and an election twenty times and more.
pub(super) const QUICK: Duration = Duration::from_millis(4);
/// So many quick writes after a slow one, and the loop writes again.
pub(super) const QUICK_WRITES: u32 = 64;

/// Microseconds of a write and its sync.
const SYNC_BOUNDS: &[u64] = &[
    25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600, 1_638_400,
    6_553_600,
];

/// How long writes took. Clones share it.
#[derive(Debug, Clone)]
pub(in super::super) struct SyncTimes(Arc<Mutex<Buckets>>);

impl SyncTimes {
    pub(in super::super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Buckets::new(SYNC_BOUNDS))))
    }

    pub(in super::super) fn get(&self) -> Buckets {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, micros: u128) {
        let micros = u64::try_from(micros).unwrap_or(u64::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(micros);
    }
}

/// While there is no space, it is asked for again this often.
pub(super) const SPACE_INTERVAL: Duration = Duration::from_secs(1);
/// A write that finds no space at all, not even what was kept aside, waits this long between two tries,
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
/// and gives up after so many: a minute. Nothing was answered meanwhile, and a new process finds the log as it is.
const WRITE_TRIES: u32 = 600;

/// Writes to the log, for whichever thread has it.
pub(super) struct Writer {
    wal: Wal<FileDisk>,
    /// A snapshot that found no space: the node waits for it before it makes another.
    waiting: Option<SavedSnapshot>,
    /// What the node was last told.
    told: Space,
    asked: Reading,
    /// Quick writes since the last slow one.
    quick: u32,
    to_loop: Inbox,
    times: SyncTimes,
}

/// Ends the thread: for an error, or because nobody listens any more.
pub(super) type Ended = Option<WriteError>;

impl Writer {
    pub(super) fn new(wal: Wal<FileDisk>, to_loop: Inbox, times: SyncTimes) -> Self {
        let asked = leasehold_clock::read();
        Self { wal, waiting: None, told: Space::Enough, asked, quick: 0, to_loop, times }
    }

    pub(super) fn begin(&mut self) -> Result<(), Ended> {
        self.wal.restock()?;
        self.tell()
    }

    pub(super) fn carry_out(&mut self, job: Option<ToDisk>) -> Result<(), Ended> {
        match job {
            Some(ToDisk::Write(write)) => {
                let (number, installs) = (write.number, write.install.is_some());
                let began = leasehold_clock::read();
                self::write(&mut self.wal, write)?;
                self.note_time(began);
                self.send(Input::Written { number })?;
                if installs && self.wal.space() == Space::Enough {
                    self.wal.restock()?;
                }
            }
            Some(ToDisk::Snapshot { index, term, bytes }) => {
                self.waiting = Some(SavedSnapshot { index, term, bytes });
                self.save_waiting()?;
            }
            Some(ToDisk::Look) | None => {}
        }
        // After the answer is on its way: the next segment is made before it is needed.
        without_space(self.wal.prepare())?;
        self.look_for_space()
    }

    /// Writes without waiting for space; gives back what found none.
    pub(super) fn append_once(&mut self, write: LogWrite) -> Result<Option<LogWrite>, Ended> {
        let number = write.number;
        let began = leasehold_clock::read();
        let kept = write.clone();
        for batch in batches(write) {
            // A small write is one batch.
            if !without_space(self.wal.append(&batch))? {
                return Ok(Some(kept));
            }
        }
        self.note_time(began);
        self.send(Input::Written { number })?;
        Ok(None)
    }

    fn note_time(&mut self, began: Reading) {
        self.note(leasehold_clock::read().since(began).smaller());
    }

    /// Notes how long a write took.
    pub(super) fn note(&mut self, took: Duration) {
        self.times.add(took.as_micros());
        self.quick = if took < QUICK { self.quick.saturating_add(1) } else { 0 };
    }

    /// Whether the next small write can be expected to be quick.
    pub(super) fn is_quick(&self) -> bool {
        self.quick >= QUICK_WRITES && !self.is_short() && !self.has_to_look()
    }

    /// Whether there is something for the thread to do.
    pub(super) fn has_to_look(&self) -> bool {
        self.wal.wants_segment() || self.wal.space() != self.told
    }

    pub(super) fn tell_end(&self, ended: Ended) {
        if let Some(error) = ended {
            let _ = self.to_loop.send(ToLoop::Failed(error.to_string()));
        }
    }

    pub(super) fn is_short(&self) -> bool {
        self.wal.space() == Space::Reserved || self.waiting.is_some()
    }

    fn look_for_space(&mut self) -> Result<(), Ended> {
        let now = leasehold_clock::read();
        if self.is_short() && now.since(self.asked).smaller() >= SPACE_INTERVAL {
            self.asked = now;
            self.save_waiting()?;
            self.wal.restock()?;
        }
        self.tell()
    }

    /// Saves a snapshot if there is space for it. Without space the log goes on and grows.
    fn save_waiting(&mut self) -> Result<(), Ended> {
        let Some(SavedSnapshot { index, term, bytes }) = &self.waiting else { return Ok(()) };
        let index = *index;
        let saved =
            self.wal.save_snapshot(SnapshotKind::Taken, Index(index), Term(*term), bytes, &[]).map(|_| ());
        let is_over = match saved {
            // One from another member took its place meanwhile.
            Err(WriteError::OutOfOrder { .. }) => true,
            saved => without_space(saved)?,
        };
        if is_over {
            self.waiting = None;
            self.send(Input::SnapshotSaved { index })?;
            // The table may have grown since the last one, and with it what its next snapshot needs.
            if self.wal.space() == Space::Enough {
                self.wal.restock()?;
            }
        }
        Ok(())
    }

    fn tell(&mut self) -> Result<(), Ended> {
        let space = self.wal.space();
        if space != self.told {
            self.told = space;
            self.send(Input::Space { enough: space == Space::Enough })?;
        }
        Ok(())
    }

    fn send(&self, input: Input) -> Result<(), Ended> {
        self.to_loop.send(ToLoop::Node(input)).map_err(|_| None)
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

/// Does something that must be done, and waits for space if there is none.
fn patiently(
    wal: &mut Wal<FileDisk>,
    mut act: impl FnMut(&mut Wal<FileDisk>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for _ in 0..WRITE_TRIES {
        if without_space(act(wal))? {
            return Ok(());
        }
        std::thread::sleep(WRITE_INTERVAL);
        wal.restock()?;
    }
    act(wal)
}

/// Bytes of entries in one batch at most: a follower that catches up gets many megabytes at once, and a batch has a limit. It must fit a
/// segment that was kept aside, with what else stands in that: a full disk gives no larger one.
const MAX_BATCH_BYTES: usize = 3 * 1024 * 1024;

/// Writes and syncs everything: first a snapshot that takes the place of what was before, then vote and entries.
fn write(wal: &mut Wal<FileDisk>, mut write: LogWrite) -> Result<(), WriteError> {
    if let Some(SavedSnapshot { index, term, bytes }) = write.install.take() {
        let (index, term) = (Index(index), Term(term));
        patiently(wal, |wal| {
            wal.save_snapshot(SnapshotKind::Installed, index, term, &bytes, &[]).map(|_| ())
        })?;
    }
    for batch in batches(write) {
        patiently(wal, |wal| wal.append(&batch))?;
    }
    Ok(())
}

/// What is appended at once. Each batch says how far the log is committed, and none says more than it and those before it hold: a
/// crash may fall between two of them.
fn batches(write: LogWrite) -> Vec<Vec<Record>> {
    let LogWrite { vote, entries, .. } = write;
    let state = |last: Option<u64>| {
        vote.map(|vote| {
            Record::HardState(HardState {
                term: Term(vote.term),
                vote: (vote.vote != 0).then_some(NodeId(vote.vote)),
                commit: Index(last.map_or(vote.commit, |last| vote.commit.min(last))),
            })
        })
    };
    let mut parts: Vec<Vec<LogEntry>> = vec![Vec::new()];
    let mut bytes = 0;
    for entry in entries {
        let last = parts.last_mut().expect("there is always one");
        if bytes + entry.payload.len() > MAX_BATCH_BYTES && !last.is_empty() {
            bytes = entry.payload.len();
            parts.push(vec![entry]);
        } else {
            bytes += entry.payload.len();
            last.push(entry);
        }
    }
    let batch = |part: Vec<LogEntry>| {
        let state = state(part.last().map(|entry| entry.index));
        state.into_iter().chain(part.into_iter().map(record)).collect::<Vec<_>>()
    };
    parts.into_iter().map(batch).filter(|batch| !batch.is_empty()).collect()
}

fn record(entry: LogEntry) -> Record {
    Record::Entry(Entry {
        index: Index(entry.index),
        term: Term(entry.term),
        kind: entry.kind,
        payload: entry.payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_node::Vote;

    fn entry(index: u64, bytes: usize) -> LogEntry {
        LogEntry { index, term: 3, kind: 0, payload: vec![7; bytes] }
    }

    fn commits(batch: &[Record]) -> Vec<u64> {
        let commit = |record: &Record| match record {
            Record::HardState(state) => Some(state.commit.0),
            _ => None,
        };
        batch.iter().filter_map(commit).collect()
    }

    #[test]
    fn no_batch_says_that_more_is_committed_than_is_written_by_then() {
        let vote = Some(Vote { term: 3, vote: 1, commit: 12 });
        let entries = (10..14).map(|index| entry(index, MAX_BATCH_BYTES / 2 + 1)).collect();
        let batches = batches(LogWrite { number: 1, install: None, vote, entries });
        assert_eq!(batches.iter().map(|batch| commits(batch)).collect::<Vec<_>>(), [[10], [11], [12], [12]]);
        assert!(batches.iter().all(|batch| batch.len() == 2));
    }

    #[test]
    fn a_vote_alone_is_a_batch_and_nothing_is_none() {
        let vote = Some(Vote { term: 3, vote: 1, commit: 12 });
        let batches_of = |vote| batches(LogWrite { number: 1, install: None, vote, entries: Vec::new() });
        assert_eq!(commits(&batches_of(vote)[0]), [12]);
        assert!(batches_of(None).is_empty());
    }
    #[test]
    fn on_a_full_disk_the_largest_batch_fits_a_segment_that_was_kept_aside() {
        use leasehold_wal::mem::MemDisk;
        use leasehold_wal::{Identity, Options, RESERVE_SEGMENTS};
        let entries = (1..50).map(|index| entry(index, MAX_BATCH_BYTES / 6)).collect();
        let batches = batches(LogWrite { number: 1, install: None, vote: None, entries });
        assert!(batches.len() > RESERVE_SEGMENTS as usize);
        let options = Options { reserve_segments: RESERVE_SEGMENTS, ..Options::default() };
        let mut disk = MemDisk::new();
        let (mut wal, _) = Wal::open(&mut disk, Identity { lock_inode: 1 }, options).unwrap();
        wal.restock().unwrap();
        wal.disk_mut().set_full(true);
        for batch in &batches[..RESERVE_SEGMENTS as usize] {
            wal.append(batch).unwrap();
        }
    }
}
