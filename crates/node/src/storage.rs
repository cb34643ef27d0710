//! The part of the log that raft looks at, in memory. The files are the driver's; this mirrors what was handed to them.

use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

pub(crate) struct MemoryLog {
    hard_state: HardState,
    conf_state: ConfState,
    /// The last entry that the newest snapshot covers.
    snapshot_index: u64,
    snapshot_term: u64,
    /// The last entry that is not in memory any more.
    dropped_index: u64,
    dropped_term: u64,
    entries: VecDeque<Entry>,
}

impl MemoryLog {
    pub(crate) fn new(hard_state: HardState, conf_state: ConfState, snapshot: (u64, u64)) -> Self {
        let (snapshot_index, snapshot_term) = snapshot;
        Self {
            hard_state,
            conf_state,
            snapshot_index,
            snapshot_term,
            dropped_index: snapshot_index,
            dropped_term: snapshot_term,
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

    pub(crate) fn conf_state(&self) -> &ConfState {
        &self.conf_state
    }

    /// A snapshot up to `index` is safe on disk: entries up to it may go.
    pub(crate) fn compact(&mut self, index: u64, term: u64) {
        self.snapshot_index = index;
        self.snapshot_term = term;
        while self.entries.front().is_some_and(|entry| entry.index <= index) {
            let gone = self.entries.pop_front().expect("the front was just looked at");
            self.dropped_index = gone.index;
            self.dropped_term = gone.term;
        }
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

    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        // Asked for only to bring up a follower; a log with one voter has none.
        Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}
