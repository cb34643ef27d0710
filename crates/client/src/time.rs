//! The time that a driver lives by: the machine's clocks, or a clock moved by a test.

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::measure::Clocks;

/// Where readings come from.
#[derive(Debug, Clone)]
pub(crate) enum Time {
    /// This machine's clocks.
    Machine,
    /// A clock moved by hand.
    #[cfg(feature = "testing")]
    Hand(crate::testing::HandClock),
}

impl Time {
    pub(crate) fn now(&self) -> Reading {
        match self {
            Self::Machine => leasehold_clock::read(),
            #[cfg(feature = "testing")]
            Self::Hand(clock) => clock.now(),
        }
    }

    /// All clocks, for measurement only.
    pub(crate) fn measure(&self) -> Clocks {
        match self {
            Self::Machine => leasehold_clock::measure(),
            #[cfg(feature = "testing")]
            Self::Hand(clock) => clock.measure(),
        }
    }

    /// Sleeps in an application's task for about this long. Whoever wakes reads the clocks again.
    pub(crate) async fn nap(&self, length: Duration) {
        match self {
            // A timer of a runtime that this thread blocks would never ring.
            Self::Machine if self.needs_runtime() => crate::aside::nap(length).await,
            Self::Machine => tokio::time::sleep(length).await,
            #[cfg(feature = "testing")]
            Self::Hand(clock) => clock.sleep(length).await,
        }
    }

    /// Whether naps on this time, and whatever speaks to the network, need a runtime that the calling thread does not have: it has none, or
    /// [blocks](crate::blocking::wait) it.
    pub(crate) fn needs_runtime(&self) -> bool {
        match self {
            Self::Machine => crate::blocking::is_waiting() || tokio::runtime::Handle::try_current().is_err(),
            #[cfg(feature = "testing")]
            Self::Hand(_) => false,
        }
    }

    /// Whether a sleep that was begun ends by itself; else its sleeper is told of every step.
    pub(crate) fn keeps_alarms(&self) -> bool {
        match self {
            Self::Machine => true,
            #[cfg(feature = "testing")]
            Self::Hand(_) => false,
        }
    }

    /// Sleeps in a driver for about this long. Whoever wakes reads the clocks again.
    pub(crate) async fn sleep(&self, length: Duration) {
        match self {
            Self::Machine => tokio::time::sleep(length).await,
            // A test's step is told to every driver; nothing happens in between.
            #[cfg(feature = "testing")]
            Self::Hand(_) => std::future::pending().await,
        }
    }
}
