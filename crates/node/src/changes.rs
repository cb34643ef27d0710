//! The last changes of the table, for whoever watches and was away for a moment.
//!
//! Every node makes them from the entries it applies, so all nodes have the same. They are part of snapshots: a node that starts
//! again can go on where its watchers stood. What is too old is forgotten, and the oldest point to go on from is known.

use std::collections::VecDeque;
use std::sync::Arc;

use leasehold_core::Revision;
use leasehold_core::command::encode_behind;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{Change, Changes};
use serde::{Deserialize, Serialize};

/// Changes that are kept at most: a watcher that was away for a restart of the service finds what it missed.
pub const MAX_KEPT_CHANGES: usize = 32_768;
/// Bytes of changes that are kept at most, roughly: they are in memory and in every snapshot.
pub const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The changes that are kept, in order.
#[derive(Debug, Clone, Default)]
pub struct ChangeLog {
    kept: VecDeque<Batch>,
    changes: usize,
    bytes: usize,
    oldest: Revision,
    /// Room in which the bytes of the next entry are made.
    room: Vec<u8>,
}

/// Room for that which is kept from one entry to the next. Larger ones are rare.
const MOST_ROOM: usize = 256 * 1024;

/// The changes of one entry. Their bytes are made once, and every snapshot has them.
#[derive(Debug, Clone)]
struct Batch {
    changes: Arc<Changes>,
    encoded: Arc<[u8]>,
    weight: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    oldest: Revision,
    batches: usize,
}

impl ChangeLog {
    /// Nothing is known of what happened up to `revision`.
    pub fn after(revision: Revision) -> Self {
        Self { oldest: revision, ..Self::default() }
    }

    /// All changes after this revision are kept.
    pub fn oldest(&self) -> Revision {
        self.oldest
    }

    /// What is kept, in order.
    pub fn kept(&self) -> impl Iterator<Item = &Arc<Changes>> {
        self.kept.iter().map(|batch| &batch.changes)
    }

    /// Adds the changes of an entry, and forgets the oldest ones beyond the limits.
    pub(crate) fn push(&mut self, changes: Changes) -> Arc<Changes> {
        let mut room = std::mem::take(&mut self.room);
        room.clear();
        let room = encode_behind(room, &changes);
        let encoded = room.as_slice().into();
        if room.capacity() <= MOST_ROOM {
            self.room = room;
        }
        self.keep(Arc::new(changes), encoded)
    }

    fn keep(&mut self, changes: Arc<Changes>, encoded: Arc<[u8]>) -> Arc<Changes> {
        let weight = changes.changes.iter().map(Change::weight).sum::<usize>();
        self.changes += changes.changes.len();
        self.bytes += weight;
        self.kept.push_back(Batch { changes: Arc::clone(&changes), encoded, weight });
        while self.changes > MAX_KEPT_CHANGES || self.bytes > MAX_KEPT_BYTES {
            let Some(forgotten) = self.kept.pop_front() else { break };
            self.changes -= forgotten.changes.changes.len();
            self.bytes -= forgotten.weight;
            self.oldest = forgotten.changes.revision;
        }
        changes
    }

    /// Bytes that [`encode`](Self::encode) adds, nearly.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.kept.iter().map(|batch| batch.encoded.len()).sum()
    }

    pub(crate) fn encode(&self, bytes: Vec<u8>) -> Vec<u8> {
        let dropped = usize::from(planted(Bug::ChangeDroppedAtSnapshot) && !self.kept.is_empty());
        let batches = self.kept.len() - dropped;
        let head = Head { oldest: self.oldest, batches };
        let mut bytes = postcard::to_extend(&head, bytes).expect("a vector grows as needed");
        for batch in self.kept.iter().take(batches) {
            bytes.extend_from_slice(&batch.encoded);
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote, and gives back what comes behind it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), postcard::Error> {
        let (head, mut rest): (Head, _) = postcard::take_from_bytes(bytes)?;
        let mut log = Self::after(head.oldest);
        for _ in 0..head.batches {
            let (changes, behind): (Changes, _) = postcard::take_from_bytes(rest)?;
            let encoded = &rest[..rest.len() - behind.len()];
            log.keep(Arc::new(changes), encoded.into());
            rest = behind;
        }
        Ok((log, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{RegisterKey, ResourceName, Token};

    fn entry(revision: u64, changes: usize) -> Changes {
        let change = Change::RegisterWritten {
            resource: ResourceName::new("job").unwrap(),
            key: RegisterKey::new("cursor").unwrap(),
            token: Token::from_u64(revision),
            removed: false,
        };
        Changes { revision: Revision::new(revision), changes: vec![change; changes] }
    }

    #[test]
    fn what_is_forgotten_moves_the_oldest_point_to_go_on_from() {
        let mut log = ChangeLog::default();
        for revision in 1..=5 {
            log.push(entry(revision, MAX_KEPT_CHANGES / 4));
        }
        assert_eq!(log.oldest(), Revision::new(1));
        assert_eq!(log.kept().next().unwrap().revision, Revision::new(2));
    }

    #[test]
    fn an_entry_that_is_too_large_alone_is_forgotten_at_once_and_everything_before_it() {
        let mut log = ChangeLog::default();
        log.push(entry(1, 1));
        log.push(entry(2, MAX_KEPT_CHANGES + 1));
        assert_eq!((log.oldest(), log.kept().count()), (Revision::new(2), 0));
        log.push(entry(3, 1));
        assert_eq!(log.kept().count(), 1);
    }

    #[test]
    fn a_snapshot_keeps_all_of_it() {
        let mut log = ChangeLog::after(Revision::new(7));
        for revision in 8..20 {
            log.push(entry(revision, 3));
        }
        let mut bytes = log.encode(vec![1, 2]);
        bytes.extend_from_slice(b"behind");
        let (read, behind) = ChangeLog::decode(&bytes[2..]).unwrap();
        assert_eq!(behind, b"behind");
        assert_eq!((read.oldest(), read.changes, read.bytes), (log.oldest(), log.changes, log.bytes));
        assert!(read.kept().eq(log.kept()));
        assert_eq!(read.encode(Vec::new()), log.encode(Vec::new()));
    }
}
