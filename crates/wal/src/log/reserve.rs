//! Space kept aside for a time when the file system has none: whoever ends, renews or releases something needs the log to go on.
//!
//! Files full of zeros lie beside the log. When a segment cannot be made, one of them becomes the segment; when a snapshot cannot be
//! written, the space of another one is given back for it, and the snapshot frees more than that. What was used is made again when
//! there is space ([`Wal::restock`]).
//!
//! Nothing in them is trusted: a file is written over with zeros and synced before it becomes a segment, whoever made it. On a file system
//! that never writes in place that itself needs space, so there the reserve is worth less.

use super::files::create_anew;
use super::{Spare, Wal, segment_blocks, write_zeros};
use crate::block::{BLOCK_BYTES, SegmentNumber};
use crate::disk::Disk;
use crate::error::{WriteError, is_no_space};
use crate::segment::segment_name;
use std::io;

/// As many segments as a log has at most until a snapshot makes all but one of them superfluous.
pub const RESERVE_SEGMENTS: u32 = 3;

const FOR_SNAPSHOT: &str = "reserve-snapshot.zero";
/// A larger one, until it takes the place of the one before.
const FOR_SNAPSHOT_ASIDE: &str = "reserve-snapshot-larger.zero";
/// A snapshot of a table that is still empty is nearly nothing; the next one may not be.
const SNAPSHOT_SLACK: u64 = 64 << 10;

/// Whether there is room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// The file system gives what is asked for.
    Enough,
    /// It has none, and the log lives on what it kept aside: it should take in only what ends or keeps things.
    Reserved,
}

/// What is kept aside.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// The numbers of the files for segments, each of the full size of a segment.
    segments: Vec<u32>,
    /// How many bytes are kept for a snapshot.
    snapshot: u64,
    /// Something could not be made since everything was last complete.
    pub(super) is_short: bool,
}

impl<D: Disk> Wal<D> {
    /// Whether there is room for more than ending and keeping things.
    pub fn space(&self) -> Space {
        if self.reserve.is_short { Space::Reserved } else { Space::Enough }
    }

    /// Makes again what is missing of the reserve, and makes it as large as the last snapshot needs. To be called when nobody waits: at the
    /// beginning, after every snapshot, and about every second while [`Wal::space`] says that there is none.
    ///
    /// # Errors
    /// As [`Wal::append`]; no space is no error here.
    pub fn restock(&mut self) -> Result<Space, WriteError> {
        self.check_running()?;
        let bytes = self.reserved_bytes();
        for number in 0..self.options.reserve_segments {
            if !self.reserve.segments.contains(&number) {
                if !self.make_zeros(&file_name(number), bytes)? {
                    return Ok(Space::Reserved);
                }
                self.reserve.segments.push(number);
            }
        }
        let last = self.state.snapshot.map_or(0, |meta| meta.len);
        if self.options.reserve_segments > 0 && self.reserve.snapshot < last + last / 4 + SNAPSHOT_SLACK {
            let enough = last + last / 2 + 2 * SNAPSHOT_SLACK;
            // The smaller one is kept until the larger one is whole: without space for both it is still better than none.
            if !self.make_zeros(FOR_SNAPSHOT_ASIDE, enough)? {
                return Ok(Space::Reserved);
            }
            let renamed =
                self.disk.rename(FOR_SNAPSHOT_ASIDE, FOR_SNAPSHOT).and_then(|()| self.disk.sync_dir());
            match self.refuse_or_stop(renamed, FOR_SNAPSHOT, enough, &[FOR_SNAPSHOT_ASIDE]) {
                Ok(()) => self.reserve.snapshot = enough,
                Err(WriteError::NoSpace { .. }) => return Ok(Space::Reserved),
                Err(error) => return Err(error),
            }
        }
        if self.options.reserve_segments == 0 && self.reserve.is_short && !self.make_probe()? {
            return Ok(Space::Reserved);
        }
        self.reserve.is_short = false;
        Ok(Space::Enough)
    }

    /// Looks for what an earlier process kept aside.
    pub(crate) fn find_reserve(&mut self) {
        let bytes = self.reserved_bytes();
        for number in 0..self.options.reserve_segments {
            if self.disk.len(&file_name(number)).is_ok_and(|len| len == bytes) {
                self.reserve.segments.push(number);
            }
        }
        if self.options.reserve_segments > 0 {
            self.reserve.snapshot = self.disk.len(FOR_SNAPSHOT).unwrap_or(0);
            // One that an earlier process did not finish; it goes with the next thing that is tidied away.
            if self.disk.len(FOR_SNAPSHOT_ASIDE).is_ok() {
                self.garbage.push_back(FOR_SNAPSHOT_ASIDE.to_owned());
            }
        }
    }

    /// Whether it is worth while to ask for a segment before it is needed.
    pub(super) fn may_make_segment(&self) -> bool {
        !self.reserve.is_short || !self.reserve.segments.is_empty()
    }

    /// Makes a segment of what is kept aside, if there is any with so many blocks.
    pub(super) fn take_reserved(&mut self, segment: SegmentNumber, least: u32) -> Result<bool, WriteError> {
        let blocks = segment_blocks(self.options.segment_bytes);
        if blocks < least {
            return Ok(false);
        }
        let name = segment_name(segment);
        while let Some(number) = self.reserve.segments.pop() {
            let kept = file_name(number);
            match self.turn_into(&kept, &name) {
                Ok(()) => {
                    self.spare = Some(Spare { blocks });
                    return Ok(true);
                }
                // It held less than it seemed to: the next one may hold more.
                Err(error) if is_no_space(&error) => {
                    let _ = self.disk.remove(&kept);
                    let _ = self.disk.remove(&name);
                }
                Err(error) => return Err(self.stop_at("making", &name, error)),
            }
        }
        Ok(false)
    }

    /// Gives back what is kept for a snapshot; says whether there was anything.
    pub(super) fn release_for_snapshot(&mut self) -> Result<bool, WriteError> {
        if self.reserve.snapshot == 0 {
            return Ok(false);
        }
        self.reserve.snapshot = 0;
        // Some file systems give space back only when the removal is durable.
        let removed = self.disk.remove(FOR_SNAPSHOT).and_then(|()| self.disk.sync_dir());
        match removed {
            Err(error) if !is_no_space(&error) && error.kind() != io::ErrorKind::NotFound => {
                Err(self.stop_at("removing", FOR_SNAPSHOT, error))
            }
            _ => Ok(true),
        }
    }

    fn turn_into(&mut self, kept: &str, name: &str) -> io::Result<()> {
        let bytes = self.reserved_bytes();
        write_zeros(&mut self.disk, kept, 0, bytes)?;
        self.disk.sync_all(kept)?;
        self.disk.rename(kept, name)?;
        self.disk.sync_dir()
    }

    /// Makes a file of zeros; says whether there was space for it.
    fn make_zeros(&mut self, name: &str, bytes: u64) -> Result<bool, WriteError> {
        let made = self.try_make_zeros(name, bytes);
        match self.refuse_or_stop(made, name, bytes, &[name]) {
            Ok(()) => Ok(true),
            Err(WriteError::NoSpace { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn try_make_zeros(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        create_anew(&mut self.disk, name)?;
        write_zeros(&mut self.disk, name, 0, bytes)?;
        self.disk.sync_all(name)?;
        self.disk.sync_dir()
    }

    /// Without a reserve only a try tells whether space has come back: a file as large as a segment, and away with it.
    fn make_probe(&mut self) -> Result<bool, WriteError> {
        let name = file_name(0);
        let made = self.make_zeros(&name, self.reserved_bytes())?;
        if made {
            // A file that stays is taken for a reserve by nobody who does not look for one.
            let _ = self.disk.remove(&name);
        }
        Ok(made)
    }

    fn reserved_bytes(&self) -> u64 {
        u64::from(segment_blocks(self.options.segment_bytes)) * BLOCK_BYTES as u64
    }
}

fn file_name(number: u32) -> String {
    format!("reserve-{number}.zero")
}
