//! Connections to a store beside that of its driver, on the driver's thread.

use std::time::Duration;

use tokio::runtime::Handle;

use super::link::{Address, Home, Known};
use crate::store::ConnectOptions;

/// Makes them. Its tasks end with the driver.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    runtime: Handle,
    address: Address,
    options: ConnectOptions,
    known: Known,
}

impl Visitor {
    pub(super) fn new(runtime: Handle, address: Address, options: ConnectOptions, known: Known) -> Self {
        Self { runtime, address, options, known }
    }

    pub(crate) fn home(&self) -> Home {
        Home::new(self.address.clone(), &self.options, self.known.clone())
    }

    pub(crate) fn patience(&self) -> Duration {
        self.options.patience
    }

    /// How often the state was restored that was met last.
    pub(crate) fn epoch(&self) -> Option<u32> {
        self.known.epoch()
    }

    /// Runs a task for as long as the driver runs.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }
}
