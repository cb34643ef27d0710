//! The embedded mode: a node in this process, for all processes of the machine that share its directory.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use leasehold_core::Config;
use leasehold_node::{Node, Options, Place};
use leasehold_wal::Wal;
use leasehold_wire::Hello;
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::directory::{Kind, Locked};
use crate::disk::FileDisk;
use crate::door::{Door, MAX_WATCHES, Present};
use crate::driver::{self, Outside, Stopped, ToLoop};
use crate::frames::WRITE_TIME;
use crate::hub::Hub;
use crate::identity;
use crate::inbox::{Inbox, inbox};
use crate::listener::accept;
use crate::opening::{ServeError, Who, open};
use crate::room::Room;
use crate::thread::NodeThread;

/// Watchers of one directory: each has a connection, or a part of one.
const MAX_WATCHERS: usize = 10_000;

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
    to_loop: Inbox,
    stop_network: watch::Sender<bool>,
    node: Option<JoinHandle<Stopped>>,
    /// Of the loop and of the connections.
    thread: Option<NodeThread>,
}

/// Serves a directory if no other process does; nothing if one does.
///
/// # Errors
/// When the directory cannot be used, its log does not open, or its clocks cannot be compared. Nothing was changed then, except
/// that the lock file may name this process, and after an error of the disk as its message says.
pub fn try_serve(path: &Path, options: &EmbeddedOptions) -> Result<Option<Server>, ServeError> {
    let Some(mut locked) = Locked::try_lock(path, Kind::Embedded, options.must_exist)? else {
        return Ok(None);
    };
    let machine_error = |source| ServeError::Machine { path: path.to_owned(), source };
    let machine = identity::machine().map_err(machine_error)?;
    let place = Place::Embedded { machine, end_all_after_wait: options.end_all_after_wait };
    let (node, wal) =
        open(path, &mut locked, place, &Who::embedded(), options.config.clone(), Options::default())?;
    let listener = locked.listen()?;
    start(node, wal, locked, listener).map(Some).map_err(machine_error)
}

fn start(
    node: Node,
    wal: Wal<FileDisk>,
    locked: Locked,
    listener: std::os::unix::net::UnixListener,
) -> std::io::Result<Server> {
    let (to_loop, inbox) = inbox();
    let hub = Arc::new(Hub::new(node.changes(), MAX_WATCHERS));
    let (stop_network, stop) = watch::channel(false);
    let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    let present = Present::new(Hello::new(program, std::process::id(), ""));
    let door = Door::new(
        to_loop.clone(),
        Arc::clone(&hub),
        present.clone(),
        MAX_WATCHES,
        Room::default(),
        WRITE_TIME,
    );
    let thread = NodeThread::start()?;
    let entered = thread.runtime().enter();
    let listener = UnixListener::from_std(listener)?;
    drop(entered);
    thread.runtime().spawn(accept(listener, door, stop));
    let stop_on_failure = stop_network.clone();
    let outside = Outside { hub, present, peers: None };
    let node = driver::start(node, wal, locked, inbox, to_loop.clone(), outside, thread.runtime())?;
    // Whatever ends the loop ends the network too: clients notice at once and look for the next server.
    let watched = std::thread::Builder::new().name("leasehold-watch".into()).spawn(move || {
        let stopped = node.join().unwrap_or_else(|_| Stopped::Failed("the disk thread panicked".into()));
        let _ = stop_on_failure.send(true);
        stopped
    });
    // Without this thread nobody could stop the loop, and it would keep the lock.
    let watched = watched.inspect_err(|_| {
        let _ = to_loop.send(ToLoop::Stop);
    })?;
    Ok(Server { to_loop, stop_network, node: Some(watched), thread: Some(thread) })
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
        let ended = self.node.take()?.join();
        // Its connections end with it.
        self.thread = None;
        match ended {
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
