//! A store in memory, with a clock moved by hand: tests of programs that hold leases pause, cut and expire without sleeping.
//!
//! The service, the sessions and the guards are the real ones; only the clock, the disk and the network are not. Nothing happens
//! by itself: [`World::advance`] moves time in small steps and comes back when everybody has done what was to be done.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), leasehold::Error> {
//! use std::time::Duration;
//! use leasehold::testing::World;
//! use leasehold::{LeaseState, SessionOptions};
//!
//! let world = World::new();
//! let store = world.store();
//! let session = world.run(store.session_with(&SessionOptions::new().ttl(Duration::from_secs(10))))?;
//! let lease = world.run(session.acquire("job").into_future())?;
//!
//! // The network is cut. The holder stops believing before the service gives the lease to another.
//! store.cut();
//! world.advance(Duration::from_secs(9));
//! assert!(matches!(lease.state(), LeaseState::Lapsed { .. }));
//! assert!(lease.guard(Duration::from_millis(1)).is_err());
//! # Ok(())
//! # }
//! # use std::future::IntoFuture;
//! ```

mod network;
mod world;

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::measure::Clocks;

use crate::driver::link::Address;
use crate::error::Error;

pub use world::{TestStore, World};

/// The URL of a store as it is understood, written down again: for the fuzzer.
///
/// # Errors
/// When it is not understood.
#[doc(hidden)]
pub fn store_url(url: &str) -> Result<String, Error> {
    Address::parse(url).map(|address| address.to_string())
}

/// A clock moved by hand. Both clocks of the pretended machine can be moved apart, as suspend does.
#[derive(Debug, Clone)]
pub struct HandClock {
    boot: Arc<AtomicU64>,
    raw: Arc<AtomicU64>,
    /// By how much the time of day is ahead of the first.
    wall_ahead: Arc<AtomicU64>,
    /// Who sleeps until the clock has moved on.
    sleepers: Arc<Mutex<Vec<Waker>>>,
}

impl HandClock {
    /// A clock that has run for an hour: nothing depends on where it stands.
    pub(crate) fn new() -> Self {
        const HOUR: u64 = 3_600 * 1_000_000_000;
        let hour = || Arc::new(AtomicU64::new(HOUR));
        Self { boot: hour(), raw: hour(), wall_ahead: hour(), sleepers: Arc::default() }
    }

    pub(crate) fn now(&self) -> Reading {
        Reading { boot: self.boot.load(Ordering::SeqCst), raw: self.raw.load(Ordering::SeqCst) }
    }

    /// What is slewed is not moved here: `CLOCK_MONOTONIC` runs as the raw one.
    pub(crate) fn measure(&self) -> Clocks {
        let reading = self.now();
        let ahead = self.wall_ahead.load(Ordering::SeqCst);
        Clocks { reading, monotonic: reading.raw, wall: reading.boot.saturating_add(ahead) }
    }

    /// Somebody sets the time of day.
    pub(crate) fn step_wall_clock(&self, forwards: Duration) {
        self.wall_ahead.fetch_add(nanos(forwards), Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, length: Duration) {
        self.raw.fetch_add(nanos(length), Ordering::SeqCst);
        self.advance_boot(length);
    }

    /// Only the clock that counts suspend moves.
    pub(crate) fn advance_boot(&self, length: Duration) {
        self.boot.fetch_add(nanos(length), Ordering::SeqCst);
        for sleeper in self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            sleeper.wake();
        }
    }

    /// Sleeps until the clock was moved by `length`.
    pub(crate) async fn sleep(&self, length: Duration) {
        let begun = self.now();
        poll_fn(|context| {
            // Before the look: a step between the two is noticed.
            self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
            if self.now().since(begun).greater() >= length { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
