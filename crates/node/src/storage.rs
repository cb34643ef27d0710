//! The part of the log that raft looks at, in memory. The files are the driver's; this mirrors what was handed to them.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

/// Entries that stay in memory behind a snapshot, for followers that are only a little behind: a snapshot costs far more.
const KEPT_ENTRIES: u64 = 4_096;
/// And bytes of them at most.
const KEPT_BYTES: usize = 32 * 1024 * 1024;
/// The same while somebody is sent a copy of everything: making, sending and reading one of a million leases takes some seconds.
const KEPT_BYTES_BEHIND_A_COPY: usize = 4 * KEPT_BYTES;

pub(crate) struct MemoryLog {
    hard_state: HardState,
    conf_state: ConfState,
    /// For followers that need more than the log has; made when one is asked for.
    snapshot: Option<Snapshot>,
    snapshot_wanted: Cell<bool>,
    /// The last entry that is not in memory any more.
    dropped_index: u64,
    dropped_term: u64,
    entries: VecDeque<Entry>,
}

impl MemoryLog {
    pub(crate) fn new(hard_state: HardState, conf_state: ConfState, snapshot: (u64, u64)) -> Self {
        let (dropped_index, dropped_term) = snapshot;
        Self {
            hard_state,
            conf_state,
            snapshot: None,
            snapshot_wanted: Cell::new(false),
            dropped_index,
            dropped_term,
            entries: VecDeque::new(),
        }
    }

    /// Adds entries; they supersede what was there from the first of them on.
    pub(crate) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(first.index > self.dropped_index, "entry {} supersedes what a snapshot covers", first.index);
        let keep = usize::try_from(first.index - self.dropped_index - 1).expect("the log fits in memory");
        assert!(keep <= self.entries.len(), "entry {} leaves a gap in the log", first.index);
        self.entries.truncate(keep);
        self.entries.extend(entries.iter().cloned());
    }

    pub(crate) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    pub(crate) const fn hard_state(&self) -> &HardState {
        &self.hard_state
    }

    pub(crate) fn conf_state(&self) -> &ConfState {
        &self.conf_state
    }

    /// The members changed. A snapshot made before would not know those that it is meant for.
    pub(crate) fn set_conf_state(&mut self, conf_state: ConfState) {
        self.conf_state = conf_state;
        self.snapshot = None;
    }

    /// A snapshot takes the place of everything up to `index`, whatever was there, and of the members.
    pub(crate) fn install(&mut self, index: u64, term: u64, conf_state: ConfState) {
        self.entries.clear();
        (self.dropped_index, self.dropped_term) = (index, term);
        self.hard_state.commit = self.hard_state.commit.max(index);
        self.set_conf_state(conf_state);
    }

    /// Whether a snapshot was asked for that there is not. Says so once.
    pub(crate) fn takes_wanted_snapshot(&mut self) -> bool {
        self.snapshot_wanted.take()
    }

    /// A snapshot for followers.
    pub(crate) fn offer_snapshot(&mut self, snapshot: Snapshot) {
        // Whoever asked meanwhile asks again, and gets this one.
        self.snapshot_wanted.set(false);
        self.snapshot = Some(snapshot);
    }

    /// A snapshot up to `index` is safe on disk: entries up to it may go, but for some that followers may still need. Whoever is sent a copy
    /// that ends at `copied` needs all behind that: without them it would be sent another one, for ever where there is much to do.
    pub(crate) fn compact(&mut self, index: u64, alone: bool, copied: Option<u64>) {
        let mut last = if alone {
            index
        } else {
            index.saturating_sub(KEPT_ENTRIES).max(self.beyond(KEPT_BYTES).min(index))
        };
        if let Some(copied) = copied {
            last = last.min(copied.max(self.beyond(KEPT_BYTES_BEHIND_A_COPY)));
        }
        while self.entries.front().is_some_and(|entry| entry.index <= last) {
            let gone = self.entries.pop_front().expect("the front was just looked at");
            self.dropped_index = gone.index;
            self.dropped_term = gone.term;
        }
        self.snapshot.take_if(|snapshot| snapshot.get_metadata().index < self.dropped_index);
    }

    /// The last entry behind which there are at most so many bytes.
    fn beyond(&self, bytes: usize) -> u64 {
        let mut sum = 0;
        let too_old = self.entries.iter().rev().find(|entry| {
            sum += entry.data.len();
            sum > bytes
        });
        too_old.map_or(0, |entry| entry.index)
    }

    /// Nobody needs the snapshot for followers now: it may be many megabytes.
    pub(crate) fn forget_snapshot(&mut self) {
        self.snapshot = None;
    }

    fn position(&self, index: u64) -> Option<usize> {
        let position = usize::try_from(index.checked_sub(self.dropped_index + 1)?).ok()?;
        (position < self.entries.len()).then_some(position)
    }
}

impl Storage for MemoryLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState { hard_state: self.hard_state.clone(), conf_state: self.conf_state.clone() })
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low <= self.dropped_index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        let from = self.position(low);
        let (Some(from), Some(to)) = (from, self.position(high - 1)) else {
            return Err(raft::Error::Store(StorageError::Unavailable));
        };
        let mut entries: Vec<Entry> = self.entries.range(from..=to).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.dropped_index {
            return Ok(self.dropped_term);
        }
        if index < self.dropped_index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        let position = self.position(index).ok_or(raft::Error::Store(StorageError::Unavailable))?;
        Ok(self.entries[position].term)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.dropped_index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.entries.back().map_or(self.dropped_index, |entry| entry.index))
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        // What a snapshot does not cover must still be in the log.
        let fits = |snapshot: &&Snapshot| {
            let index = snapshot.get_metadata().index;
            index >= request_index && index >= self.dropped_index
        };
        if let Some(snapshot) = self.snapshot.as_ref().filter(fits) {
            return Ok(snapshot.clone());
        }
        // Making one takes long, and one at a time is enough: raft asks again.
        self.snapshot_wanted.set(true);
        Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: u64, bytes: usize) -> MemoryLog {
        let mut log = MemoryLog::new(HardState::default(), ConfState::default(), (0, 0));
        let entry = |index| Entry { index, term: 1, data: vec![1; bytes].into(), ..Entry::default() };
        log.append(&(1..=entries).map(entry).collect::<Vec<_>>());
        log
    }

    #[test]
    fn what_is_behind_a_copy_that_is_under_way_is_kept() {
        for (copied, first) in [(None, 10_000 - KEPT_ENTRIES + 1), (Some(3_000), 3_001)] {
            let mut log = log(10_000, 10);
            log.compact(10_000, false, copied);
            assert_eq!(log.first_index(), Ok(first), "copied {copied:?}");
        }
    }

    #[test]
    fn a_copy_that_takes_too_long_does_not_keep_the_log_for_ever() {
        let many = (KEPT_BYTES_BEHIND_A_COPY >> 20) as u64 + 10;
        let mut log = log(many, 1 << 20);
        log.compact(many, false, Some(1));
        assert_eq!(log.first_index(), Ok(11));
    }
}
