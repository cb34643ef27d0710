//! Where a lease stands, in lengths of time that count from the call that asked.

use std::time::Duration;

use leasehold_core::Ending;
use leasehold_core::client::{EndedWhy as CoreEnded, LeaseState as CoreState};
use leasehold_core::holder::Reading;

/// Where a lease stands, as of the call that asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Confirmed for so much longer.
    Held {
        /// Until the deadline.
        remaining: Duration,
    },
    /// Still confirmed, but the last renewal was not answered in time.
    Retrying {
        /// Since that was noticed.
        since: Duration,
        /// Until the deadline.
        remaining: Duration,
    },
    /// The machine's clocks disagree: nothing is known until a renewal sent afterwards is confirmed.
    Uncertain {
        /// Since that was noticed.
        since: Duration,
    },
    /// The deadline has passed. A confirmed renewal may bring the lease back, with the same token.
    Lapsed {
        /// Since when.
        since: Duration,
    },
    /// Over for good.
    Ended {
        /// Why.
        why: EndedWhy,
        /// How long ago the lease was confirmed for the last time; nothing if it never was. What was done after that moment may
        /// have to be undone.
        confirmed_until: Option<Duration>,
    },
}

impl LeaseState {
    /// Whether the holder may believe in the lease now.
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Retrying { .. })
    }
}

/// Why a lease is over for good.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedWhy {
    /// The application gave it back.
    Released,
    /// The application closed the session.
    Closed,
    /// The service ended it.
    ByService(Ending),
    /// The session is over.
    SessionEnded,
    /// This process is a copy of the one that holds it.
    Forked,
}

pub(super) fn relative(state: CoreState, now: Reading) -> LeaseState {
    let left = |until: Reading| {
        let boot = until.boot.saturating_sub(now.boot);
        Duration::from_nanos(boot.min(until.raw.saturating_sub(now.raw)))
    };
    match state {
        CoreState::Held { until } => LeaseState::Held { remaining: left(until) },
        CoreState::Retrying { since, until } => {
            LeaseState::Retrying { since: now.since(since).greater(), remaining: left(until) }
        }
        CoreState::Uncertain { since } => LeaseState::Uncertain { since: now.since(since).greater() },
        CoreState::Lapsed { since } => LeaseState::Lapsed { since: now.since(since).greater() },
        CoreState::Ended { why, confirmed_until } => LeaseState::Ended {
            why: why.into(),
            confirmed_until: confirmed_until.map(|until| now.since(until).smaller()),
        },
    }
}

impl From<CoreEnded> for EndedWhy {
    fn from(why: CoreEnded) -> Self {
        match why {
            CoreEnded::Released => Self::Released,
            CoreEnded::Closed => Self::Closed,
            CoreEnded::ByService(ending) => Self::ByService(ending),
            CoreEnded::SessionEnded => Self::SessionEnded,
        }
    }
}
