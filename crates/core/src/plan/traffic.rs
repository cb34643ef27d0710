//! What renewals cost.

use crate::limits::MAX_LEASES_PER_SESSION;
use crate::numbers::Schedule;
use crate::time::Millis;

/// Bytes of a renewal and its answer in frames of their own. Measured, see `docs/internals/performance.md`: 18 bytes a second for one
/// session that is renewed every 3 s on average.
pub const BYTES_ALONE: u64 = 54;
/// The same where many sessions of one process share frames. Measured in the same run: 161,158 bytes a second for 3,354 renewals.
pub const BYTES_TOGETHER: u64 = 48;

const MILLIS_PER_DAY: u64 = 24 * 60 * 60 * 1000;

/// Renewals of a number of sessions, and their bytes both ways, without TCP and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// How many sessions are renewed.
    pub sessions: u64,
    /// Renewals of all of them in a day.
    pub renewals_per_day: u64,
    /// Bytes in a day, both ways.
    pub bytes_per_day: u64,
}

impl Traffic {
    pub(super) fn of(sessions: u64, renew_every: Millis, schedule: Schedule, bytes: u64) -> Self {
        let interval = mean_interval(renew_every, schedule);
        let renewals = u128::from(sessions) * u128::from(MILLIS_PER_DAY) / interval;
        let fitting = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Self {
            sessions,
            renewals_per_day: fitting(renewals),
            bytes_per_day: fitting(renewals * u128::from(bytes)),
        }
    }

    /// Renewals in a thousand seconds: a whole number that still tells one in ten minutes from none.
    pub const fn renewals_per_1000_s(&self) -> u64 {
        self.renewals_per_day.saturating_mul(10) / 864
    }
}

/// Up to a fifth is taken off at random, so a tenth on average; a fixed schedule keeps to the millisecond.
fn mean_interval(renew_every: Millis, schedule: Schedule) -> u128 {
    let interval = u128::from(renew_every.get());
    match schedule {
        Schedule::Even | Schedule::Halves => interval * 9 / 10,
        Schedule::Fixed => interval,
    }
    // Refused numbers have figures too.
    .max(1)
}

/// How many sessions so many leases need at least.
pub(super) fn sessions_for(leases: u64) -> u64 {
    leases.div_ceil(MAX_LEASES_PER_SESSION as u64)
}
