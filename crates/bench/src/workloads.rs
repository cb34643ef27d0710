//! The workloads: what the load's process does, one file each, the same code for every system.
//!
//! Promises: whatever is granted while it is measured is checked (see [`Book`]); a violation or an error of any client ends the measurement, and
//! never only lowers a figure.
//!
//! What it deliberately does not do: it neither starts nor stops servers, and keeps no results.

mod book;
mod cycles;
mod expiry;
mod fan_out;
pub mod figures;
mod handover;
mod hold;
mod many;
mod mass_expiry;
mod renewals;
mod words;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::clock::now_ns;
use crate::peers::usage::{self, Used};
use crate::peers::{Client, Peer, TTL, Watching, consul, etcd, leasehold, postgres, redis, zookeeper};
pub use book::Book;
pub use figures::Figures;

/// What the load's process is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    /// Which system.
    pub peer: Peer,
    /// Where it is.
    pub url: String,
    /// Its processes.
    pub pids: Vec<u32>,
    /// What to do.
    pub work: Work,
    /// The disk of the data, by its numbers.
    pub disk: Option<(u32, u32)>,
    /// The process of the leader, where one is to be killed.
    pub leader: Option<u32>,
    /// The monotonic clock when the servers were started again.
    pub since_ns: u64,
    /// Before the window, in milliseconds.
    pub warm_up_ms: u64,
    /// The window, in milliseconds.
    pub window_ms: u64,
}

/// A workload with its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A: acquire and release.
    Cycles {
        /// How many clients.
        clients: usize,
        /// How they are connected.
        connections: Connections,
    },
    /// B: renew.
    Renewals {
        /// How many sessions.
        sessions: usize,
    },
    /// C: queue for one name.
    Handover {
        /// How many handovers.
        handovers: usize,
    },
    /// D: die, with somebody waiting.
    Expiry {
        /// The ttl.
        ttl_ms: u64,
        /// Whether the leader dies too, half a ttl later.
        kill_leader: bool,
    },
    /// E: very many end at once.
    MassExpiry {
        /// How many.
        leases: usize,
        /// The ttl.
        ttl_ms: u64,
    },
    /// F: acquire very many and keep them.
    Many {
        /// How many.
        leases: usize,
        /// Whether each has a session of its own.
        session_each: bool,
    },
    /// I: kill all nodes and start them again.
    Restart {
        /// With how many leases.
        leases: usize,
    },
    /// J: watch.
    FanOut {
        /// How many watch.
        watchers: usize,
        /// How many changes.
        changes: usize,
    },
    /// The holders of D.
    HoldOneByOne {
        /// The ttl.
        ttl_ms: u64,
    },
    /// The holders of E.
    HoldAll {
        /// How many.
        leases: usize,
        /// The ttl.
        ttl_ms: u64,
    },
}

/// How clients are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// Each by one of its own.
    Own,
    /// All by [`SHARED`] together.
    Shared,
}

/// Connections that are shared.
pub const SHARED: usize = 4;

impl Connections {
    fn count(self, clients: usize) -> usize {
        match self {
            Self::Own => clients,
            Self::Shared => SHARED.min(clients),
        }
    }
}

/// The time in which operations count, by the monotonic clock in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Its first moment.
    pub begin: u64,
    /// The first moment behind it.
    pub end: u64,
}

impl Window {
    /// One that opens after the warm-up, counted from now.
    pub fn after_warm_up(spec: &Spec) -> Self {
        let begin = now_ns() + spec.warm_up_ms * 1_000_000;
        Self { begin, end: begin + spec.window_ms * 1_000_000 }
    }

    /// Whether something that happened then counts.
    pub fn has(self, moment: u64) -> bool {
        (self.begin..self.end).contains(&moment)
    }

    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        figures::seconds(self.end - self.begin)
    }

    /// Waits for both of its ends, and says what was used between them.
    ///
    /// # Errors
    /// When a server is gone.
    pub async fn metered(self, spec: Spec) -> Result<Metered> {
        let pids = spec.pids;
        let look = move || {
            let (servers, load) = (Used::by(&pids)?, Used::by(&[std::process::id()])?);
            Ok::<_, anyhow::Error>((servers, load, spec.disk.and_then(usage::disk_written)))
        };
        sleep_until(self.begin).await;
        let (before, look) = tokio::task::spawn_blocking(move || (look(), look)).await?;
        let (servers, load, disk) = before?;
        sleep_until(self.end).await;
        let (servers_later, load_later, disk_later) = tokio::task::spawn_blocking(look).await??;
        let disk = disk_later.zip(disk).map(|(later, before)| later - before);
        Ok(Metered { servers: servers_later - servers, load: load_later - load, disk })
    }
}

/// What was used in a window.
#[derive(Debug, Clone, Copy)]
pub struct Metered {
    /// By the servers.
    pub servers: Used,
    /// By the load itself.
    pub load: Used,
    /// Bytes that were written to the disk of the data, by everybody on the machine.
    pub disk: Option<f64>,
}

/// Sleeps until the monotonic clock shows so many nanoseconds.
pub async fn sleep_until(moment: u64) {
    tokio::time::sleep(Duration::from_nanos(moment.saturating_sub(now_ns()))).await;
}

/// The whole life of the load's process: prints its figures as JSON.
///
/// # Errors
/// When a client fails, or something was granted that must not be.
pub fn load(spec: &Spec) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let figures = runtime.block_on(async {
        match spec.peer {
            Peer::Leasehold => run_watching::<leasehold::Client>(spec).await,
            Peer::Etcd | Peer::Etcd36 => run_watching::<etcd::Client>(spec).await,
            Peer::Zookeeper => run::<zookeeper::Client>(spec).await,
            Peer::Redis => run::<redis::Client>(spec).await,
            Peer::Postgres => run::<postgres::Client>(spec).await,
            Peer::Consul => run::<consul::Client>(spec).await,
        }
    })?;
    println!("{}", serde_json::to_string(&figures)?);
    // What clients would still say to a server that is about to be killed is nobody's concern.
    std::process::exit(0)
}

async fn run_watching<C: Watching>(spec: &Spec) -> Result<Figures> {
    match spec.work {
        Work::MassExpiry { leases, ttl_ms } => mass_expiry::run::<C>(spec, leases, millis(ttl_ms)).await,
        Work::FanOut { watchers, changes } => fan_out::run::<C>(spec, watchers, changes).await,
        _ => run::<C>(spec).await,
    }
}

async fn run<C: Client>(spec: &Spec) -> Result<Figures> {
    match spec.work {
        Work::Cycles { clients, connections } => cycles::run::<C>(spec, clients, connections).await,
        Work::Renewals { sessions } => renewals::run::<C>(spec, sessions).await,
        Work::Handover { handovers } => handover::run::<C>(spec, handovers).await,
        Work::Expiry { ttl_ms, kill_leader } => expiry::run::<C>(spec, millis(ttl_ms), kill_leader).await,
        Work::HoldOneByOne { ttl_ms } => hold::one_by_one::<C>(spec, millis(ttl_ms)).await,
        Work::HoldAll { leases, ttl_ms } => hold::all_at_once::<C>(spec, leases, millis(ttl_ms)).await,
        Work::Many { leases, session_each } => many::run::<C>(spec, leases, session_each).await,
        Work::Restart { .. } => many::first_grant::<C>(spec).await,
        Work::MassExpiry { .. } | Work::FanOut { .. } => {
            bail!("{} is not measured with watches", spec.peer.name())
        }
    }
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Connections and clients that are made at the same time.
const AT_ONCE: usize = 64;

/// So many connections.
async fn links<C: Client>(url: &str, count: usize, ttl: Duration) -> Result<Vec<Arc<C::Link>>> {
    in_parallel(count, |_| {
        let url = url.to_owned();
        async move { Ok(Arc::new(C::link(&url, ttl).await?)) }
    })
    .await
    .with_context(|| format!("cannot connect to {url}"))
}

/// So many clients, spread evenly over connections.
async fn clients<C: Client>(links: &[Arc<C::Link>], count: usize) -> Result<Vec<C>> {
    in_parallel(count, |number| {
        let link = Arc::clone(&links[number % links.len()]);
        async move { C::open(&link, number, TTL).await }
    })
    .await
}

/// So many clients, each with a lease of its own.
async fn holders<C: Client>(
    links: &[Arc<C::Link>],
    count: usize,
    ttl: Duration,
    name: impl Fn(usize) -> String,
) -> Result<Vec<(C, C::Held)>> {
    let book = Arc::new(Book::new(count));
    in_parallel(count, |number| {
        let (link, name) = (Arc::clone(&links[number % links.len()]), name(number));
        let book = Arc::clone(&book);
        async move {
            let client = C::open(&link, number, ttl).await?;
            let (token, held) = client.acquire(&name).await?;
            book.granted(number, token)?;
            Ok((client, held))
        }
    })
    .await
}

/// Does the same for each number up to `count`, some at a time, and gives back what came of it in order.
pub async fn in_parallel<T, F>(count: usize, begin: impl FnMut(usize) -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let tasks = stream::iter((0..count).map(begin)).map(|work| async { tokio::spawn(work).await? });
    tasks.buffered(AT_ONCE).try_collect().await
}

/// Everything that tasks have noted; the first that fails ends it.
pub(crate) async fn joined<T: 'static>(mut tasks: JoinSet<Result<Vec<T>>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.extend(done??);
    }
    Ok(all)
}
