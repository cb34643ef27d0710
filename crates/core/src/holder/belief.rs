//! What a session believes, as a value that other threads may keep and ask.

use core::time::Duration;

use super::reading::Reading;
use crate::time::Millis;

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
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
    /// The deadline has passed. A renewal may still bring the same leases back.
    Lapsed {
        /// The deadline.
        since: Reading,
    },
}

impl Standing {
    /// Whether a lease of this session may be acted upon.
    pub const fn is_believed(&self) -> bool {
        matches!(self, Self::Held { .. } | Self::Retrying { .. })
    }
}

/// Whether a guard is given while renewals go unanswered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// Until the deadline.
    #[default]
    UntilDeadline,
    /// Only while renewals are answered.
    OnlyWhileAnswered,
}

/// Why no leave to act is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoGuard {
    /// Less time is left than is needed.
    #[error("{needed} are needed, but only {left} are left before the deadline")]
    TooLong {
        /// What was asked for.
        needed: Millis,
        /// What is left, rounded down.
        left: Millis,
    },
    /// Strict, and a renewal is unanswered.
    #[error("a renewal is unanswered, and only an answered session may act")]
    Retrying,
    /// The machine's clocks disagree.
    #[error("the clocks of this machine disagree; a renewal must be confirmed first")]
    Uncertain,
    /// The deadline has passed.
    #[error("the deadline has passed without a confirmed renewal")]
    Lapsed,
    /// The time that a guard was given for is over.
    #[error("the time that the guard was given for is over; ask for another guard")]
    Over,
    /// The lease is over, or was never held here.
    #[error("the lease has ended")]
    Ended,
}

/// What a session believes: from which sending it counts and how long that carries it. Safe to copy to other threads, because
/// time alone can only end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    /// The sending of the last confirmed open or renewal.
    pub(super) confirmed: Reading,
    /// ttl - margin.
    pub(super) usable: Duration,
    /// Since when a renewal is unanswered.
    pub(super) retrying: Option<Reading>,
    /// Since when the clocks were known to disagree.
    pub(super) uncertain: Option<Reading>,
}

impl Belief {
    /// Where the session stands now.
    pub fn standing(&self, now: Reading) -> Standing {
        let until = self.until();
        let elapsed = now.since(self.confirmed);
        if elapsed.greater() >= self.usable {
            return Standing::Lapsed { since: until };
        }
        if let Some(since) = self.uncertain {
            return Standing::Uncertain { since };
        }
        if elapsed.disagrees() {
            return Standing::Uncertain { since: now };
        }
        match self.retrying {
            Some(since) => Standing::Retrying { since, until },
            None => Standing::Held { until },
        }
    }

    /// The deadline: over as soon as one clock has reached it.
    pub fn until(&self) -> Reading {
        self.confirmed.plus(self.usable)
    }

    /// How long until the deadline.
    pub fn left(&self, now: Reading) -> Duration {
        self.usable.saturating_sub(now.since(self.confirmed).greater())
    }

    /// Leave to act for `how_long`.
    ///
    /// # Errors
    /// When that long does not fit before the deadline, or nothing may be believed now.
    pub fn guard(&self, how_long: Duration, strictness: Strictness, now: Reading) -> Result<(), NoGuard> {
        match self.standing(now) {
            Standing::Lapsed { .. } => return Err(NoGuard::Lapsed),
            Standing::Uncertain { .. } => return Err(NoGuard::Uncertain),
            Standing::Retrying { .. } if strictness == Strictness::OnlyWhileAnswered => {
                return Err(NoGuard::Retrying);
            }
            Standing::Retrying { .. } | Standing::Held { .. } => {}
        }
        let left = self.left(now);
        if how_long > left {
            let needed = Millis::from_duration(how_long.saturating_add(Duration::from_nanos(999_999)));
            return Err(NoGuard::TooLong { needed, left: Millis::from_duration(left) });
        }
        Ok(())
    }
}
