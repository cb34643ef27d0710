//! How a store is connected to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::driver::meter;
use crate::error::Unreachable;

/// How long a store may be out of reach before a call gives up, unless asked otherwise.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// How a store is connected to.
#[derive(Debug, Clone)]
#[must_use]
pub struct ConnectOptions {
    pub(crate) patience: Duration,
    pub(crate) end_all_after_wait: bool,
    pub(crate) only_listed: bool,
    pub(crate) figures_over: Duration,
    pub(crate) read_in: Option<Handle>,
    pub(crate) report: Option<Report>,
}

/// A function of the application that is told why a store does not answer.
#[derive(Clone)]
pub(crate) struct Report(Arc<dyn Fn(&Unreachable) + Send + Sync>);

impl Report {
    pub(crate) fn tell(&self, why: &Unreachable) {
        (self.0)(why);
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Report")
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            patience: DEFAULT_PATIENCE,
            end_all_after_wait: false,
            only_listed: false,
            figures_over: meter::GENERATION,
            read_in: None,
            report: None,
        }
    }
}

impl ConnectOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the store may be out of reach before a call gives up.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Uses the addresses of a service that are listed, and no other: neither that of its leader nor those of members that it names. For clients
    /// that are to pass through a proxy, whatever happens to it.
    pub fn only_listed(mut self) -> Self {
        self.only_listed = true;
        self
    }

    /// Recent [figures](crate::Store::figures) are of the last one to two times this; a minute unless asked otherwise.
    pub fn figures_over(mut self, length: Duration) -> Self {
        self.figures_over = length;
        self
    }

    /// Reads answers in this runtime of the application while it asks for much, which makes every operation quicker by one waking of a thread. It is to
    /// be the one that asks, with input and output enabled, as `#[tokio::main]` and [`enable_all`](tokio::runtime::Builder::enable_all) make it:
    /// `read_in(Handle::current())`.
    ///
    /// Renewals do not depend on it: a thread of the library sends them at their time, and reads by itself whatever this runtime has left
    /// unread for 40 ms, because it is blocked or has ended.
    pub fn read_in(mut self, runtime: Handle) -> Self {
        self.read_in = Some(runtime);
        self
    }

    /// Tells this function once why the store does not answer, if there is no first answer after a second. The store is tried for as long as its
    /// patience all the same. It runs on a thread of the library and must not block.
    pub fn report(mut self, report: impl Fn(&Unreachable) + Send + Sync + 'static) -> Self {
        self.report = Some(Report(Arc::new(report)));
        self
    }

    /// Where the clocks of a directory cannot be compared with this machine's, end all its leases and wait for the longest ttl
    /// instead of refusing it.
    pub fn end_all_after_wait(mut self) -> Self {
        self.end_all_after_wait = true;
        self
    }
}
