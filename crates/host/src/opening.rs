//! From a locked directory to a node that is ready to run.

use std::path::Path;

use leasehold_core::Config;
use leasehold_core::protocol::{Member, MemberId};
use leasehold_node::{
    FOUNDER, Fatal, LogEntry, Node, Options, Place, Recovered, Roster, SavedSnapshot, Setup, Start, Vote,
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
    #[error("the log of {path} does not open: {source}{}", next_step(.path, .source))]
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
    /// It was made for a node of a cluster, has met nobody yet, and is told to found a store of its own.
    #[error(
        "{path} was made for a node of a cluster (with --initial-cluster or --join) that has not met the others yet, and now neither is given: \
         without them it would found a store of its own, which grants the cluster's tokens again. Start it as before; if a store of its own is \
         wanted, remove the directory first, which holds no lease"
    )]
    MeantForCluster {
        /// The directory.
        path: std::path::PathBuf,
    },
    /// The directory of another node.
    #[error(
        "{path} is the directory of node {recorded}, and this node was started as {given}; is it the right directory? Then start it with \
         --name {recorded}, else with the directory of {given}"
    )]
    OtherName {
        /// The directory.
        path: std::path::PathBuf,
        /// As its cluster knows it.
        recorded: String,
        /// As it was started.
        given: String,
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

fn next_step(path: &Path, why: &OpenError) -> String {
    let path = path.display();
    match why {
        OpenError::CopiedDirectory { .. } => format!(
            ". Serve the directory that it was copied from; if that one is gone for good, `leasehold data recover --data {path}` begins another life from \
             the copy"
        ),
        OpenError::Missing => ". Is its volume mounted?".to_owned(),
        OpenError::Damage(_) => format!(
            ". If other nodes keep this log, remove this one and add it again with an empty directory; if it stands alone, `leasehold data verify {path} \
             --cut` shows what is left"
        ),
        OpenError::NewerVersion { .. } => {
            ". A later release wrote it: use that one, or one that is later still".to_owned()
        }
        OpenError::Exists { .. } | OpenError::Io { .. } => String::new(),
    }
}

/// Which member a directory is.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) member: MemberId,
    /// What it is without a snapshot.
    pub(crate) start: Start,
    /// Founds a cluster of one, if there is nothing yet.
    pub(crate) founder: Option<Member>,
    /// What it is called.
    pub(crate) name: Option<String>,
}

impl Who {
    /// The only member of a directory that processes of one machine share.
    pub(crate) const fn embedded() -> Self {
        Self { member: FOUNDER, start: Start::Alone, founder: None, name: None }
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
    let is_empty = recovered.snapshot.is_none() && recovered.entries.is_empty();
    let has_heard = is_empty && recovered.hard_state != leasehold_wal::HardState::NEW;
    if let Some(founder) = &who.founder
        && is_empty
        && !has_heard
    {
        // Whoever founds alone has a snapshot before its directory counts as founded: only a node that waits for others has none then.
        if locked.founded {
            return Err(ServeError::MeantForCluster { path: path.to_owned() });
        }
        let SavedSnapshot { index, term, bytes } = founding_snapshot(&config, vec![founder.clone()]);
        let saved = wal.save_snapshot(SnapshotKind::Installed, Index(index), Term(term), &bytes, &[]);
        let meta = saved.map_err(|error| machine_error(std::io::Error::other(error)))?;
        recovered.snapshot = Some((meta, bytes));
    }
    // One that has heard of others is a part of their cluster, whatever it was started with this time.
    let start = if has_heard && matches!(place, Place::Served) { Start::Blank } else { who.start };
    locked.found()?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| machine_error(std::io::Error::other(error)))?;
    let changes: Vec<Vec<u8>> =
        recovered.entries.iter().filter(|entry| entry.kind != 0).map(|entry| entry.payload.clone()).collect();
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
    if let Some(name) = &who.name {
        let mut roster = node.roster().clone();
        for change in changes {
            // One that cannot be read is found when it is applied.
            let _ = roster.apply_change(&change);
        }
        check_name(path, &roster, who.member, name)?;
    }
    Ok((node, wal))
}

/// Whether a directory is that of the node that was meant: two nodes that changed places would dial themselves, and answer for each other. A
/// store that nobody else keeps may be called something else.
fn check_name(path: &Path, roster: &Roster, me: MemberId, given: &str) -> Result<(), ServeError> {
    let recorded = roster.members.iter().find(|member| member.id == me);
    let Some(recorded) = recorded.filter(|recorded| recorded.name != given) else { return Ok(()) };
    if roster.members.len() > 1 {
        let (path, recorded, given) = (path.to_owned(), recorded.name.clone(), given.to_owned());
        return Err(ServeError::OtherName { path, recorded, given });
    }
    tracing::warn!(
        "this node was started as {given}, but is recorded as {name}, and `leasehold cluster` knows it by that name: start it with --name {name}",
        name = recorded.name
    );
    Ok(())
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
