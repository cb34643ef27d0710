//! The log while it is written: batches, the change of segments, snapshots.
//!
//! One batch is in flight at a time; the next is written only after the sync of the last. Whoever calls decides what a batch is: all
//! that arrived while the last one was on its way to the disk.

use leasehold_core::planted::{Bug, planted};

use crate::block::{BLOCK_BYTES, SegmentNumber};
use crate::disk::Disk;
use crate::error::{OpenError, WriteError};
use crate::record::{HardState, Index, Record, SnapshotKind, SnapshotMeta, Term, put_record, put_snapshot};
use crate::segment::{Chain, snapshot_name};
use crate::snapshot::{load_snapshot, seal_snapshot};
use crate::state::{Bounds, State};
use std::collections::VecDeque;

mod files;
mod reserve;

pub use reserve::{RESERVE_SEGMENTS, Space};

use reserve::Reserve;

pub(crate) use files::{blocks_in, segment_blocks, start_of_first_segment, write_zeros};

/// The size that segments grow to: zeroing it costs some milliseconds, once for about ten thousand small batches.
pub const SEGMENT_BYTES: u64 = 4 << 20;
/// The size of the first segment, each later one being twice as large: a process that lives for a second should not zero megabytes.
pub const FIRST_SEGMENT_BYTES: u64 = 256 << 10;
/// The largest batch, in bytes of records: it is held in memory twice, and no caller has reason to come near.
pub const MAX_BATCH_BYTES: u64 = 64 << 20;

/// Kept free in every segment: a block for `close`, without which no other segment could be entered.
const CLOSE_BLOCKS: u32 = 1;
/// Kept free by appends besides: a block for a snapshot's record, so that a full disk does not prevent what frees space.
const SNAPSHOT_BLOCKS: u32 = 1;
/// The next segment is made ahead when less than this part of the present one is left.
const MAKE_AHEAD_PART: u32 = 4;

/// What ties a log to its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The inode of the lock file, which is never unlinked: a copy of the directory has another.
    pub lock_inode: u64,
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The size of the first segment.
    pub first_segment_bytes: u64,
    /// The size that later segments grow to.
    pub segment_bytes: u64,
    /// How many segments are kept aside for a time without space; none for logs of processes that live for a second.
    pub reserve_segments: u32,
    /// Whether a directory without a log is refused: for a caller that knows from elsewhere that one was written.
    pub must_exist: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            first_segment_bytes: FIRST_SEGMENT_BYTES,
            segment_bytes: SEGMENT_BYTES,
            reserve_segments: 0,
            must_exist: false,
        }
    }
}

/// A log that takes batches.
#[derive(Debug)]
pub struct Wal<D> {
    pub(crate) disk: D,
    pub(crate) identity: Identity,
    pub(crate) options: Options,
    pub(crate) state: State,
    pub(crate) end: End,
    pub(crate) spare: Option<Spare>,
    pub(crate) reserve: Reserve,
    /// The lowest segment that may still be in the directory.
    pub(crate) oldest: SegmentNumber,
    /// Files to be removed, oldest first.
    pub(crate) garbage: VecDeque<String>,
    stopped: Option<String>,
    records: Vec<u8>,
    blocks: Vec<u8>,
}

/// Where the next batch goes.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) segment: SegmentNumber,
    pub(crate) name: String,
    pub(crate) blocks: u32,
    pub(crate) position: u32,
    pub(crate) chain: Chain,
}

/// A segment made ahead: zeroed and durable, without a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spare {
    pub(crate) blocks: u32,
}

impl End {
    fn left(&self) -> u32 {
        self.blocks - self.position
    }
}

impl<D: Disk> Wal<D> {
    pub(crate) fn at(disk: D, identity: Identity, options: Options, state: State, end: End) -> Self {
        Self {
            disk,
            identity,
            options,
            state,
            end,
            spare: None,
            reserve: Reserve::default(),
            oldest: SegmentNumber::FIRST,
            garbage: VecDeque::new(),
            stopped: None,
            records: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// Writes the records as one batch and syncs it. When this returns, they are found again after any crash.
    ///
    /// # Errors
    /// [`WriteError::Failed`] leaves the outcome unknown and stops the log; every other error is a refusal without effect.
    pub fn append(&mut self, records: &[Record]) -> Result<(), WriteError> {
        self.check_running()?;
        if records.is_empty() {
            return Ok(());
        }
        let mut bounds = self.state.entry_bounds();
        for record in records {
            if let Record::Entry(entry) = record {
                bounds.check(entry.index).map_err(|_| out_of_order(entry.index, bounds))?;
                bounds.highest = Index(entry.index.0 + 1);
            }
        }
        let mut bytes = std::mem::take(&mut self.records);
        bytes.clear();
        records.iter().for_each(|record| put_record(&mut bytes, record));
        let done = self.append_encoded(&bytes, records);
        self.records = bytes;
        done
    }

    /// Makes the next segment if the present one is nearly full, so that no append waits for it. To be called when nobody waits.
    ///
    /// # Errors
    /// As [`Wal::append`]; on [`WriteError::NoSpace`] appends go on as long as the present segment has room.
    pub fn prepare(&mut self) -> Result<(), WriteError> {
        self.check_running()?;
        if self.wants_segment() && self.may_make_segment() {
            self.ensure_spare(0)?;
        }
        Ok(())
    }

    /// Whether [`Wal::prepare`] would make a segment if there is space for it.
    pub fn wants_segment(&self) -> bool {
        self.spare.is_none() && self.end.left() < self.end.blocks / MAKE_AHEAD_PART
    }

    /// Writes a snapshot to a file of its own and records it, together with the records given, in one batch; then removes what it
    /// makes superfluous.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn save_snapshot(
        &mut self,
        kind: SnapshotKind,
        index: Index,
        term: Term,
        bytes: &[u8],
        with: &[Record],
    ) -> Result<SnapshotMeta, WriteError> {
        self.check_running()?;
        let bounds = self.state.snapshot_bounds(kind);
        bounds.check(index).map_err(|_| out_of_order(index, bounds))?;
        let mut after = self.state.clone();
        let (header, meta) = seal_snapshot(kind, index, term, self.end.chain.next, bytes);
        let added = after.add_snapshot(meta, self.state.keep_from);
        added.expect("the index was checked against the same bounds");
        for record in with {
            if let Record::Entry(entry) = record {
                let added = after.add_entry(entry.index, self.end.segment);
                added.map_err(|bounds| out_of_order(entry.index, bounds))?;
            }
        }
        let mut records = Vec::new();
        put_snapshot(&mut records, &meta, self.state.keep_from);
        with.iter().for_each(|record| put_record(&mut records, record));
        self.check_size(&records)?;

        let size = (BLOCK_BYTES + bytes.len()) as u64;
        let name = snapshot_name(meta.file);
        self.write_snapshot(&header, bytes, &name, size)?;
        let room = self.ensure_room(&records, CLOSE_BLOCKS);
        if matches!(room, Err(WriteError::NoSpace { .. })) {
            // It has its name but no record. If it cannot be removed now, the next attempt replaces it, or the next open removes it.
            let _ = self.disk.remove(&name);
        }
        room?;

        // Which segments are needed depends on the segment that the record is in; its length does not.
        let keep_from = self.state.keep_from_after(kind, index, self.end.segment);
        records.clear();
        put_snapshot(&mut records, &meta, keep_from);
        with.iter().for_each(|record| put_record(&mut records, record));
        let before = self.state.snapshot;
        if planted(Bug::RemoveBeforeRecord) {
            self.collect_garbage(before, keep_from);
            self.remove_garbage()?;
        }
        self.write_batch(&records)?;
        let added = self.state.add_snapshot(meta, keep_from);
        added.expect("the index was checked against the same bounds");
        self.note(with);
        self.collect_garbage(before, keep_from);
        self.remove_garbage()?;
        Ok(meta)
    }

    /// The bytes of the snapshot that counts, read again from its file.
    ///
    /// # Errors
    /// As [`Wal::open`] for a snapshot that does not read back.
    pub fn load_snapshot(&mut self) -> Result<Option<(SnapshotMeta, Vec<u8>)>, OpenError> {
        let Some(meta) = self.state.snapshot else { return Ok(None) };
        load_snapshot(&mut self.disk, &meta).map(|bytes| Some((meta, bytes)))
    }

    /// The hard state last written.
    pub fn hard_state(&self) -> HardState {
        self.state.hard_state
    }

    /// The snapshot that counts.
    pub fn snapshot(&self) -> Option<SnapshotMeta> {
        self.state.snapshot
    }

    /// One above the last entry, or above the snapshot.
    pub fn next_index(&self) -> Index {
        self.state.next_index
    }

    /// How many segments the log has, the present one included: a measure for when to take a snapshot.
    pub fn segments(&self) -> u64 {
        self.end.segment.0 - self.oldest.0 + 1
    }

    /// The disk under the log.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk under the log, to be shared by no one who writes to the log's files.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Gives the disk back.
    pub fn into_disk(self) -> D {
        self.disk
    }

    fn append_encoded(&mut self, bytes: &[u8], records: &[Record]) -> Result<(), WriteError> {
        self.check_size(bytes)?;
        self.ensure_room(bytes, CLOSE_BLOCKS + SNAPSHOT_BLOCKS)?;
        self.write_batch(bytes)?;
        self.note(records);
        Ok(())
    }

    fn note(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::HardState(hard_state) => self.state.hard_state = *hard_state,
                Record::Entry(entry) => {
                    let added = self.state.add_entry(entry.index, self.end.segment);
                    added.expect("the indexes of a batch are checked before it is written");
                }
            }
        }
    }

    fn check_size(&self, records: &[u8]) -> Result<(), WriteError> {
        let bytes = records.len() as u64;
        if bytes > MAX_BATCH_BYTES {
            return Err(WriteError::TooLarge { bytes, limit: MAX_BATCH_BYTES });
        }
        Ok(())
    }

    fn check_running(&self) -> Result<(), WriteError> {
        self.stopped.as_ref().map_or(Ok(()), |first| Err(WriteError::Stopped { first: first.clone() }))
    }
}

fn out_of_order(index: Index, bounds: Bounds) -> WriteError {
    WriteError::OutOfOrder { index, lowest: bounds.lowest, highest: bounds.highest }
}
