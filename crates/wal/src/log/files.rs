//! The files under a log: writing a batch, changing segments, making and removing files.

use super::{CLOSE_BLOCKS, End, SNAPSHOT_BLOCKS, Spare, Wal};
use leasehold_core::planted::{Bug, planted};

use crate::block::{BLOCK_BYTES, SegmentNumber, blocks_for, seal_batch};
use crate::disk::Disk;
use crate::error::{WriteError, is_no_space};
use crate::record::{Head, SnapshotMeta, put_close, put_head};
use crate::segment::{Chain, SNAPSHOT_ASIDE, segment_name, snapshot_name};
use std::io;

/// A segment needs its head, one batch, and what is kept free; below this, the change of segments would be most of the work.
const MIN_SEGMENT_BLOCKS: u32 = 8;

static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

impl<D: Disk> Wal<D> {
    /// Enters the next segment if the records do not fit with `kept` blocks left over.
    pub(super) fn ensure_room(&mut self, records: &[u8], kept: u32) -> Result<(), WriteError> {
        let needed = count(blocks_for(records.len()) as u64);
        if self.end.left() >= needed + kept {
            return Ok(());
        }
        self.ensure_spare(needed)?;
        let mut close = Vec::new();
        put_close(&mut close, self.end.segment.next());
        self.write_batch(&close)?;
        let spare = self.spare.take().expect("a spare segment was just ensured");
        self.enter(self.end.segment.next(), spare.blocks)
    }

    /// Makes a zeroed segment the present one by writing its head.
    pub(crate) fn enter(&mut self, segment: SegmentNumber, blocks: u32) -> Result<(), WriteError> {
        let chain = self.end.chain;
        self.end = End { segment, name: segment_name(segment), blocks, position: 0, chain };
        let mut hard_state = self.state.hard_state;
        if planted(Bug::HeadForgetsVote) {
            hard_state.vote = None;
        }
        let head = Head {
            blocks,
            lock_inode: self.identity.lock_inode,
            hard_state,
            snapshot: self.state.snapshot,
            keep_from: self.state.keep_from,
            next_index: self.state.next_index,
        };
        let mut records = Vec::new();
        put_head(&mut records, &head);
        self.write_batch(&records)
    }

    /// Writes one batch at the end and syncs it. Any failure stops the log.
    pub(super) fn write_batch(&mut self, records: &[u8]) -> Result<(), WriteError> {
        let End { segment, position, chain, .. } = self.end;
        let crc = seal_batch(&mut self.blocks, records, segment, position, chain.next, chain.crc);
        let offset = u64::from(position) * BLOCK_BYTES as u64;
        let written = self.disk.write_at(&self.end.name, offset, &self.blocks);
        written.map_err(|source| self.stop("writing to", source))?;
        if !planted(Bug::AckBeforeSync) {
            let synced = self.disk.sync_data(&self.end.name);
            synced.map_err(|source| self.stop("syncing", source))?;
        }
        self.end.position += count((self.blocks.len() / BLOCK_BYTES) as u64);
        self.end.chain = Chain { next: chain.next.next(), crc };
        Ok(())
    }

    /// Sees to it that the next segment exists, zeroed and durable, with room for a batch of so many blocks.
    pub(super) fn ensure_spare(&mut self, needed: u32) -> Result<(), WriteError> {
        let least = needed + 1 + CLOSE_BLOCKS + SNAPSHOT_BLOCKS;
        if self.spare.is_some_and(|spare| spare.blocks >= least) {
            return Ok(());
        }
        let grown = self.end.blocks.saturating_mul(2).min(segment_blocks(self.options.segment_bytes));
        let next = self.end.segment.next();
        match self.make_segment(next, grown.max(least)) {
            Err(error @ WriteError::NoSpace { .. }) => {
                if self.take_reserved(next, least)? {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            other => other,
        }
    }

    /// Makes a segment anew, whatever was there by its name.
    pub(crate) fn make_segment(&mut self, number: SegmentNumber, blocks: u32) -> Result<(), WriteError> {
        self.spare = None;
        let name = segment_name(number);
        let bytes = u64::from(blocks) * BLOCK_BYTES as u64;
        let made = self.try_make_segment(&name, bytes);
        self.refuse_or_stop(made, &name, bytes, &[&name])?;
        self.spare = Some(Spare { blocks });
        Ok(())
    }

    fn try_make_segment(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        create_anew(&mut self.disk, name)?;
        write_zeros(&mut self.disk, name, 0, bytes)?;
        self.disk.sync_all(name)?;
        if planted(Bug::SegmentBeforeDirSync) {
            return Ok(());
        }
        self.disk.sync_dir()
    }

    fn write_aside(&mut self, header: &[u8], bytes: &[u8], name: &str) -> io::Result<()> {
        create_anew(&mut self.disk, SNAPSHOT_ASIDE)?;
        self.disk.write_at(SNAPSHOT_ASIDE, 0, header)?;
        self.disk.write_at(SNAPSHOT_ASIDE, header.len() as u64, bytes)?;
        self.disk.sync_all(SNAPSHOT_ASIDE)?;
        self.disk.rename(SNAPSHOT_ASIDE, name)?;
        if planted(Bug::NoDirSyncAfterRename) {
            return Ok(());
        }
        self.disk.sync_dir()
    }

    /// Writes the file of a snapshot, into what is kept aside for it if there is no other space.
    pub(super) fn write_snapshot(
        &mut self,
        header: &[u8],
        bytes: &[u8],
        name: &str,
        size: u64,
    ) -> Result<(), WriteError> {
        loop {
            let made = self.write_aside(header, bytes, name);
            match self.refuse_or_stop(made, name, size, &[SNAPSHOT_ASIDE, name]) {
                Err(WriteError::NoSpace { .. }) if self.release_for_snapshot()? => {}
                other => return other,
            }
        }
    }

    /// A file that nothing refers to yet could not be made: without space that is a refusal, else the disk cannot be trusted.
    pub(super) fn refuse_or_stop(
        &mut self,
        made: io::Result<()>,
        file: &str,
        bytes: u64,
        parts: &[&str],
    ) -> Result<(), WriteError> {
        match made {
            Ok(()) => Ok(()),
            Err(source) if is_no_space(&source) => {
                // Whatever cannot be removed now is replaced by the next attempt, or removed at the next open.
                for part in parts {
                    let _ = self.disk.remove(part);
                }
                self.reserve.is_short = true;
                Err(WriteError::NoSpace { file: file.to_owned(), bytes, source })
            }
            Err(source) => Err(self.stop_at("making", file, source)),
        }
    }

    /// Notes what a snapshot made superfluous: segments below `keep_from`, oldest first, then the snapshot before it.
    pub(super) fn collect_garbage(&mut self, before: Option<SnapshotMeta>, keep_from: SegmentNumber) {
        while self.oldest < keep_from {
            self.garbage.push_back(segment_name(self.oldest));
            self.oldest = self.oldest.next();
        }
        self.garbage.extend(before.map(|meta| snapshot_name(meta.file)));
    }

    /// Removes what is superfluous. Without a directory sync: a file that comes back is recognized as a leftover.
    pub(crate) fn remove_garbage(&mut self) -> Result<(), WriteError> {
        while let Some(name) = self.garbage.front() {
            match self.disk.remove(name) {
                Err(error) if is_no_space(&error) => break,
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let name = name.clone();
                    return Err(self.stop_at("removing", &name, error));
                }
                _ => self.garbage.pop_front(),
            };
        }
        Ok(())
    }

    fn stop(&mut self, action: &'static str, source: io::Error) -> WriteError {
        let file = self.end.name.clone();
        self.stop_at(action, &file, source)
    }

    pub(super) fn stop_at(&mut self, action: &'static str, file: &str, source: io::Error) -> WriteError {
        let error = WriteError::Failed { action, file: file.to_owned(), source };
        self.stopped = Some(error.to_string());
        error
    }
}

/// How many blocks a new segment of about this size gets.
pub(crate) fn segment_blocks(bytes: u64) -> u32 {
    count(bytes.div_ceil(BLOCK_BYTES as u64)).max(MIN_SEGMENT_BLOCKS)
}

/// How many blocks a segment of this length has, if it can be one.
pub(crate) fn blocks_in(bytes: u64) -> Option<u32> {
    let blocks = u32::try_from(bytes / BLOCK_BYTES as u64).ok()?;
    (bytes.is_multiple_of(BLOCK_BYTES as u64) && blocks >= MIN_SEGMENT_BLOCKS).then_some(blocks)
}

pub(crate) fn write_zeros<D: Disk>(disk: &mut D, name: &str, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let step = (to - at).min(ZEROS.len() as u64);
        let chunk = usize::try_from(step).map_or(&ZEROS[..], |step| &ZEROS[..step]);
        disk.write_at(name, at, chunk)?;
        at += chunk.len() as u64;
    }
    Ok(())
}

pub(crate) fn start_of_first_segment() -> End {
    let segment = SegmentNumber::FIRST;
    End { segment, name: segment_name(segment), blocks: 0, position: 0, chain: Chain::START }
}

/// Creates a file; one left by an attempt that failed is replaced, so that the directory entry is written anew as well.
pub(super) fn create_anew<D: Disk>(disk: &mut D, name: &str) -> io::Result<()> {
    match disk.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(name)?;
            disk.create(name)
        }
        other => other,
    }
}

fn count(blocks: u64) -> u32 {
    u32::try_from(blocks).expect("segments and batches have fewer than 2^32 blocks by their limits")
}
