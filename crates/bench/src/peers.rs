//! The systems under test: how each is started, and how each is used as a client.
//!
//! Promises: a system is used by the best recipe known for it; what that is, with version and settings, is part of what is reported. A client does
//! nothing that a program of a user could not do.
//!
//! What it deliberately does not do: it installs nothing (`cargo xtask bench` does) and measures nothing.

pub mod consul;
pub mod etcd;
mod gaps;
pub mod leasehold;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod usage;
pub mod zookeeper;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::clock::now_ns;
use crate::workloads::{SHARED, Window};
use process::Process;

/// The ttl of every lease that is not meant to end: the longest that a service takes unless told otherwise. Very many sessions take long to open.
pub const TTL: Duration = Duration::from_secs(300);

/// A system under test.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// Ourselves.
    Leasehold,
    /// See [`etcd`].
    Etcd,
    /// A newer release of it.
    Etcd36,
    /// See [`zookeeper`].
    Zookeeper,
    /// See [`redis`].
    Redis,
    /// See [`postgres`].
    Postgres,
    /// See [`consul`].
    Consul,
}

impl Peer {
    /// What it is called in reports, and its colour in plots.
    const fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Leasehold => ("Leasehold", "#1b7f4d"),
            Self::Etcd => ("etcd", "#2f6fb4"),
            Self::Etcd36 => ("etcd 3.6", "#5ab0d8"),
            Self::Zookeeper => ("ZooKeeper", "#8a6d1f"),
            Self::Redis => ("Redis", "#c0392b"),
            Self::Postgres => ("PostgreSQL", "#5b4a9e"),
            Self::Consul => ("Consul", "#d0348f"),
        }
    }

    /// What it is called in reports.
    pub fn name(self) -> &'static str {
        self.look().0
    }

    /// Its colour in plots.
    pub fn colour(self) -> &'static str {
        self.look().1
    }

    /// Whether its renewals are less than its grants when they are answered: in the memory of the leader alone, and not on the disks of a
    /// quorum. ZooKeeper's are the pings of a session; one of Consul's sets a timer of the leader anew.
    pub fn renewals_are_weaker(self) -> bool {
        matches!(self, Self::Etcd | Self::Etcd36 | Self::Zookeeper | Self::Consul)
    }

    /// Starts it with so many nodes and empty data, and waits until it serves.
    ///
    /// # Errors
    /// When its program is missing, or it does not serve.
    pub fn start(self, tools: &Tools, nodes: usize) -> Result<Running> {
        match self {
            Self::Leasehold => leasehold::start(tools, nodes),
            Self::Etcd => etcd::start(tools, nodes, etcd::packaged(tools)),
            Self::Etcd36 => etcd::start(tools, nodes, etcd::built(tools)),
            Self::Zookeeper => zookeeper::start(tools, nodes),
            Self::Redis => redis::start(tools),
            Self::Postgres => postgres::start(tools),
            Self::Consul => consul::start(tools, nodes),
        }
    }
}

/// Where programs are, and where data goes.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Our own program.
    pub program: PathBuf,
    /// What was installed for the peers.
    pub installed: PathBuf,
    /// On a real disk.
    pub data: PathBuf,
}

impl Tools {
    /// A fresh directory for the data of a system.
    ///
    /// # Errors
    /// When it cannot be made, or would lie in memory: then nothing in it would be durable.
    pub fn directory(&self, name: &str) -> Result<tempfile::TempDir> {
        ensure!(
            !is_in_memory(&self.data)?,
            "{} is in memory; choose a directory on a disk with --data",
            self.data.display()
        );
        let made =
            tempfile::Builder::new().prefix(&format!("leasehold-bench-{name}-")).tempdir_in(&self.data);
        made.with_context(|| format!("no directory can be made in {}", self.data.display()))
    }
}

/// The kind of file system that is kept in memory, as `statfs` says.
const TMPFS: i64 = 0x0102_1994;

fn is_in_memory(place: &Path) -> Result<bool> {
    let status =
        rustix::fs::statfs(place).with_context(|| format!("{} cannot be looked at", place.display()))?;
    Ok(status.f_type as i64 == TMPFS)
}

/// A system that runs.
#[derive(Debug)]
pub struct Running {
    /// Its version, as it says itself.
    pub version: String,
    /// What was set, and the recipe that clients use.
    pub settings: String,
    /// Where clients connect to.
    pub url: String,
    /// Where they connect to when the leader is going to die, if their connections do not move by themselves.
    pub beside_leader: Option<String>,
    /// Its nodes.
    pub nodes: Vec<Process>,
    /// Which node led when it was asked, counted from zero.
    pub leader: usize,
    /// Gone after the processes are.
    pub directory: tempfile::TempDir,
}

impl Running {
    /// Kills every node at once and starts all again on the same data.
    ///
    /// # Errors
    /// When one does not start.
    pub fn restart(&mut self) -> Result<()> {
        self.nodes.iter_mut().for_each(Process::kill);
        self.nodes.iter_mut().try_for_each(Process::run)
    }

    /// The numbers of its processes.
    pub fn pids(&self) -> Vec<u32> {
        self.nodes.iter().filter_map(Process::pid).collect()
    }
}

/// A client as a workload needs it: somebody who can hold a lease.
pub trait Client: Sized + Send + Sync + 'static {
    /// A connection, which several clients may share.
    type Link: Send + Sync + 'static;
    /// A lease that is held.
    type Held: Send + Sync + 'static;

    /// Connections over which very many sessions renew best.
    const RENEWAL_LINKS: usize = SHARED;

    /// Connects. Where a session belongs to the connection, it has this ttl.
    fn link(url: &str, ttl: Duration) -> impl Future<Output = Result<Self::Link>> + Send;

    /// Becomes somebody, with a ttl. The number is different for each.
    fn open(
        link: &Arc<Self::Link>,
        number: usize,
        ttl: Duration,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Acquires a name that is free, and says the token.
    fn acquire(&self, name: &str) -> impl Future<Output = Result<(u64, Self::Held)>> + Send;

    /// Gives it back, and waits for the answer.
    fn release(&self, held: Self::Held) -> impl Future<Output = Result<()>> + Send;

    /// Waits until a name is this one's, whoever else wants it.
    fn wait_for(&self, name: &str) -> impl Future<Output = Result<(u64, Self::Held)>> + Send;

    /// Renews, and waits for the answer: where a renewal is a call of its own.
    fn renew(&self, _held: &mut Self::Held) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Err(anyhow!("a lease has no renewal of its own here")))
    }

    /// Renews all of them until the window ends, each as soon as its last renewal was answered, and each at least once.
    fn renew_all(
        all: Vec<(Self, Self::Held)>,
        window: Window,
    ) -> impl Future<Output = Result<Renewed<Self>>> + Send {
        renew_each(all, window)
    }
}

/// A client that can be told of changes.
pub trait Watching: Client {
    /// Where changes arrive.
    type Watch: Send + 'static;

    /// Watches all names that begin with this. What happens after it returned is not missed.
    fn watch(link: &Arc<Self::Link>, prefix: &str) -> impl Future<Output = Result<Self::Watch>> + Send;

    /// The next changes.
    fn seen(watch: &mut Self::Watch) -> impl Future<Output = Result<Seen>> + Send;
}

/// Changes that arrived together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Leases that were granted.
    pub granted: usize,
    /// Leases that ended.
    pub ended: usize,
}

/// What comes of very many renewals.
#[derive(Debug)]
pub struct Renewed<C: Client> {
    /// How long those took that were answered in the window, in nanoseconds.
    pub took: Vec<u64>,
    /// Everybody, with what they still hold.
    pub kept: Vec<(C, C::Held)>,
}

/// A task for each.
async fn renew_each<C: Client>(all: Vec<(C, C::Held)>, window: Window) -> Result<Renewed<C>> {
    let mut tasks = JoinSet::new();
    for (client, mut held) in all {
        tasks.spawn(async move {
            let mut took = Vec::new();
            let mut begun = now_ns();
            loop {
                client.renew(&mut held).await?;
                let ended = now_ns();
                if window.has(ended) {
                    took.push(ended - begun);
                }
                if ended >= window.end {
                    return Ok::<_, anyhow::Error>((took, client, held));
                }
                begun = ended;
            }
        });
    }
    let (mut took, mut kept) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (some, client, held) = done??;
        took.extend(some);
        kept.push((client, held));
    }
    Ok(Renewed { took, kept })
}
