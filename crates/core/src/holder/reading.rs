//! Readings of one machine's two clocks.

use core::time::Duration;

use crate::planted::{Bug, planted};

/// The two clocks of one machine, read together, in nanoseconds. Only readings of the same machine and boot can be compared, and
/// they never leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The clock that runs on in suspend and may be slewed by a time daemon (`CLOCK_BOOTTIME`).
    pub boot: u64,
    /// The clock that is never slewed and stands still in suspend (`CLOCK_MONOTONIC_RAW`).
    pub raw: u64,
}

/// How far each clock has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    boot: Duration,
    raw: Duration,
}

/// Clocks may differ by this much at any time: they cannot be read at the very same moment.
const TOLERATED_DIFFERENCE: Duration = Duration::from_millis(50);
/// And by this part of what has passed: a time daemon slews by up to 8 %.
const TOLERATED_PART: u32 = 10;

impl Reading {
    /// How far each clock has moved since `earlier`; a clock that seems to have gone back has not moved.
    pub const fn since(self, earlier: Self) -> Elapsed {
        Elapsed {
            boot: Duration::from_nanos(self.boot.saturating_sub(earlier.boot)),
            raw: Duration::from_nanos(self.raw.saturating_sub(earlier.raw)),
        }
    }

    /// The point at which both clocks have moved on by `length`. It is over as soon as one of them has reached it.
    pub fn plus(self, length: Duration) -> Self {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Self { boot: self.boot.saturating_add(nanos), raw: self.raw.saturating_add(nanos) }
    }

    /// Whether a point made by [`Reading::plus`] is over: one of the clocks has reached it.
    pub const fn has_reached(self, point: Self) -> bool {
        self.boot >= point.boot || self.raw >= point.raw
    }

    /// Whether this point is not later than another, on either clock.
    pub const fn is_before(self, other: Self) -> bool {
        self.boot <= other.boot && self.raw <= other.raw
    }

    /// How long until one of the clocks has reached a point.
    pub fn until(self, point: Self) -> Duration {
        Duration::from_nanos(point.boot.saturating_sub(self.boot).min(point.raw.saturating_sub(self.raw)))
    }

    /// The later of two readings, clock by clock: threads may hand theirs over in the wrong order.
    #[must_use]
    pub fn latest(self, other: Self) -> Self {
        Self { boot: self.boot.max(other.boot), raw: self.raw.max(other.raw) }
    }
}

impl Elapsed {
    /// What a holder counts: the clock that has moved further.
    pub fn greater(self) -> Duration {
        if planted(Bug::HolderStopsInSuspend) { self.raw } else { self.boot.max(self.raw) }
    }

    /// What a service counts: the clock that has moved less.
    pub fn smaller(self) -> Duration {
        self.boot.min(self.raw)
    }

    /// Whether the clocks differ by more than 50 ms and a tenth of what has passed: one of them was stopped or rescaled.
    pub fn disagrees(self) -> bool {
        if planted(Bug::HolderStopsInSuspend) {
            return false;
        }
        let difference = self.greater() - self.smaller();
        difference > TOLERATED_DIFFERENCE + self.smaller() / TOLERATED_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_ms: u64, raw_ms: u64) -> Reading {
        Reading { boot: boot_ms * 1_000_000, raw: raw_ms * 1_000_000 }
    }

    #[test]
    fn the_holder_counts_the_clock_that_moved_further() {
        let elapsed = at(5_000, 2_000).since(at(1_000, 1_000));
        assert_eq!(elapsed.greater(), Duration::from_secs(4));
        assert_eq!(elapsed.smaller(), Duration::from_secs(1));
    }

    #[test]
    fn a_point_is_over_when_one_clock_has_reached_it() {
        let point = at(1_000, 7_000).plus(Duration::from_secs(1));
        assert!(!at(1_999, 7_999).has_reached(point));
        assert!(at(2_000, 7_000).has_reached(point));
        assert!(at(1_000, 8_000).has_reached(point));
    }

    #[test]
    fn clocks_disagree_above_fifty_milliseconds_and_a_tenth() {
        for (boot, raw, disagree) in
            [(50, 0, false), (51, 0, true), (1_150, 1_000, false), (1_151, 1_000, true)]
        {
            assert_eq!(at(boot, raw).since(at(0, 0)).disagrees(), disagree, "{boot} {raw}");
            assert_eq!(at(raw, boot).since(at(0, 0)).disagrees(), disagree, "{raw} {boot}");
        }
    }

    #[test]
    fn a_daemon_that_slews_by_eight_per_cent_is_no_disagreement() {
        assert!(!at(108_000, 100_000).since(at(0, 0)).disagrees());
    }

    #[test]
    fn a_clock_that_went_back_has_not_moved() {
        assert_eq!(at(1, 5).since(at(3, 3)).smaller(), Duration::ZERO);
    }
}
