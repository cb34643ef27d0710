//! What the tests share: a directory, and lengths of time on the clocks that count suspend.

use std::path::PathBuf;
use std::time::Duration;

use leasehold::core::holder::Reading;
use leasehold::{ConnectOptions, SessionOptions, Store};
use leasehold_kit::Timer;

/// A directory of a test, gone when it ends.
pub(crate) struct Place {
    root: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// In memory, for tests that would only measure the disk.
    pub(crate) fn in_memory() -> Self {
        Self { root: tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().join("store")
    }

    pub(crate) fn url(&self) -> String {
        format!("dir:{}", self.path().display())
    }

    pub(crate) async fn store(&self) -> Store {
        Store::connect(&self.url()).await.unwrap()
    }

    pub(crate) async fn impatient(&self, patience: Duration) -> Store {
        Store::connect_with(&self.url(), ConnectOptions::new().patience(patience)).await.unwrap()
    }
}

pub(crate) fn ttl(seconds: u64) -> SessionOptions {
    SessionOptions::new().ttl(Duration::from_secs(seconds))
}

/// Measures what a call takes, without the time in which a busy machine held this process back.
pub(crate) async fn timed<T>(call: impl Future<Output = T>) -> (T, Duration) {
    let timer = Timer::start();
    let done = call.await;
    (done, timer.took())
}

pub(crate) fn since(began: Reading) -> Duration {
    leasehold_clock::read().since(began).greater()
}

/// Waits until a question is answered with yes.
pub(crate) async fn until<F: Future<Output = bool>>(
    what: &str,
    limit: Duration,
    is_so: impl Fn() -> F,
) -> Duration {
    let began = leasehold_clock::read();
    while !is_so().await {
        assert!(since(began) < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    since(began)
}
