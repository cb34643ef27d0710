//! Why a log does not open, and why it does not take a batch.

use crate::record::Index;
use std::io;

/// Something that reads back otherwise than it was written, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} is damaged at byte {offset}: {what}")]
pub struct Damage {
    /// The file, by its name in the directory.
    pub file: String,
    /// The first byte of the block or field in question.
    pub offset: u64,
    /// What was found there, for people.
    pub what: String,
}

/// Why a directory does not open. Nothing in it was changed, except after [`OpenError::Io`].
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The caller says that a log must exist, and there is none.
    #[error("the directory holds no log, but one was written there before")]
    Missing,
    /// The directory holds a log already and was to be made new.
    #[error("the directory holds a log already: {file}")]
    Exists {
        /// One of its files.
        file: String,
    },
    /// Written by a later version of this program.
    #[error("{file} has format version {version}, but this program reads up to {supported}")]
    NewerVersion {
        /// The file, by its name in the directory.
        file: String,
        /// The version it names.
        version: u16,
        /// The highest version this program reads.
        supported: u16,
    },
    /// The lock file is not the one the log was made under: the directory was copied.
    #[error(
        "{file} was written under a lock file with inode {recorded}, but the lock file is inode {found}: the directory was copied"
    )]
    CopiedDirectory {
        /// The segment that names another inode.
        file: String,
        /// The inode in its head.
        recorded: u64,
        /// The inode of the lock file now.
        found: u64,
    },
    /// The log does not read back as it was written.
    #[error(transparent)]
    Damage(#[from] Damage),
    /// The disk failed; whether the log is whole is not known.
    #[error("{action} {file} failed: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a batch or snapshot was not taken.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Refused, no effect: the batch is larger than any batch may be.
    #[error("a batch of {bytes} bytes is above the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Refused, no effect: an index leaves a gap, or lies below the snapshot.
    #[error("index {index} is outside {lowest} to {highest}")]
    OutOfOrder {
        /// The index given.
        index: Index,
        /// The lowest that could be given here.
        lowest: Index,
        /// The highest that could be given here.
        highest: Index,
    },
    /// Refused, no effect: no space for a new file. The log stays usable for batches that fit into the present segment.
    #[error("no space for {file} of {bytes} bytes: {source}")]
    NoSpace {
        /// The file that could not be made.
        file: String,
        /// Its size.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Unknown: the batch may or may not be found after a restart. The log takes nothing more.
    #[error("{action} {file} failed: {source}")]
    Failed {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// Refused: an earlier call failed, and only opening the log again can tell what is on disk.
    #[error("the log stopped at an earlier failure: {first}")]
    Stopped {
        /// The earlier failure.
        first: String,
    },
}

pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Names action and file in an [`OpenError::Io`].
pub(crate) fn while_opening(action: &'static str, file: &str) -> impl FnOnce(io::Error) -> OpenError {
    move |source| OpenError::Io { action, file: file.to_owned(), source }
}
