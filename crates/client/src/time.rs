//! The time that a driver lives by: the machine's clocks, or a clock moved by a test.

use std::time::Duration;

use leasehold_core::holder::Reading;

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

    /// Sleeps in an application's task for about this long. Whoever wakes reads the clocks again.
    pub(crate) async fn nap(&self, length: Duration) {
        match self {
            Self::Machine => tokio::time::sleep(length).await,
            #[cfg(feature = "testing")]
            Self::Hand(clock) => clock.sleep(length).await,
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
