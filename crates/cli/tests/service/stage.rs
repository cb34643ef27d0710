//! What the tests share: a service, what it says of itself, and what the kernel says of it.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_clock as clock;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use super::raw;
use super::server::Server;

/// One test at a time: each of them wants the whole machine.
static TURN: Mutex<()> = Mutex::new(());

/// A service with a directory of its own, gone when the test ends.
pub(crate) struct Stage {
    pub(crate) server: Server,
    _directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    pub(crate) fn new(settings: &[&str]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(directory.path(), settings);
        Self { server, _directory: directory, _turn: turn }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Memory of the process in mebibytes, as the kernel counts it.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
        let kilobytes: u64 = line.trim().strip_suffix(" kB").expect("in kilobytes").parse().unwrap();
        kilobytes / 1024
    }
}

/// What the service knows about itself.
pub(crate) async fn status(address: SocketAddr) -> Value {
    let answer = raw::get(address, "/v1/status").await;
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// One of its metrics, named with its labels.
pub(crate) async fn metric(address: SocketAddr, name: &str) -> u64 {
    let text = raw::get(address, "/metrics").await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.trim().parse().unwrap()
}

/// Lets this process and its children have as many descriptors as the system allows.
pub(crate) fn raise_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    assert!(most >= needed, "{needed} descriptors are needed, and {most} are allowed: ulimit -Hn");
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}

/// Runs what a test does on this thread.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Time since an earlier reading.
pub(crate) fn since(began: leasehold::core::holder::Reading) -> Duration {
    clock::read().since(began).greater()
}

/// Looks until there is something to see; gives up, with words, after a time.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let began = clock::read();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(since(began) < within, "waited in vain for {within:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
