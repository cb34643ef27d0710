//! What is done with the files of a store while nobody serves it: who a directory is, backups, and bringing a state into another life.
//!
//! Promises: nothing half-made can be served. A backup, a restored directory and a recovered log each appear whole by one rename, after
//! everything in them is synced; an epoch is noted durably before a state that uses it can grant anything.
//!
//! What it does not do: it repairs nothing in place, and decides nothing about leases (the table does).

mod backup;
#[cfg(test)]
mod earlier;
mod identity;
mod life;
mod met;
mod note;
mod recover;
mod restore;
#[cfg(test)]
mod tests;
mod verify;
mod whole;

use std::io;
use std::path::{Path, PathBuf};

use leasehold_core::protocol::MemberError;
use leasehold_wal::{OpenError, WriteError};

use crate::directory::DirectoryError;

pub use backup::{Backup, backup_file, read_backup, save_backup};
pub(crate) use identity::member_id;
pub use life::{Begun, Choices, Contradiction};
pub(crate) use met::{keep_met, met_before};
pub(crate) use recover::finish_recovery;
pub use recover::{Extent, recover};
pub use restore::restore;
pub use verify::{Problem, Verified, verify};

/// Why something could not be done with files. Unless the message says otherwise, nothing that was there before was changed.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The system said no.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that does not read back as it was written.
    #[error("{path} is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What was found there.
        what: String,
    },
    /// Made by a later release. It is no damage, and there is nothing to be cut.
    #[error(
        "{path} was written by a later release: {what} has version {found}, and this one (leasehold {release}) reads up to {known}. Nothing is known to \
         be wrong with it, and nothing was changed: use the release that wrote it, or a later one",
        release = env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The file or directory.
        path: PathBuf,
        /// What in it.
        what: String,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// Only a directory without anything in it can be made.
    #[error(
        "{path} exists already and has something in it; name an empty directory, or one that does not exist"
    )]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file system is mounted there, and nothing can take its place by one rename.
    #[error("a file system is mounted at {path}; name a directory within it, such as {path}/data")]
    Mounted {
        /// The directory.
        path: PathBuf,
    },
    /// It was never served, or is something else.
    #[error("{path} is no directory of a store: {why}; name the one that `leasehold serve --data` was given")]
    NoStore {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: &'static str,
    },
    /// Another process uses it.
    #[error("{path} is in use by process {pid}; stop that one first")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// As the lock file names it.
        pid: u32,
    },
    /// Its log does not open.
    #[error(
        "the log of {path} does not open: {source}; `leasehold data verify {path} --cut` shows what is left"
    )]
    Log {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// The new log could not be written.
    #[error("the log of {path} cannot be written: {source}")]
    Write {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: WriteError,
    },
    /// What was read makes no state.
    #[error("{path} holds no state that can be used: {why}")]
    State {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Several members may keep this log, and damage can be healed from the others.
    #[error(
        "before the damage {path} has {members} members, and behind it others may have been added: if there are others, remove it from \
         its cluster and add it with an empty directory, and they send it everything; if there are none, say --only-survivor, or --above \
         with the greatest token that is known"
    )]
    NotAlone {
        /// The directory.
        path: PathBuf,
        /// How many, as far as is known.
        members: usize,
    },
    /// Whether greater epochs were handed out is not known.
    #[error(
        "tokens must be greater than all that were ever granted, and {path} cannot know whether {what}; say {sure} if not, else --above \
         with the greatest token that any receiver has seen"
    )]
    EpochUnknown {
        /// The file or directory.
        path: PathBuf,
        /// What may have happened.
        what: &'static str,
        /// The option that says it did not.
        sure: &'static str,
    },
    /// There is no greater epoch.
    #[error("epoch {epoch} is the last one; {path} cannot begin another")]
    LastEpoch {
        /// The file or directory.
        path: PathBuf,
        /// The epoch.
        epoch: u64,
    },
    /// A ttl that nobody can have.
    #[error("a longest ttl of {given} ms is outside {least} to {most} ms")]
    MaxTtl {
        /// What was given.
        given: u64,
        /// The shortest there may be.
        least: u64,
        /// The longest there may be.
        most: u64,
    },
    /// The name or address of the member.
    #[error(transparent)]
    Member(#[from] MemberError),
}

impl FilesError {
    /// Why a log does not open.
    fn of_log(path: &Path, source: OpenError) -> Self {
        let path = path.to_owned();
        match source {
            OpenError::NewerVersion { file, version, supported } => Self::Newer {
                path,
                what: format!("log/{file}"),
                found: version.into(),
                known: supported.into(),
            },
            source => Self::Log { path, source },
        }
    }
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FilesError + 'a {
    move |source| FilesError::Io { action, path: path.to_owned(), source }
}
