//! Points in time that two processes of one machine can exchange.
//!
//! A [`Point`] is a reading of both clocks at once. It means something only inside one boot of one kernel and
//! one time namespace, which the wrapper and its guardian always share; it never leaves the machine.
//!
//! Of the two clocks the one that says *later* is believed: CLOCK_BOOTTIME goes on in suspend but is slewed by
//! time daemons, CLOCK_MONOTONIC_RAW is not slewed but stops in suspend. Whichever is ahead ends the lease.

use std::time::Duration;

use leasehold::core::holder::Reading;
use serde::{Deserialize, Serialize};

/// One moment, as both clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    boot: Duration,
    raw: Duration,
}

impl Point {
    /// A moment given by the two readings, each since that clock's own zero.
    pub fn new(boot: Duration, raw: Duration) -> Self {
        Self { boot, raw }
    }

    /// What both clocks show now.
    pub fn now() -> Self {
        leasehold_clock::read().into()
    }

    /// This moment, moved later by `length` on both clocks.
    #[must_use]
    pub fn plus(self, length: Duration) -> Self {
        Self { boot: self.boot.saturating_add(length), raw: self.raw.saturating_add(length) }
    }

    /// This moment, moved earlier by `length` on both clocks, not below their zero.
    #[must_use]
    pub fn minus(self, length: Duration) -> Self {
        Self { boot: self.boot.saturating_sub(length), raw: self.raw.saturating_sub(length) }
    }

    /// How long until this moment, by the clock that gets there first. Zero once either clock has reached it.
    pub fn remaining(self, now: Point) -> Duration {
        self.boot.saturating_sub(now.boot).min(self.raw.saturating_sub(now.raw))
    }

    /// The reading of CLOCK_BOOTTIME.
    pub fn boot(self) -> Duration {
        self.boot
    }

    /// The reading of CLOCK_MONOTONIC_RAW.
    pub fn raw(self) -> Duration {
        self.raw
    }
}

impl From<Reading> for Point {
    fn from(reading: Reading) -> Self {
        Self::new(Duration::from_nanos(reading.boot), Duration::from_nanos(reading.raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_clock_that_is_ahead_decides_what_remains() {
        let deadline = Point::new(10 * SECOND, 10 * SECOND);
        assert_eq!(deadline.remaining(Point::new(3 * SECOND, 4 * SECOND)), 6 * SECOND);
        assert_eq!(deadline.remaining(Point::new(9 * SECOND, 4 * SECOND)), SECOND);
    }

    #[test]
    fn a_deadline_is_reached_when_either_clock_is_there() {
        let deadline = Point::new(10 * SECOND, 10 * SECOND);
        assert_eq!(deadline.remaining(Point::new(10 * SECOND, SECOND)), Duration::ZERO);
        assert_eq!(deadline.remaining(Point::new(SECOND, 11 * SECOND)), Duration::ZERO);
    }

    #[test]
    fn neither_clock_runs_backwards() {
        let first = Point::now();
        let second = Point::now();
        assert!(second.boot() >= first.boot() && second.raw() >= first.raw());
    }
}
