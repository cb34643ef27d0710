//! Opening a log: what was read is put in order before anything is answered.
//!
//! Everything here may be interrupted and is then found in a state that leads to the same decisions. Nothing is removed before the
//! last batch is known to be on disk: it may be the record of the snapshot that makes the rest superfluous.

use leasehold_core::planted::{Bug, planted};

use crate::block::{BLOCK_BYTES, SegmentNumber};
use crate::disk::Disk;
use crate::error::{OpenError, WriteError, while_opening};
use crate::log::{End, Identity, Options, Spare, Wal, segment_blocks, start_of_first_segment, write_zeros};
use crate::record::{Entry, HardState, SnapshotMeta};
use crate::scan::{Found, Replay, Tail};
use crate::segment::segment_name;
use crate::state::State;

/// What a log held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Whether there was no log, and one was made.
    pub is_new: bool,
    /// Term, vote and commit; the commit is at least the snapshot's index.
    pub hard_state: HardState,
    /// The entries above the snapshot, in order and without gaps.
    pub entries: Vec<Entry>,
    /// The snapshot that counts, with its bytes.
    pub snapshot: Option<(SnapshotMeta, Vec<u8>)>,
    /// What was cut off: a batch that was being written when the crash came.
    pub cut: Option<Cut>,
}

/// Blocks that were zeroed because their batch was never synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: String,
    /// Where the batch began.
    pub offset: u64,
    /// How long it was.
    pub bytes: u64,
}

impl<D: Disk> Wal<D> {
    /// Makes a log in a directory that has none.
    ///
    /// # Errors
    /// [`OpenError::Exists`] if it has one; else as [`Wal::open`].
    pub fn create(mut disk: D, identity: Identity, options: Options) -> Result<Self, OpenError> {
        let mut replay = Replay::new(Some(identity));
        match replay.scan(&mut disk)? {
            Found::New { leftovers } => Self::make_new(disk, identity, options, &leftovers),
            Found::Log(tail) => Err(OpenError::Exists { file: segment_name(tail.segment) }),
        }
    }

    /// Opens the log of a directory, making one if there is none; finishes what a crash interrupted.
    ///
    /// # Errors
    /// Says why the directory cannot be served. Except after [`OpenError::Io`], nothing was changed.
    pub fn open(mut disk: D, identity: Identity, options: Options) -> Result<(Self, Recovered), OpenError> {
        let mut replay = Replay::new(Some(identity));
        match replay.scan(&mut disk)? {
            Found::New { .. } if options.must_exist => Err(OpenError::Missing),
            Found::New { leftovers } => {
                let wal = Self::make_new(disk, identity, options, &leftovers)?;
                let recovered = recovered(replay, None, None, true);
                Ok((wal, recovered))
            }
            Found::Log(tail) => Self::resume(disk, identity, options, replay, *tail),
        }
    }

    fn make_new(
        mut disk: D,
        identity: Identity,
        options: Options,
        leftovers: &[String],
    ) -> Result<Self, OpenError> {
        for name in leftovers {
            disk.remove(name).map_err(while_opening("removing", name))?;
        }
        let mut wal = Self::at(disk, identity, options, State::new(), start_of_first_segment());
        let blocks = segment_blocks(options.first_segment_bytes);
        wal.make_segment(SegmentNumber::FIRST, blocks)?;
        wal.spare = None;
        wal.enter(SegmentNumber::FIRST, blocks)?;
        wal.find_reserve();
        Ok(wal)
    }

    fn resume(
        mut disk: D,
        identity: Identity,
        options: Options,
        replay: Replay,
        tail: Tail,
    ) -> Result<(Self, Recovered), OpenError> {
        let name = segment_name(tail.segment);
        if planted(Bug::TidyBeforeSync) {
            for leftover in &tail.leftovers {
                disk.remove(leftover).map_err(while_opening("removing", leftover))?;
            }
        }
        settle(&mut disk, &name, &tail)?;

        let end = End {
            segment: tail.segment,
            name: name.clone(),
            blocks: tail.blocks,
            position: tail.contents.end,
            chain: tail.contents.chain,
        };
        let mut wal = Self::at(disk, identity, options, replay.state.clone(), end);
        wal.oldest = replay.state.keep_from;
        wal.garbage.extend(tail.leftovers);
        match tail.headless {
            Some((number, blocks)) if tail.closed && !planted(Bug::ClosedSuccessorRemoved) => {
                // The close was written after this file and its directory entry were durable, so it is zeroed again in place; to
                // remove it would leave a closed segment without successor.
                let file = segment_name(number);
                let len = u64::from(blocks) * BLOCK_BYTES as u64;
                write_zeros(&mut wal.disk, &file, 0, len).map_err(while_opening("zeroing", &file))?;
                wal.disk.sync_all(&file).map_err(while_opening("syncing", &file))?;
                wal.enter(number, blocks)?;
            }
            Some((number, _)) if tail.closed => {
                wal.garbage.push_back(segment_name(number));
                wal.remove_garbage()?;
                wal.make_segment(number, segment_blocks(options.segment_bytes))?;
                let spare = wal.spare.take().expect("a segment was just made");
                wal.enter(number, spare.blocks)?;
            }
            Some((_, blocks)) if planted(Bug::SpareKept) && blocks > 0 => {
                wal.spare = Some(Spare { blocks });
            }
            // Nothing proves that its zeros or its directory entry are durable: made anew when it is needed.
            Some((number, _)) => wal.garbage.push_back(segment_name(number)),
            None => {}
        }
        wal.remove_garbage()?;
        wal.find_reserve();

        let cut = tail.contents.torn.map(|torn| Cut {
            file: name,
            offset: u64::from(torn.position) * BLOCK_BYTES as u64,
            bytes: u64::from(torn.blocks) * BLOCK_BYTES as u64,
        });
        Ok((wal, recovered(replay, tail.snapshot, cut, false)))
    }
}

/// Zeros over a torn batch up to the end of the segment, the last good batch again in place, one sync.
///
/// The last batch may have been read from the page cache only, and a sync alone may not write it: after a sync that failed, the kernel
/// may take the lost pages for clean.
fn settle<D: Disk>(disk: &mut D, name: &str, tail: &Tail) -> Result<(), OpenError> {
    if tail.contents.torn.is_some() {
        let from = u64::from(tail.contents.end) * BLOCK_BYTES as u64;
        let first_alone = planted(Bug::CutLeavesRest);
        let to = if first_alone { from + BLOCK_BYTES as u64 } else { tail.bytes.len() as u64 };
        let zeroed = write_zeros(disk, name, from, to);
        zeroed.map_err(while_opening("zeroing", name))?;
        if planted(Bug::CutNotSynced) {
            return Ok(());
        }
    }
    if !planted(Bug::LastBatchNotRewritten) {
        let from = tail.contents.last.position as usize * BLOCK_BYTES;
        let batch = &tail.bytes[from..][..tail.contents.last.blocks as usize * BLOCK_BYTES];
        disk.write_at(name, from as u64, batch).map_err(while_opening("writing to", name))?;
    }
    disk.sync_data(name).map_err(while_opening("syncing", name))
}

pub(crate) fn recovered(
    replay: Replay,
    snapshot: Option<Vec<u8>>,
    cut: Option<Cut>,
    is_new: bool,
) -> Recovered {
    let mut hard_state = replay.state.hard_state;
    hard_state.commit = hard_state.commit.max(replay.state.snapshot_index());
    Recovered {
        is_new,
        hard_state,
        entries: replay.entries,
        snapshot: replay.state.snapshot.zip(snapshot),
        cut,
    }
}

impl From<WriteError> for OpenError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Failed { action, file, source } => Self::Io { action, file, source },
            WriteError::NoSpace { file, source, .. } => Self::Io { action: "making", file, source },
            refused => Self::Io {
                action: "writing to",
                file: "the log".to_owned(),
                source: std::io::Error::other(refused),
            },
        }
    }
}
