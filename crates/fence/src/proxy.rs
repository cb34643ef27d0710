//! A reverse proxy that fences a service that cannot be changed. `leasehold fence proxy` runs it.
//!
//! It reads the [headers](crate::http) of every write. A token below the highest of its fence name is answered with 412 at once and never
//! forwarded. Requests of one token go through beside each other. One with a greater token raises the fence, durably, from
//! which moment on smaller ones are refused; then it waits until the requests with smaller tokens that are under way are answered or given
//! up; then it is forwarded.
//!
//! **Which step is atomic**: none at the service, because the proxy is not there when it writes. What it does instead is to keep the
//! order: nothing with a greater token is sent while anything with a smaller one is unanswered. A holder that goes away does not end
//! its requests: the proxy stays with each until the service has answered or the time-out is over.
//!
//! **What it needs**: that every way to the service leads through this proxy (a second one with another directory knows other tokens; two
//! with one directory are refused), that the service has carried out what it was asked when it answers, and a directory whose file
//! system keeps `fsync` and `flock`. Two machines cannot share one.
//!
//! **What it does not cover**, and a check in the service's own transaction does:
//!
//! - A request that was sent and given up on (the time-out, a connection that broke, `kill -9` of the proxy) is answered with 504, *unknown*.
//!   The connection is closed, and the service may carry it out all the same: later, after a greater token went through. A
//!   [settling time](Settings::settle) helps as far as the service's own times are known.
//! - Work that the service goes on with after it has answered (202 and a queue of its own).
//! - Whether the caller names the right fence for what it writes, unless the proxy has [one name](Settings::name) for everything.
//! - Reads with side effects, unless [all](Settings::all) requests need a token.
//! - A lost directory: its highest tokens are forgotten. Every holder seals at its grant, so from the next grant on it is right again.
//!
//! It speaks HTTP/1.1, without TLS. Bodies are streamed both ways and not bounded; trailers are not forwarded.

mod answers;
mod gate;
mod headers;
mod lock;
mod log;
mod relay;
mod service;
mod store;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::http::BadAddress;
use crate::stamp::BadStamp;
use service::Service;

/// So long the upstream has for a whole answer, unless another time is chosen: what people call a slow request.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most fence names of one proxy. None may be forgotten, and all are in memory.
pub const MAX_FENCE_NAMES: usize = 65_536;
/// The most requests at once, those that wait for older ones included.
pub const MAX_IN_FLIGHT: usize = 4_096;
/// The most connections; more wait to be taken.
pub const MAX_CONNECTIONS: usize = 8_192;
/// The longest head of a request: request line and headers.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The most headers of a request: with those that are added it stays within the hundred that most servers take.
pub const MAX_HEADERS: usize = 96;
/// The last refusals that are kept for people, of all names together.
pub const MAX_REFUSALS: usize = 4_096;

/// What a proxy is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service: `http://HOST:PORT`, with a path if it is not at the root.
    pub upstream: String,
    /// Where the highest tokens are kept. It belongs to one proxy at a time.
    pub directory: PathBuf,
    /// Fence everything under this name. Without it the header `Fencing-Name` says.
    pub name: Option<String>,
    /// Reads need a token too, and are fenced.
    pub all: bool,
    /// How long the upstream has to answer a fenced request whole, and to begin the answer of another.
    pub timeout: Duration,
    /// After a request was given up on, and after a start: how long the service might still be busy with what it was sent. Greater tokens
    /// wait so long.
    pub settle: Duration,
    /// The most requests at once; no more than [`MAX_IN_FLIGHT`].
    pub max_in_flight: usize,
    /// The time of day in words, for refusals that are shown to people. Nothing depends on it.
    pub at: Option<fn() -> String>,
}

impl Settings {
    /// The defaults for a service and a directory.
    pub fn new(upstream: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            upstream: upstream.into(),
            directory: directory.into(),
            name: None,
            all: false,
            timeout: DEFAULT_TIMEOUT,
            settle: Duration::ZERO,
            max_in_flight: MAX_IN_FLIGHT,
            at: None,
        }
    }
}

/// Why a proxy cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address of the service.
    #[error("the upstream {0}")]
    Upstream(#[from] BadAddress),
    /// The fence name.
    #[error(transparent)]
    Name(#[from] BadStamp),
    /// Another process has the directory.
    #[error(
        "the fence {} is used by process {pid}; end that one, or give this proxy a directory of its own if it is for another service",
        directory.display()
    )]
    InUse {
        /// Which directory.
        directory: PathBuf,
        /// Which process, if it says so.
        pid: String,
    },
    /// Something else is there.
    #[error("the fence {} is a file; name a directory, which is made if it is missing", .0.display())]
    NoDirectory(PathBuf),
    /// The directory cannot be used.
    #[error("cannot {what} {}: {source}", path.display())]
    Directory {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged at byte {offset}: {what}. Tokens may be missing from it: restore it, or move it away when every holder will seal anew",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// No thread, or no signal.
    #[error("cannot start: {0}")]
    System(io::Error),
}

/// A proxy whose directory is open.
#[derive(Debug)]
pub struct FenceProxy {
    service: Arc<Service>,
}

impl FenceProxy {
    /// Opens the directory, and makes it if it is missing. Inside a tokio runtime.
    ///
    /// # Errors
    /// When a setting makes no sense, or the directory is in use, damaged or not usable.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        Ok(Self { service: Arc::new(Service::open(settings)?) })
    }

    /// How many fence names it has a token for.
    pub fn known_names(&self) -> usize {
        self.service.gate.known_names()
    }

    /// Where requests go to.
    pub fn upstream(&self) -> &str {
        self.service.place()
    }

    /// Serves until `stop` is done; then takes no more connections, and ends when what is under way was answered or its time is over.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        service::serve(self.service, listener, stop).await
    }
}
