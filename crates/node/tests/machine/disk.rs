//! A disk that records what it is given and syncs when it is told to.

use std::collections::VecDeque;

use leasehold_node::payload::SnapshotImage;
use leasehold_node::{LogEntry, LogWrite, Recovered, SavedSnapshot, Vote};

/// What a crash leaves of writes that were handed over and not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    /// Nothing of them.
    KeepsAcknowledged,
    /// The first so many of them, whole: they had reached the disk, and nobody was told.
    KeepsWritten(usize),
}

#[derive(Default)]
pub(crate) struct FakeDisk {
    pub(crate) vote: Vote,
    /// Every entry that was ever synced, from the first: snapshots drop nothing here, so that all can be compared.
    pub(crate) synced: Vec<LogEntry>,
    pub(crate) in_flight: VecDeque<LogWrite>,
    /// A snapshot handed over and not reported as saved. Its bytes are made when it is.
    pub(crate) saving: Option<Box<SnapshotImage>>,
    pub(crate) saved: Option<(u64, u64, Vec<u8>)>,
    /// Writes handed over so far.
    pub(crate) writes: usize,
}

impl FakeDisk {
    pub(crate) fn take(&mut self, write: LogWrite) {
        self.writes += 1;
        self.in_flight.push_back(write);
    }

    /// Syncs the oldest write and says its number.
    pub(crate) fn sync(&mut self) -> Option<u64> {
        let write = self.in_flight.pop_front()?;
        let number = write.number;
        self.keep(write);
        Some(number)
    }

    fn keep(&mut self, write: LogWrite) {
        if let Some(vote) = write.vote {
            self.vote = vote;
        }
        for entry in write.entries {
            assert_eq!(
                entry.index,
                self.synced.len() as u64 + 1,
                "the only voter never writes an entry again"
            );
            self.synced.push(entry);
        }
    }

    /// The snapshot is safe: its index and term.
    pub(crate) fn save_snapshot(&mut self) -> Option<(u64, u64)> {
        let SavedSnapshot { index, term, bytes } = self.saving.take()?.save();
        self.saved = Some((index, term, bytes));
        Some((index, term))
    }

    /// Loses what a crash loses and gives back what the next process finds.
    pub(crate) fn crash(&mut self, crash: Crash) -> Recovered {
        let kept = match crash {
            Crash::KeepsAcknowledged => 0,
            Crash::KeepsWritten(count) => count.min(self.in_flight.len()),
        };
        for write in self.in_flight.drain(..).take(kept).collect::<Vec<_>>() {
            self.keep(write);
        }
        self.saving = None;
        let covered = self.saved.as_ref().map_or(0, |(index, ..)| *index);
        let behind = self.synced.iter().filter(|entry| entry.index > covered);
        Recovered {
            vote: self.vote,
            entries: behind.cloned().collect(),
            snapshot: self.saved.clone().map(|(index, term, bytes)| SavedSnapshot { index, term, bytes }),
        }
    }
}
