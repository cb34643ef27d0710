//! Records and their bytes.
//!
//! The encoding is fixed and little-endian; whether bytes are as they were written is the block's business, so a record that does not
//! decode is damage that a CRC did not catch, or a mistake of ours.

use crate::block::{BatchNumber, SegmentNumber};
use std::fmt;

/// A position in the replicated log; the first entry has 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u64);

/// A term of leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// A node, as votes name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a node must never forget about elections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardState {
    /// The highest term seen.
    pub term: Term,
    /// The vote given in that term.
    pub vote: Option<NodeId>,
    /// The highest index known to be committed.
    pub commit: Index,
}

impl HardState {
    /// The state of a node that has seen nothing.
    pub const NEW: Self = Self { term: Term(0), vote: None, commit: Index(0) };
}

/// One entry of the replicated log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its position; it supersedes all entries at and above.
    pub index: Index,
    /// The term of the leader that proposed it.
    pub term: Term,
    /// Whose payload it is; opaque here.
    pub kind: u8,
    /// Opaque here.
    pub payload: Vec<u8>,
}

/// What a caller appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Replaces the hard state.
    HardState(HardState),
    /// Adds an entry.
    Entry(Entry),
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Taken from our own table: entries above its index stay.
    Taken,
    /// Received from a leader: all entries are dropped.
    Installed,
}

/// A snapshot as recorded in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// Where it comes from.
    pub kind: SnapshotKind,
    /// The last index it contains.
    pub index: Index,
    /// The term of that index.
    pub term: Term,
    /// The number in its file's name.
    pub file: BatchNumber,
    /// The length of its bytes, without the file's header.
    pub len: u64,
    /// The checksum in its file's header.
    pub crc: u32,
}

/// Everything a batch can hold, by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Head(Head),
    HardState(HardState),
    Entry(Entry),
    Snapshot { meta: SnapshotMeta, keep_from: SegmentNumber },
    Close { next: SegmentNumber },
}

/// The first record of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) blocks: u32,
    pub(crate) lock_inode: u64,
    pub(crate) hard_state: HardState,
    pub(crate) snapshot: Option<SnapshotMeta>,
    pub(crate) keep_from: SegmentNumber,
    pub(crate) next_index: Index,
}

const HEAD: u8 = 1;
const HARD_STATE: u8 = 2;
const ENTRY: u8 = 3;
const SNAPSHOT: u8 = 4;
const CLOSE: u8 = 5;

pub(crate) fn put_record(out: &mut Vec<u8>, record: &Record) {
    match record {
        Record::HardState(state) => {
            out.push(HARD_STATE);
            put_hard_state(out, state);
        }
        Record::Entry(entry) => {
            out.push(ENTRY);
            put_u64(out, entry.index.0);
            put_u64(out, entry.term.0);
            out.push(entry.kind);
            put_u64(out, entry.payload.len() as u64);
            out.extend_from_slice(&entry.payload);
        }
    }
}

pub(crate) fn put_head(out: &mut Vec<u8>, head: &Head) {
    out.push(HEAD);
    out.extend_from_slice(&head.blocks.to_le_bytes());
    put_u64(out, head.lock_inode);
    put_hard_state(out, &head.hard_state);
    out.push(u8::from(head.snapshot.is_some()));
    if let Some(meta) = &head.snapshot {
        put_meta(out, meta);
    }
    put_u64(out, head.keep_from.0);
    put_u64(out, head.next_index.0);
}

pub(crate) fn put_snapshot(out: &mut Vec<u8>, meta: &SnapshotMeta, keep_from: SegmentNumber) {
    out.push(SNAPSHOT);
    put_meta(out, meta);
    put_u64(out, keep_from.0);
}

pub(crate) fn put_close(out: &mut Vec<u8>, next: SegmentNumber) {
    out.push(CLOSE);
    put_u64(out, next.0);
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_hard_state(out: &mut Vec<u8>, state: &HardState) {
    put_u64(out, state.term.0);
    out.push(u8::from(state.vote.is_some()));
    put_u64(out, state.vote.map_or(0, |node| node.0));
    put_u64(out, state.commit.0);
}

fn put_meta(out: &mut Vec<u8>, meta: &SnapshotMeta) {
    out.push(match meta.kind {
        SnapshotKind::Taken => 1,
        SnapshotKind::Installed => 2,
    });
    put_u64(out, meta.index.0);
    put_u64(out, meta.term.0);
    put_u64(out, meta.file.0);
    put_u64(out, meta.len);
    out.extend_from_slice(&meta.crc.to_le_bytes());
}

/// Decodes all records of a batch, or says what is wrong with them.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Item>, &'static str> {
    let mut reader = Reader(bytes);
    let mut items = Vec::new();
    while !reader.0.is_empty() {
        items.push(reader.item().ok_or("a record that does not decode")?);
    }
    Ok(items)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn item(&mut self) -> Option<Item> {
        Some(match self.u8()? {
            HEAD => Item::Head(Head {
                blocks: self.u32()?,
                lock_inode: self.u64()?,
                hard_state: self.hard_state()?,
                snapshot: if self.flag()? { Some(self.meta()?) } else { None },
                keep_from: SegmentNumber(self.u64()?),
                next_index: Index(self.u64()?),
            }),
            HARD_STATE => Item::HardState(self.hard_state()?),
            ENTRY => {
                let (index, term, kind) = (Index(self.u64()?), Term(self.u64()?), self.u8()?);
                let len = usize::try_from(self.u64()?).ok()?;
                Item::Entry(Entry { index, term, kind, payload: self.take(len)?.to_vec() })
            }
            SNAPSHOT => Item::Snapshot { meta: self.meta()?, keep_from: SegmentNumber(self.u64()?) },
            CLOSE => Item::Close { next: SegmentNumber(self.u64()?) },
            _ => return None,
        })
    }

    fn hard_state(&mut self) -> Option<HardState> {
        let (term, voted, node) = (Term(self.u64()?), self.flag()?, NodeId(self.u64()?));
        Some(HardState { term, vote: voted.then_some(node), commit: Index(self.u64()?) })
    }

    fn meta(&mut self) -> Option<SnapshotMeta> {
        let kind = match self.u8()? {
            1 => SnapshotKind::Taken,
            2 => SnapshotKind::Installed,
            _ => return None,
        };
        Some(SnapshotMeta {
            kind,
            index: Index(self.u64()?),
            term: Term(self.u64()?),
            file: BatchNumber(self.u64()?),
            len: self.u64()?,
            crc: self.u32()?,
        })
    }

    fn take(&mut self, len: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds() -> (Vec<u8>, Vec<Item>) {
        let state = HardState { term: Term(3), vote: Some(NodeId(2)), commit: Index(9) };
        let entry = Entry { index: Index(7), term: Term(3), kind: 1, payload: vec![1, 2, 3] };
        let meta = SnapshotMeta {
            kind: SnapshotKind::Installed,
            index: Index(5),
            term: Term(2),
            file: BatchNumber(44),
            len: 12,
            crc: 99,
        };
        let head = Head {
            blocks: 16,
            lock_inode: 77,
            hard_state: state,
            snapshot: Some(meta),
            keep_from: SegmentNumber(4),
            next_index: Index(8),
        };
        let mut bytes = Vec::new();
        put_head(&mut bytes, &head);
        put_record(&mut bytes, &Record::HardState(state));
        put_record(&mut bytes, &Record::Entry(entry.clone()));
        put_snapshot(&mut bytes, &meta, SegmentNumber(4));
        put_close(&mut bytes, SegmentNumber(6));
        let items = vec![
            Item::Head(head),
            Item::HardState(state),
            Item::Entry(entry),
            Item::Snapshot { meta, keep_from: SegmentNumber(4) },
            Item::Close { next: SegmentNumber(6) },
        ];
        (bytes, items)
    }

    #[test]
    fn every_record_reads_back() {
        let (bytes, items) = all_kinds();
        assert_eq!(decode(&bytes), Ok(items));
    }

    #[test]
    fn a_record_cut_short_does_not_decode_as_itself() {
        let (bytes, items) = all_kinds();
        for len in 0..bytes.len() {
            if let Ok(shorter) = decode(&bytes[..len]) {
                assert_eq!(shorter, items[..shorter.len()]);
                assert!(shorter.len() < items.len());
            }
        }
    }
}
