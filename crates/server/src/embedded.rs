//! The embedded mode: a node in this process, for all processes of the machine that share its directory.

use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use leasehold_core::Config;
use leasehold_node::{Fatal, LogEntry, Node, Options, Place, Recovered, SavedSnapshot, Setup, Vote};
use leasehold_wal::{Identity, OpenError, Options as WalOptions, Wal};
use leasehold_wire::Hello;
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::directory::{DirectoryError, Locked};
use crate::disk::FileDisk;
use crate::driver::{self, Stopped, ToLoop};
use crate::identity;
use crate::listener::{Doorway, accept};

/// Why a directory cannot be served by this process.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The directory itself.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
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

/// How a directory is served.
#[derive(Debug, Clone, Default)]
pub struct EmbeddedOptions {
    /// The choices for a directory that is new.
    pub config: Config,
    /// Where clocks cannot be compared, end all leases and wait for the longest ttl.
    pub end_all_after_wait: bool,
    /// The directory was used before: one that is gone is not made anew, because its tokens would begin again.
    pub must_exist: bool,
}

/// This process serves a directory. Dropping it finishes what is under way and gives up the lock.
#[derive(Debug)]
pub struct Server {
    to_loop: Sender<ToLoop>,
    stop_network: watch::Sender<bool>,
    node: Option<JoinHandle<Stopped>>,
    network: Option<JoinHandle<()>>,
}

/// Serves a directory if no other process does; nothing if one does.
///
/// # Errors
/// When the directory cannot be used, its log does not open, or its clocks cannot be compared. Nothing was changed then, except
/// that the lock file may name this process, and after an error of the disk as its message says.
pub fn try_serve(path: &Path, options: &EmbeddedOptions) -> Result<Option<Server>, ServeError> {
    let Some(mut locked) = Locked::try_lock(path, options.must_exist)? else { return Ok(None) };
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
    let machine = identity::machine().map_err(machine_error)?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| machine_error(std::io::Error::other(error)))?;
    let setup = Setup {
        place: Place::Embedded { machine, end_all_after_wait: options.end_all_after_wait },
        config: options.config.clone(),
        recovered: from_log(recovered),
        options: Options::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        seed: u64::from_le_bytes(seed),
    };
    let node_error = |source| ServeError::Node { path: path.to_owned(), source };
    let node = Node::start(setup, leasehold_clock::read()).map_err(node_error)?;
    let listener = locked.listen()?;
    start(node, wal, locked, listener).map(Some).map_err(machine_error)
}

fn start(
    node: Node,
    wal: Wal<FileDisk>,
    locked: Locked,
    listener: std::os::unix::net::UnixListener,
) -> std::io::Result<Server> {
    let (to_loop, inbox) = std::sync::mpsc::channel();
    let (stop_network, stop) = watch::channel(false);
    let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    let doorway = Doorway::new(to_loop.clone(), Hello::new(program, std::process::id(), ""));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let listener = UnixListener::from_std(listener)?;
    drop(entered);
    let network = std::thread::Builder::new()
        .name("leasehold-net".into())
        .spawn(move || runtime.block_on(accept(listener, doorway, stop)))?;
    let stop_on_failure = stop_network.clone();
    let node = driver::start(node, wal, locked, inbox, to_loop.clone())?;
    // Whatever ends the loop ends the network too: clients notice at once and look for the next server.
    let watched = std::thread::Builder::new().name("leasehold-watch".into()).spawn(move || {
        let stopped = node.join().unwrap_or_else(|_| Stopped::Failed("the node's loop panicked".into()));
        let _ = stop_on_failure.send(true);
        stopped
    });
    // Without this thread nobody could stop the loop, and it would keep the lock.
    let watched = watched.inspect_err(|_| drop(to_loop.send(ToLoop::Stop)))?;
    Ok(Server { to_loop, stop_network, node: Some(watched), network: Some(network) })
}

impl Server {
    /// Whether the directory is still served by this process.
    pub fn is_serving(&self) -> bool {
        self.node.as_ref().is_some_and(|node| !node.is_finished())
    }

    /// Finishes what is under way and gives up the lock, so that another process can take over. Says why the directory was not
    /// served to the end, if it was not.
    pub fn stop(mut self) -> Option<String> {
        self.finish()
    }

    fn finish(&mut self) -> Option<String> {
        let _ = self.to_loop.send(ToLoop::Stop);
        let _ = self.stop_network.send(true);
        if let Some(network) = self.network.take() {
            let _ = network.join();
        }
        match self.node.take()?.join() {
            Ok(Stopped::AsAsked) => None,
            Ok(Stopped::LockLost) => Some("its lock file was removed".into()),
            Ok(Stopped::Failed(why)) => Some(why),
            Err(_) => Some("a thread panicked".into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.finish();
    }
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
