//! A disk per process: it keeps what was synced, and a crash loses the rest, or all but the first of it. A crash may also fall into the
//! middle of one write, where the log on disk writes it in several batches; a batch is there or it is not.

use std::collections::{BTreeMap, VecDeque};

use leasehold_core::planted::{Bug, planted};
use leasehold_node::payload::SnapshotImage;
use leasehold_node::{LogEntry, LogWrite, Recovered, SavedSnapshot, Vote};

#[derive(Default)]
pub(crate) struct Disk {
    vote: Vote,
    log: BTreeMap<u64, LogEntry>,
    snapshot: Option<SavedSnapshot>,
    /// Handed over, each with the time at which it is synced unless the disk stands still.
    in_flight: VecDeque<(u64, LogWrite)>,
    /// Its bytes are made when it is saved.
    saving: Option<Box<SnapshotImage>>,
    /// Nothing is synced while this is so.
    pub(crate) stuck: bool,
    /// Said to be synced and not there: only with a bug.
    lied: VecDeque<LogWrite>,
}

impl Disk {
    pub(crate) fn with(snapshot: Option<SavedSnapshot>) -> Self {
        Self { snapshot, ..Self::default() }
    }

    pub(crate) fn take(&mut self, write: LogWrite, synced_at: u64) {
        self.in_flight.push_back((synced_at, write));
    }

    /// The newest term in which it voted or heard of a leader.
    pub(crate) const fn term(&self) -> u64 {
        self.vote.term
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.saving.is_none()
    }

    /// Syncs the oldest write if its time has come, and says its number.
    pub(crate) fn sync(&mut self, now: u64) -> Option<u64> {
        if self.stuck || self.in_flight.front().is_none_or(|(at, _)| *at > now) {
            return None;
        }
        let (_, write) = self.in_flight.pop_front()?;
        let number = write.number;
        if planted(Bug::AckBeforeSync) {
            self.lied.push_back(write);
            // Some reach it in the end.
            if self.lied.len() > 1 {
                let old = self.lied.pop_front().expect("there are two");
                self.keep(old);
            }
        } else {
            self.keep(write);
        }
        Some(number)
    }

    fn keep(&mut self, write: LogWrite) {
        if let Some(snapshot) = write.install {
            self.log.clear();
            self.snapshot = Some(snapshot);
        }
        if let Some(vote) = write.vote {
            self.vote = vote;
        }
        if let Some(first) = write.entries.first() {
            self.log.split_off(&first.index);
        }
        self.log.extend(write.entries.into_iter().map(|entry| (entry.index, entry)));
    }

    pub(crate) fn save(&mut self, snapshot: Box<SnapshotImage>) {
        assert!(self.saving.is_none(), "one snapshot is saved at a time");
        self.saving = Some(snapshot);
    }

    /// The snapshot that is being saved is safe: its index. One that is older than what is there is skipped.
    pub(crate) fn saved(&mut self) -> Option<u64> {
        if self.stuck {
            return None;
        }
        let snapshot = self.saving.take()?.save();
        let index = snapshot.index;
        if self.covered() < index {
            self.log = self.log.split_off(&(index + 1));
            self.snapshot = Some(snapshot);
        }
        Some(index)
    }

    /// The last entry that the snapshot covers.
    pub(crate) fn covered(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.index)
    }

    /// A synced entry.
    pub(crate) fn entry(&self, index: u64) -> Option<&LogEntry> {
        let lied = self.lied.iter().flat_map(|write| &write.entries);
        self.log.get(&index).or_else(|| lied.into_iter().find(|entry| entry.index == index))
    }

    /// Whether this very entry is synced, by itself or in a snapshot.
    pub(crate) fn has(&self, entry: &LogEntry) -> bool {
        self.covered() >= entry.index || self.entry(entry.index) == Some(entry)
    }

    /// The process is gone; of what was on its way the first `kept` batches are there.
    pub(crate) fn crash(&mut self, kept: usize) {
        self.lied.clear();
        let in_flight = std::mem::take(&mut self.in_flight).into_iter();
        let batches: Vec<LogWrite> = in_flight.flat_map(|(_, write)| batches(write)).collect();
        for batch in batches.into_iter().take(kept) {
            self.keep(batch);
        }
        self.saving = None;
        self.stuck = false;
    }

    /// What the next process finds.
    pub(crate) fn recovered(&self) -> Recovered {
        let last = self.log.keys().next_back().copied().unwrap_or(0).max(self.covered());
        // A disk that lies about entries lies about the commit beside them as well.
        let commit = if planted(Bug::AckBeforeSync) { self.vote.commit.min(last) } else { self.vote.commit };
        Recovered {
            vote: Vote { commit, ..self.vote },
            entries: self.log.values().filter(|entry| entry.index > self.covered()).cloned().collect(),
            snapshot: self.snapshot.clone(),
        }
    }

    /// How many batches are on their way.
    pub(crate) fn batches_in_flight(&self) -> usize {
        let writes = self.in_flight.iter().map(|(_, write)| batches(write.clone()).len());
        writes.sum()
    }

    /// A copy of what is synced, to be put back later.
    pub(crate) fn copy(&self) -> Self {
        Self { vote: self.vote, log: self.log.clone(), snapshot: self.snapshot.clone(), ..Self::default() }
    }

    /// Replaces the bytes of the snapshot.
    pub(crate) fn corrupt(&mut self, change: impl FnOnce(&[u8]) -> Vec<u8>) {
        let snapshot = self.snapshot.as_mut().expect("there is a snapshot");
        snapshot.bytes = change(&snapshot.bytes);
    }
}

/// What the log on disk writes of this one after the other, if every entry were as large as a batch may be. Each batch says how far
/// the log is committed, and none says more than it and those before it hold.
fn batches(write: LogWrite) -> Vec<LogWrite> {
    let LogWrite { number, install, vote, entries } = write;
    let batch = |vote: Option<Vote>, entries| LogWrite { number, install: None, vote, entries };
    let capped = |last: u64| vote.map(|vote| Vote { commit: vote.commit.min(last), ..vote });
    let vote_alone = vote.map(|vote| batch(Some(vote), Vec::new()));
    let is_bare = entries.is_empty();
    let apart = planted(Bug::WritesEntriesFirst) || planted(Bug::WritesVotesFirst);
    let vote_of = |entry: &LogEntry| if apart { None } else { capped(entry.index) };
    let with_entries = entries.into_iter().map(|entry| batch(vote_of(&entry), vec![entry]));
    let mut batches: Vec<LogWrite> = with_entries.collect();
    if planted(Bug::WritesVotesFirst) {
        batches.splice(0..0, vote_alone).for_each(drop);
    } else if is_bare || apart {
        batches.extend(vote_alone);
    }
    let install = install.map(|install| LogWrite { install: Some(install), ..batch(None, Vec::new()) });
    install.into_iter().chain(batches).collect()
}
