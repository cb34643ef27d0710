//! The end that an orchestrator asks for: SIGTERM, and a grace period until SIGKILL.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::aside;
use crate::error::Error;
use crate::time::Time;

/// Kept of the grace period for giving the lease back, after the work is finished.
pub const RESERVED_FOR_RELEASE: Duration = Duration::from_millis(500);

/// Listens to SIGTERM, and knows how much of the grace period is left after it.
#[derive(Debug)]
pub struct Termination {
    signals: tokio::sync::Mutex<Signal>,
    grace: Duration,
    asked: Mutex<Option<Reading>>,
}

impl Termination {
    /// Listens from now on. `grace` is how long the orchestrator waits between SIGTERM and SIGKILL (`terminationGracePeriodSeconds`,
    /// `TimeoutStopSec`), `work_bound` how long one piece of work takes at most.
    ///
    /// # Errors
    /// When the grace period is too short for the work and the release after it: then a drain would be cut off, and this is the
    /// moment to say so. Also when signals cannot be listened to.
    pub fn listen(grace: Duration, work_bound: Duration) -> Result<Self, Error> {
        let needed = work_bound.saturating_add(RESERVED_FOR_RELEASE);
        if grace < needed {
            return Err(Error::GraceTooShort { grace, work_bound, needed });
        }
        // Signals come by way of a runtime; a program without one listens by that of the library.
        let runtime = if Time::Machine.needs_runtime() { Some(aside::runtime()?) } else { None };
        let entered = runtime.as_ref().map(Handle::enter);
        let signals = signal(SignalKind::terminate()).map_err(Error::System)?;
        drop(entered);
        Ok(Self { signals: tokio::sync::Mutex::new(signals), grace, asked: Mutex::new(None) })
    }

    /// Waits for SIGTERM; answers at once when it has come before.
    pub async fn requested(&self) {
        if self.asked().is_some() {
            return;
        }
        let mut signals = self.signals.lock().await;
        if self.asked().is_none() {
            signals.recv().await;
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Time::Machine.now());
        }
    }

    /// How long work may take from now on, so that enough is left to give the lease back. All of the grace period before SIGTERM.
    pub fn budget(&self) -> Duration {
        let spent = self.asked().map_or(Duration::ZERO, |asked| Time::Machine.now().since(asked).greater());
        self.grace.saturating_sub(RESERVED_FOR_RELEASE).saturating_sub(spent)
    }

    fn asked(&self) -> Option<Reading> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
