//! The leases of a session, as the application sees them.

use alloc::sync::Arc;
use core::time::Duration;

use crate::answer::{Ending, Grant};
use crate::holder::{Belief, NoGuard, Reading, Standing, Strictness};
use crate::id::{CommandNumber, RenewalNumber};

/// Why belief in a lease has ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndedWhy {
    /// The application has given it back.
    Released,
    /// The application has closed the session.
    Closed,
    /// The service has ended it.
    ByService(Ending),
    /// The session is over.
    SessionEnded,
}

/// Where a lease stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseState {
    /// Confirmed until a point on the machine's clocks.
    Held {
        /// Over as soon as one clock has reached it.
        until: Reading,
    },
    /// Still confirmed, but the last renewal was not answered in time.
    Retrying {
        /// When that was noticed.
        since: Reading,
        /// Over as soon as one clock has reached it.
        until: Reading,
    },
    /// The clocks disagree: nothing is known until a renewal sent afterwards is confirmed.
    Uncertain {
        /// When that was noticed.
        since: Reading,
    },
    /// Not confirmed now. A renewal may bring the lease back.
    Lapsed {
        /// The deadline, or the arrival of a grant that came too late.
        since: Reading,
    },
    /// Over for good.
    Ended {
        /// Why.
        why: EndedWhy,
        /// Up to when it was confirmed; nothing if it never was.
        confirmed_until: Option<Reading>,
    },
}

/// One lease of the machine.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) grant: Arc<Grant>,
    /// The acquire or accept that brought it.
    pub(super) command: CommandNumber,
    /// It arrived while the session was not believed: at this point, and it counts from this renewal on.
    pub(super) arrived_late: Option<(Reading, RenewalNumber)>,
}

/// A lease and what its session believes: a value that other threads may keep and ask. Time alone can only end it; whoever
/// publishes it replaces it when the machine says something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHandle {
    pub(super) grant: Arc<Grant>,
    pub(super) belief: Belief,
    pub(super) unconfirmed_since: Option<Reading>,
}

impl LeaseHandle {
    /// The grant: resource, token, fence and slot.
    pub const fn grant(&self) -> &Arc<Grant> {
        &self.grant
    }

    /// The deadline on both clocks.
    pub fn until(&self) -> Reading {
        self.belief.until()
    }

    /// Where the lease stands now.
    pub fn state(&self, now: Reading) -> LeaseState {
        if let Some(since) = self.unconfirmed_since {
            return LeaseState::Lapsed { since };
        }
        match self.belief.standing(now) {
            Standing::Held { until } => LeaseState::Held { until },
            Standing::Retrying { since, until } => LeaseState::Retrying { since, until },
            Standing::Uncertain { since } => LeaseState::Uncertain { since },
            Standing::Lapsed { since } => LeaseState::Lapsed { since },
        }
    }

    /// Leave to act for `how_long`.
    ///
    /// # Errors
    /// When that long does not fit before the deadline, or the lease may not be believed now.
    pub fn guard(&self, how_long: Duration, strictness: Strictness, now: Reading) -> Result<(), NoGuard> {
        if self.unconfirmed_since.is_some() {
            return Err(NoGuard::Lapsed);
        }
        self.belief.guard(how_long, strictness, now)
    }
}
