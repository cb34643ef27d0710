//! From a locked directory to a node that is ready to run.

use std::path::Path;

use leasehold_core::Config;
use leasehold_core::protocol::{Member, MemberId};
use leasehold_node::{
    FOUNDER, Fatal, LogEntry, Node, Options, Place, Recovered, SavedSnapshot, Setup, Start, Vote,
    founding_snapshot,
};
use leasehold_wal::{
    Identity, Index, OpenError, Options as WalOptions, RESERVE_SEGMENTS, SnapshotKind, Term, Wal,
};

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
    /// Another cluster expects one of its members where this directory was served.
    #[error("{why} ({mark} says so since an earlier start; remove that file if this store is wanted all the same)", mark = mark.display())]
    Elsewhere {
        /// The file that says it.
        mark: std::path::PathBuf,
        /// What happened.
        why: String,
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

/// Which member a directory is.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) member: MemberId,
    /// What it is without a snapshot.
    pub(crate) start: Start,
    /// Founds a cluster of one, if there is nothing yet.
    pub(crate) founder: Option<Member>,
}

impl Who {
    /// The only member of a directory that processes of one machine share.
    pub(crate) const fn embedded() -> Self {
        Self { member: FOUNDER, start: Start::Alone, founder: None }
    }
}

/// Opens the log of a directory and makes a node of it.
pub(crate) fn open(
    path: &Path,
    locked: &mut Locked,
    place: Place,
    who: &Who,
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
    // A process that lives for a second should not keep megabytes aside.
    let reserve_segments = if matches!(place, Place::Served) { RESERVE_SEGMENTS } else { 0 };
    let wal_options = WalOptions { must_exist: locked.founded, reserve_segments, ..WalOptions::default() };
    let (mut wal, mut recovered) = Wal::open(disk, identity, wal_options).map_err(log_error)?;
    if let Some(founder) = &who.founder
        && recovered.snapshot.is_none()
        && recovered.entries.is_empty()
        && recovered.hard_state == leasehold_wal::HardState::NEW
    {
        let SavedSnapshot { index, term, bytes } = founding_snapshot(&config, vec![founder.clone()]);
        let saved = wal.save_snapshot(SnapshotKind::Installed, Index(index), Term(term), &bytes, &[]);
        let meta = saved.map_err(|error| machine_error(std::io::Error::other(error)))?;
        recovered.snapshot = Some((meta, bytes));
    }
    // One that has heard of others is a part of their cluster, whatever it was started with this time.
    let has_heard = recovered.snapshot.is_none()
        && recovered.entries.is_empty()
        && recovered.hard_state != leasehold_wal::HardState::NEW;
    let start = if has_heard && matches!(place, Place::Served) { Start::Blank } else { who.start };
    locked.found()?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| machine_error(std::io::Error::other(error)))?;
    let setup = Setup {
        place,
        member: who.member,
        start,
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
