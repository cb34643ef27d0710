//! A service that runs: its threads, how it begins, and how it ends.

mod found;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;
use std::time::Duration;

use leasehold_core::Config as TableConfig;
use leasehold_host::{Founding, Inspection, ServeError, Served, ServedOptions, serve};
use leasehold_node::Options;
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{mpsc, watch};

use self::found::look;
use crate::config::{Config, LimitsConfig};
use crate::metrics::Metrics;
use crate::{tcp, web};

pub use self::found::Found;

/// Connections that wait to be accepted: a burst of clients that come back must not be turned away.
const BACKLOG: i32 = 4_096;
/// How often it is looked whether the node has ended.
const LOOK: Duration = Duration::from_millis(5);
/// What is still to be sent when the node has ended gets this long.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Why a service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The directory or its log.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The address.
    #[error("cannot listen on {address}: {source}{}", next_step(.source))]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Threads and descriptors.
    #[error("cannot start: {0}")]
    System(std::io::Error),
    /// The node ended before it served.
    #[error("{path} cannot be served: {why}")]
    Ended {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

fn next_step(why: &std::io::Error) -> &'static str {
    match why.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; another process listens there (`ss -ltnp` names it): stop that one, or choose another address or port with --listen"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "; this machine has no such address: choose one of its own with --listen (`ip address` names them), or 0.0.0.0 for all of them"
        }
        std::io::ErrorKind::PermissionDenied => {
            "; choose a port from 1024 on with --listen, or give this process the right to use a lower one"
        }
        _ => "; choose another address with --listen",
    }
}

/// A service that runs.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    found: Option<Found>,
    served: Served,
    stop: watch::Sender<Stopping>,
    /// Ends when every session stream has.
    streams: std::sync::mpsc::Receiver<()>,
    web: JoinHandle<()>,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    /// Not at all.
    No,
    /// Nobody new is let in; what is under way goes on.
    Draining,
    /// The node has ended; what is left to send is sent.
    Ended,
}

/// Starts a service: opens the directory, listens, and comes back when it answers.
///
/// # Errors
/// When the directory cannot be served or the address cannot be listened on.
pub fn start(config: &Config) -> Result<Service, StartError> {
    // Before the directory is opened: an address that is taken is the more likely mistake, and leaves no trace.
    let listener =
        listen(config.listen).map_err(|source| StartError::Listen { address: config.listen, source })?;
    let address = listener.local_addr().map_err(StartError::System)?;
    let table = TableConfig { max_ttl: config.max_ttl, drift: config.drift, ..TableConfig::default() };
    let node = Options {
        snapshot_entries: config.snapshot_entries,
        snapshot_bytes: config.snapshot_bytes,
        gap_patterns: config.gap_patterns.clone(),
        ..Options::default()
    };
    let founding = match &config.cluster {
        cluster if cluster.join => Founding::Join,
        cluster if cluster.initial.len() > 1 => Founding::Together(cluster.initial.clone()),
        _ => Founding::Alone,
    };
    let options = ServedOptions {
        config: table,
        node,
        max_watches: config.limits.max_watches,
        max_watches_per_connection: config.limits.max_watches_per_connection,
        write_timeout: config.limits.write_timeout,
        name: config.name.to_string(),
        address: config.reached_at(address),
        founding,
    };
    let served = serve(&config.data, options)?;
    let is_new = served.is_new();
    let (served, inspection) = until_it_answers(served, config)?;
    let found = if is_new { None } else { Some(look(&inspection)) };
    if is_new && inspection.is_alone() {
        found::say_that_it_is_new(&config.data);
    }
    match (&config.cluster, &inspection.membership) {
        (cluster, membership) if cluster.join && membership.is_blank() => {
            found::say_that_it_waits(config.name.as_str(), &config.reached_at(address));
        }
        (cluster, membership) if !cluster.join && cluster.initial.is_empty() => {
            found::warn_of_a_start_as_if_alone(membership);
        }
        _ => {}
    }
    // A port that is drawn anew at every start is nobody's to look for.
    if config.listen.port() != 0 {
        found::warn_of_another_address(&inspection.membership, &config.reached_at(address));
    }
    let (stop, stopping) = watch::channel(Stopping::No);
    let counts = Arc::new(Counts::default());
    let (caller, asking) = (served.caller().clone(), served.peers().asking());
    let metrics = Arc::new(Metrics::new(config.name.clone(), caller, asking, Arc::clone(&counts)));
    let (to_web, streams) = mpsc::unbounded_channel();
    let web = web::Web::new(config, &served, Arc::clone(&metrics), Arc::clone(&counts));
    let web_runtime = runtime().map_err(StartError::System)?;
    let ways = tcp::Ways {
        door: served.door().clone(),
        peers: served.peers().accepting(),
        to_web,
        counts,
        turned_away: Arc::default(),
        opening_time: config.http.request_timeout,
    };
    let (limits, web_stopping) = (config.limits.clone(), stopping.clone());
    let web = spawn("leasehold-http", move || {
        web_runtime.block_on(web::serve(web, streams, web_stopping));
        web_runtime.shutdown_timeout(FLUSH_TIME);
    })?;
    let streams = serve_streams(served.runtime(), listener, ways, limits, stopping)?;
    Ok(Service { address, found, served, stop, streams, web })
}

/// Accepts connections beside the node's loop. What is given back ends with the last of them.
fn serve_streams(
    beside: &Handle,
    listener: std::net::TcpListener,
    ways: tcp::Ways,
    limits: LimitsConfig,
    stopping: watch::Receiver<Stopping>,
) -> Result<std::sync::mpsc::Receiver<()>, StartError> {
    let entered = beside.enter();
    let listener = TcpListener::from_std(listener).map_err(StartError::System)?;
    drop(entered);
    let (until, ended) = std::sync::mpsc::channel();
    beside.spawn(async move {
        tcp::accept(listener, ways, limits, stopping).await;
        drop(until);
    });
    Ok(ended)
}

/// Connections that are open, by what they speak.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// All of them.
    pub(crate) connections: AtomicUsize,
    /// Session streams in our own frames.
    pub(crate) streams: AtomicUsize,
    /// HTTP, gRPC among it.
    pub(crate) http: AtomicUsize,
    /// Watches over HTTP and gRPC.
    pub(crate) watches: AtomicUsize,
}

impl Service {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the directory brought with it; nothing if it was made just now.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    /// Lets nobody new in, and ends when everything that was taken in is answered. [`wait`](Self::wait) comes back then.
    pub fn drain(&self) {
        self.stop.send_if_modified(|stopping| {
            let first = *stopping == Stopping::No;
            if first {
                *stopping = Stopping::Draining;
            }
            first
        });
        self.served.drain();
    }

    /// Ends without waiting for anything but the write that is under way.
    pub fn stop(&self) {
        self.served.stop();
    }

    /// Whether the node has ended, by itself or because it was asked to.
    pub fn has_ended(&self) -> bool {
        self.served.has_ended()
    }

    /// Waits for the end, and until what was answered is sent.
    ///
    /// # Errors
    /// Why it ended, if nobody asked for it.
    pub fn wait(self) -> Result<(), String> {
        while !self.served.has_ended() {
            std::thread::sleep(LOOK);
        }
        self.stop.send_replace(Stopping::Ended);
        // Nothing is ever sent: it only ends.
        let _ = self.streams.recv();
        let _ = self.web.join();
        self.served.wait()
    }
}

/// Sockets are looked at after so many pieces of work on the thread for HTTP. The runtime's own number is 61, and a page is a few milliseconds.
const LOOK_AFTER: u32 = 8;

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().event_interval(LOOK_AFTER).build()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(StartError::System)
}

/// The standard library says that the address may be used again at once, so a service that was stopped a moment ago can start again.
fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The log is read again and a first entry written before anything can be answered.
fn until_it_answers(served: Served, config: &Config) -> Result<(Served, Inspection), StartError> {
    loop {
        match served.runtime().block_on(served.caller().inspect()) {
            // One that stands alone answers at once or never; with others it may take until they are there.
            Some(inspection) if inspection.serving || !inspection.is_alone() => {
                return Ok((served, inspection));
            }
            Some(_) => std::thread::sleep(LOOK),
            None => {
                let why = served.wait().err().unwrap_or_else(|| "it was stopped".into());
                return Err(StartError::Ended { path: config.data.clone(), why });
            }
        }
    }
}
