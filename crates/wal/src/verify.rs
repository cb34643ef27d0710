//! Looking at a log without changing it.

use crate::block::BLOCK_BYTES;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::open::{Cut, Recovered, recovered};
use crate::record::{HardState, Index, SnapshotMeta};
use crate::scan::{Found, Replay};
use crate::segment::segment_name;
use crate::snapshot::load_snapshot;

/// What is in a directory.
#[derive(Debug)]
pub struct Report {
    /// The segments that count, oldest first, up to the first problem.
    pub segments: Vec<SegmentReport>,
    /// The inode of the lock file that the log was made under.
    pub lock_inode: Option<u64>,
    /// Term, vote and commit.
    pub hard_state: HardState,
    /// The snapshot that counts.
    pub snapshot: Option<SnapshotMeta>,
    /// First and last index of the entries above the snapshot.
    pub entries: Option<(Index, Index)>,
    /// What opening would cut off: a batch that was never synced.
    pub cut: Option<Cut>,
    /// Files that opening would remove.
    pub leftovers: Vec<String>,
    /// Why the directory does not open; what is told above is then what is good before it.
    pub problem: Option<OpenError>,
}

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// How much of it is written.
    pub used_bytes: u64,
    /// How many batches are in it, its head included.
    pub batches: u64,
}

/// Reads the whole log and says what is in it. Changes nothing; does not compare the lock file's inode.
pub fn verify<D: Disk>(disk: &mut D) -> Report {
    let mut replay = Replay::new(None);
    let found = replay.scan(disk);
    let mut report = Report {
        segments: Vec::new(),
        lock_inode: replay.lock_inode,
        hard_state: replay.state.hard_state,
        snapshot: replay.state.snapshot,
        entries: replay
            .entries
            .first()
            .zip(replay.entries.last())
            .map(|(first, last)| (first.index, last.index)),
        cut: None,
        leftovers: Vec::new(),
        problem: None,
    };
    for (number, bytes, contents) in &replay.segments {
        let file = segment_name(*number);
        let used_bytes = u64::from(contents.end) * BLOCK_BYTES as u64;
        report.cut = contents.torn.map(|torn| Cut {
            file: file.clone(),
            offset: used_bytes,
            bytes: u64::from(torn.blocks) * BLOCK_BYTES as u64,
        });
        report.segments.push(SegmentReport { file, bytes: *bytes, used_bytes, batches: contents.batches });
    }
    match found {
        Ok(Found::New { leftovers }) => report.leftovers = leftovers,
        Ok(Found::Log(tail)) => {
            report.leftovers = tail.leftovers;
            if let Some((number, _)) = tail.headless.filter(|_| !tail.closed) {
                report.leftovers.push(segment_name(number));
            }
        }
        Err(error) => report.problem = Some(error),
    }
    report
}

/// Reads what is good before the first problem, and names the problem. Changes nothing.
///
/// What it returns may lack what was answered for, a vote among it: it may serve as the source of a restore, never as a log.
pub fn salvage<D: Disk>(disk: &mut D) -> (Recovered, Option<OpenError>) {
    let mut replay = Replay::new(None);
    match replay.scan(disk) {
        Ok(Found::New { .. }) => (recovered(replay, None, None, true), None),
        Ok(Found::Log(tail)) => (recovered(replay, tail.snapshot, None, false), None),
        Err(error) => {
            let snapshot = replay.state.snapshot.and_then(|meta| load_snapshot(disk, &meta).ok());
            (recovered(replay, snapshot, None, false), Some(error))
        }
    }
}
