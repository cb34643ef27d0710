//! Connections to a store beside that of its driver, on the driver's thread.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::link::{Address, Home, Known};
use crate::store::{ConnectOptions, Report};

/// Makes them. Its tasks end with the driver.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    runtime: Handle,
    /// Closed when the driver has ended.
    runs: watch::Receiver<()>,
    address: Address,
    options: ConnectOptions,
    known: Known,
}

impl Visitor {
    pub(super) fn new(
        runtime: Handle,
        runs: watch::Receiver<()>,
        address: Address,
        options: ConnectOptions,
        known: Known,
    ) -> Self {
        Self { runtime, runs, address, options, known }
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(self.address.clone(), &self.options, self.known.clone())
    }

    pub(crate) fn patience(&self) -> Duration {
        self.options.patience
    }

    pub(super) fn report(&self) -> Option<Report> {
        self.options.report.clone()
    }

    /// How often the state was restored that was met last.
    pub(crate) fn epoch(&self) -> Option<u32> {
        self.known.epoch()
    }

    /// Runs a task for as long as the driver runs.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut runs = self.runs.clone();
        self.runtime.spawn(async move {
            tokio::select! {
                () = task => {}
                // Nothing is ever sent: this is the end.
                _ = runs.changed() => {}
            }
        });
    }
}
