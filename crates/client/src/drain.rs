//! Drain in strict order: no new work, finish what is in flight, give the lease back, then let the successor lead.
//!
//! [`Drain`] counts the work. [`Termination`] is the SIGTERM of an orchestrator, with its grace period as the budget. Neither kills
//! anything: what has not finished when the budget is over is reported, and the lease is kept for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::error::Error;
use crate::lease::Lease;
use crate::successor::Resigned;

/// How often the number in flight is shown while it changes: who looks is a person or a waiter, not a counter.
const SHOW_EVERY: Duration = Duration::from_millis(500);

/// Counts work in flight, and lets none begin once it drains. Clones count together.
#[derive(Debug, Clone)]
pub struct Drain {
    count: Arc<Count>,
}

#[derive(Debug)]
struct Count {
    /// Beginning and stopping are decided under one lock: after stop the number only falls.
    state: Mutex<State>,
    in_flight: watch::Sender<u32>,
}

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    in_flight: u32,
}

/// A piece of work that is in flight until this is dropped.
#[derive(Debug)]
#[must_use = "the work is over when this is dropped"]
pub struct Work {
    count: Arc<Count>,
}

/// No work is let in any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("draining: no new work is let in")]
pub struct Draining;

/// The budget of a drain ran out while work was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the budget of the drain is over, and {in_flight} pieces of work are still in flight")]
pub struct Unfinished {
    /// What still runs.
    pub in_flight: u32,
}

impl Default for Drain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drain {
    /// Nothing in flight, and work is let in.
    pub fn new() -> Self {
        Self { count: Arc::new(Count { state: Mutex::default(), in_flight: watch::Sender::new(0) }) }
    }

    /// Begins a piece of work.
    ///
    /// # Errors
    /// When no work is let in any more.
    pub fn begin(&self) -> Result<Work, Draining> {
        let mut state = self.count.lock();
        if state.stopped {
            return Err(Draining);
        }
        state.in_flight += 1;
        self.count.in_flight.send_replace(state.in_flight);
        drop(state);
        Ok(Work { count: Arc::clone(&self.count) })
    }

    /// Lets no work in from now on. It cannot be taken back.
    pub fn stop(&self) {
        self.count.lock().stopped = true;
    }

    /// How many pieces of work are in flight.
    pub fn in_flight(&self) -> u32 {
        self.count.lock().in_flight
    }

    /// Waits until nothing is in flight. Without [`stop`](Self::stop) before it, new work may begin at once.
    pub async fn finished(&self) {
        // The sender lives as long as this count.
        let _ = self.count.in_flight.subscribe().wait_for(|in_flight| *in_flight == 0).await;
    }

    /// Drains in strict order: stops, waits until nothing is in flight, gives the lease back as drained, and waits with what is left of
    /// the budget until somebody else holds the resource. Meanwhile others see that it drains, how much is in flight, and how long at
    /// most. Giving up this call gives nothing back.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when the budget ran out first: the lease is held as before, because work acts under it. Else when the lease could
    /// not be given back for certain, or the store cannot be reached.
    pub async fn run(&self, lease: &Lease, budget: Duration) -> Result<Resigned, Error> {
        let left = self.finish(lease, budget).await?;
        lease.resign_now(left).await
    }

    /// Stops, and waits until nothing is in flight. Meanwhile others see it. Gives back what is left of the budget.
    pub(crate) async fn finish(&self, lease: &Lease, budget: Duration) -> Result<Duration, Unfinished> {
        self.stop();
        let time = lease.shared.time.clone();
        let begun = time.now();
        let mut in_flight = self.count.in_flight.subscribe();
        loop {
            let now_in_flight = *in_flight.borrow_and_update();
            let left = budget.saturating_sub(time.now().since(begun).greater());
            if now_in_flight == 0 {
                return Ok(left);
            }
            if left.is_zero() {
                return Err(Unfinished { in_flight: now_in_flight });
            }
            // Work does not wait for this, and a store that is away does not stop the drain.
            lease.show_draining(now_in_flight, left);
            tokio::select! {
                _ = in_flight.wait_for(|in_flight| *in_flight == 0) => {}
                () = time.nap(left.min(SHOW_EVERY)) => {}
            }
        }
    }
}

impl Count {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = self.count.lock();
        state.in_flight -= 1;
        // Under the lock, so that numbers are told in the order in which they were true.
        self.count.in_flight.send_replace(state.in_flight);
    }
}
