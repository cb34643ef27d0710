//! A node for a service: the loop and its disk, without any socket. Who may speak with it is the service's business.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold_core::Config;
use leasehold_core::protocol::Member;
use leasehold_node::{Options, Place, Start};
use leasehold_wire::Hello;
use tokio::runtime::Handle;

use crate::caller::Caller;
use crate::directory::{Kind, Locked, lock_holder};
use crate::door::{Door, MAX_WATCHES, Present};
use crate::driver::{self, Outside, Stopped, ToLoop};
use crate::files::member_id;
use crate::frames::WRITE_TIME;
use crate::hub::Hub;
use crate::identity;
use crate::inbox::{Inbox, inbox};
use crate::opening::{ServeError, Who, open};
use crate::peers::{Founders, Introduction, Peers, marked};
use crate::room::Room;
use crate::thread::NodeThread;

/// How a directory is served.
#[derive(Debug, Clone)]
pub struct ServedOptions {
    /// The choices for a directory that is new.
    pub config: Config,
    /// Knobs of the node.
    pub node: Options,
    /// Watches at once.
    pub max_watches: usize,
    /// Watches at once on one session stream.
    pub max_watches_per_connection: usize,
    /// How long a client of a session stream may leave unread what was written for it.
    pub write_timeout: Duration,
    /// What people call this node.
    pub name: String,
    /// Where clients and peers reach it, as `host:port`.
    pub address: String,
    /// How a directory that is new comes to its members.
    pub founding: Founding,
}

/// How a directory that is new comes to its members. One that has them already keeps them.
#[derive(Debug, Clone)]
pub enum Founding {
    /// It founds a cluster of its own.
    Alone,
    /// It founds one together with others, this node among them by its name.
    Together(std::collections::BTreeMap<String, String>),
    /// It waits to be added to one.
    Join,
}

impl Default for ServedOptions {
    fn default() -> Self {
        Self {
            config: Config::default(),
            node: Options::default(),
            max_watches: usize::MAX,
            max_watches_per_connection: MAX_WATCHES,
            write_timeout: WRITE_TIME,
            name: "node".into(),
            address: "127.0.0.1:7070".into(),
            founding: Founding::Alone,
        }
    }
}

/// A node that runs. Dropping it stops it as a crash would: what was answered is on disk.
#[derive(Debug)]
pub struct Served {
    inbox: Inbox,
    caller: Caller,
    door: Door,
    peers: Peers,
    is_new: bool,
    node: Option<JoinHandle<Stopped>>,
    /// Last: what is before it runs on it.
    thread: NodeThread,
}

/// Runs a node in a directory of its own.
///
/// # Errors
/// When the directory cannot be used, another process serves it, or its log does not open.
pub fn serve(path: &Path, options: ServedOptions) -> Result<Served, ServeError> {
    let Some(mut locked) = Locked::try_lock(path, Kind::Served, false)? else {
        let pid = lock_holder(path).map(|holder| holder.pid);
        return Err(ServeError::InUse { path: PathBuf::from(path), pid: pid.unwrap_or(0) });
    };
    if let Some((mark, why)) = marked(path) {
        return Err(ServeError::Elsewhere { mark, why });
    }
    let is_new = !locked.founded;
    let member = member_id(path, locked.founded)?;
    let founder = || Member { id: member, name: options.name.clone(), address: options.address.clone() };
    let (start, founder) = match &options.founding {
        Founding::Alone => (Start::Alone, Some(founder())),
        Founding::Together(_) | Founding::Join => (Start::Blank, None),
    };
    let who = Who { member, start, founder, name: Some(options.name.clone()) };
    // Only to say for how long the node was away: no time is counted by it.
    let machine = identity::machine().ok();
    let knobs = Options { machine, ..options.node };
    let (node, wal) = open(path, &mut locked, Place::Served, &who, options.config.clone(), knobs)?;
    let (to_loop, arrivals) = inbox();
    let hub = Arc::new(Hub::new(node.changes(), options.max_watches));
    let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    let present = Present::new(Hello::new(program, std::process::id(), ""));
    let room = Room::default();
    let door = Door::new(
        to_loop.clone(),
        Arc::clone(&hub),
        present.clone(),
        options.max_watches_per_connection,
        room.clone(),
        options.write_timeout,
    );
    let caller = Caller::new(to_loop.clone(), Arc::clone(&hub), room);
    let machine_error = |source| ServeError::Machine { path: path.to_owned(), source };
    let founders = match options.founding {
        Founding::Together(nodes) => Some(Founders { nodes, config: options.config.clone() }),
        Founding::Alone | Founding::Join => None,
    };
    let introduction = Introduction {
        id: member,
        name: options.name,
        address: options.address,
        initial_cluster: founders.as_ref().map(Founders::canonical).unwrap_or_default(),
        max_ttl_ms: options.config.max_ttl.get(),
        drift_ppm: options.config.drift.ppm(),
    };
    let founders = founders.filter(|_| node.membership().is_blank());
    let thread = NodeThread::start().map_err(machine_error)?;
    let runtime = thread.runtime();
    let (membership, inbox, shown) = (node.membership(), to_loop.clone(), present.clone());
    let peers = Peers::start(path, introduction, membership, founders, inbox, shown, runtime);
    let outside = Outside { hub, present, peers: Some(peers.work()) };
    let node = driver::start(node, wal, locked, arrivals, to_loop.clone(), outside, runtime)
        .map_err(machine_error)?;
    Ok(Served { inbox: to_loop, caller, door, peers, is_new, node: Some(node), thread })
}

impl Served {
    /// For single requests.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the directory was never served before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// For streams of other members.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Where the loop runs, and session streams are best served: what they read is at the loop without waking another thread. Whatever is run
    /// there must never wait without giving way.
    pub fn runtime(&self) -> &Handle {
        self.thread.runtime()
    }

    /// For session streams.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Takes in nothing more, and ends when everything that was taken in is answered.
    pub fn drain(&self) {
        let _ = self.inbox.send(ToLoop::Drain);
    }

    /// Ends without waiting for anything but the write that is under way.
    pub fn stop(&self) {
        let _ = self.inbox.send(ToLoop::Stop);
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.node.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Why it ended, if nobody asked for it.
    pub fn wait(mut self) -> Result<(), String> {
        match self.node.take().map(JoinHandle::join) {
            Some(Ok(Stopped::AsAsked)) | None => Ok(()),
            Some(Ok(Stopped::LockLost)) => Err("its lock file was removed".into()),
            Some(Ok(Stopped::Failed(why))) => Err(why),
            Some(Err(_)) => Err("the disk thread panicked".into()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
        if let Some(node) = self.node.take() {
            let _ = node.join();
        }
    }
}
