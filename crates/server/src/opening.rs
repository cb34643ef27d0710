//! From a locked directory to a node that is ready to run.

use std::path::Path;

use leasehold_core::Config;
use leasehold_node::{Fatal, LogEntry, Node, Options, Place, Recovered, SavedSnapshot, Setup, Vote};
use leasehold_wal::{Identity, OpenError, Options as WalOptions, Wal};

use crate::directory::{DirectoryError, Locked};
use crate::disk::FileDisk;

/// Why a directory cannot be served by this process.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The directory itself.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Another process serves it.
    #[error("{path} is served by another process, pid {pid}; stop that one, or use another directory")]
    InUse {
        /// The directory.
        path: std::path::PathBuf,
        /// That process, as the lock file names it.
        pid: u32,
    },
    /// Its log.
    #[error("the log of {path} does not open: {source}")]
    Log {
        /// The directory.
        path: std::path::PathBuf,
        /// Why.
        source: OpenError,
    },
    /// Its state or its clocks.
    #[error("{path} cannot be served: {source}")]
    Node {
        /// The directory.
        path: std::path::PathBuf,
        /// Why.
        source: Fatal,
    },
    /// Something of the machine.
    #[error("cannot serve {path}: {source}")]
    Machine {
        /// The directory.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Opens the log of a directory and makes a node of it.
pub(crate) fn open(
    path: &Path,
    locked: &mut Locked,
    place: Place,
    config: Config,
    options: Options,
) -> Result<(Node, Wal<FileDisk>), ServeError> {
    let machine_error = |source| ServeError::Machine { path: path.to_owned(), source };
    let log_error = |source| ServeError::Log { path: path.to_owned(), source };
    let disk = FileDisk::open(&locked.log_directory()?).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => log_error(OpenError::Missing),
        _ => machine_error(error),
    })?;
    let identity = Identity { lock_inode: locked.inode()? };
    let wal_options = WalOptions { must_exist: locked.founded, ..WalOptions::default() };
    let (wal, recovered) = Wal::open(disk, identity, wal_options).map_err(log_error)?;
    locked.found()?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| machine_error(std::io::Error::other(error)))?;
    let setup = Setup {
        place,
        config,
        recovered: from_log(recovered),
        options,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        seed: u64::from_le_bytes(seed),
    };
    let node_error = |source| ServeError::Node { path: path.to_owned(), source };
    let node = Node::start(setup, leasehold_clock::read()).map_err(node_error)?;
    Ok((node, wal))
}

fn from_log(recovered: leasehold_wal::Recovered) -> Recovered {
    let state = recovered.hard_state;
    Recovered {
        vote: Vote { term: state.term.0, vote: state.vote.map_or(0, |node| node.0), commit: state.commit.0 },
        entries: recovered
            .entries
            .into_iter()
            .map(|entry| LogEntry {
                index: entry.index.0,
                term: entry.term.0,
                kind: entry.kind,
                payload: entry.payload,
            })
            .collect(),
        snapshot: recovered.snapshot.map(|(meta, bytes)| SavedSnapshot {
            index: meta.index.0,
            term: meta.term.0,
            bytes,
        }),
    }
}
