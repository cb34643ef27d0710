//! The log on disk: what a node must find again after a crash.
//!
//! A [`Wal`] is a directory of segments. A segment is a pre-zeroed file, written in blocks of 512 bytes that can each be checked
//! alone; a batch of records is some blocks in a row, written at once and synced once. Snapshots are files of their own, recorded in
//! the log.
//!
//! What it promises:
//! - A batch whose [`Wal::append`] returned is found again after any crash, whole; one that did not return is found whole or not at all.
//! - The only thing ever cut is the one batch that was being written when the crash came. Anything else that does not read back as it
//!   was written is refused, with file and offset ([`OpenError::Damage`]).
//! - After a failed write or sync the log takes nothing more ([`WriteError::Stopped`]).
//! - A disk without space refuses, and the log stays usable ([`WriteError::NoSpace`]); before that it lives on what it kept aside
//!   ([`Wal::space`]), if it was told to keep anything.
//!
//! What it deliberately does not do: it makes no file call (see [`Disk`]), takes no lock, starts no thread, reads no clock, and gives
//! the records no meaning beyond "an entry of index i supersedes all from i on". It does not repair damage.

mod block;
mod disk;
mod error;
mod log;
pub mod mem;
mod open;
mod record;
mod scan;
mod segment;
mod snapshot;
mod state;
mod verify;

pub use block::{BLOCK_BYTES, BatchNumber, FORMAT_VERSION, SegmentNumber};
pub use disk::Disk;
pub use error::{Damage, OpenError, WriteError};
pub use log::{
    FIRST_SEGMENT_BYTES, Identity, MAX_BATCH_BYTES, Options, RESERVE_SEGMENTS, SEGMENT_BYTES, Space, Wal,
};
pub use open::{Cut, Recovered};
pub use record::{Entry, HardState, Index, NodeId, Record, SnapshotKind, SnapshotMeta, Term};
pub use verify::{Report, SegmentReport, salvage, verify};
