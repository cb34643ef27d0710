//! Log time: what a leader counts.
//!
//! Two clocks are read; the smaller total counts, so that suspend (which one clock does not see) and slewing (which the other
//! does not see) never make log time run ahead. The clock that is ahead keeps at most [`MAX_LEAD`] of its lead: else a clock that
//! was slewed to be slow and is then slewed to be fast would be allowed to catch up, and log time would run as fast as it.
//! Each turn of the loop adds at most [`STALL_CAP`]: a loop that stood still could not have taken in renewals, so that time is
//! not held against anybody. What was cut is cut from both totals for good.
//!
//! So between any two points log time moves by no more than either clock did, plus [`MAX_LEAD`] and the rounding of stamps.

use core::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::{LogTime, Millis};

/// The most that one turn of the loop, and the time in which one write is on its way to the disk, add to log time.
pub const STALL_CAP: Duration = Duration::from_millis(100);

/// How much further one clock may be than the other: they are not read at the very same moment, and turns of microseconds must
/// not lose time for it. Far below every margin.
pub const MAX_LEAD: Duration = Duration::from_micros(100);

/// Log time of one leadership. A new leadership begins with a new clock.
#[derive(Debug, Clone)]
pub struct LogClock {
    base: LogTime,
    last: Reading,
    boot: u128,
    raw: u128,
    cut: u128,
}

impl LogClock {
    /// A clock that stands at `base` now. No time before counts.
    pub fn start(base: LogTime, now: Reading) -> Self {
        Self { base, last: now, boot: 0, raw: 0, cut: 0 }
    }

    /// Counts one turn of the loop, at most `most` of it; what is above that is cut. Says how much was counted.
    pub fn turn(&mut self, now: Reading, most: Duration) -> Duration {
        let before = self.elapsed();
        self.boot += u128::from(now.boot.saturating_sub(self.last.boot));
        self.raw += u128::from(now.raw.saturating_sub(self.last.raw));
        self.last = self.last.latest(now);
        let added = self.elapsed() - before;
        let mut excess = added.saturating_sub(most.as_nanos());
        if planted(Bug::TimeTruncatedPerTurn) {
            excess = excess.max(added % 1_000_000);
        }
        self.boot -= excess;
        self.raw -= excess;
        self.cut += excess;
        let furthest = self.elapsed() + MAX_LEAD.as_nanos();
        self.boot = self.boot.min(furthest);
        self.raw = self.raw.min(furthest);
        let counted =
            u64::try_from(self.elapsed() - before).expect("what was counted is at most what was allowed");
        Duration::from_nanos(counted)
    }

    /// The present log time, rounded down.
    pub fn stamp(&self) -> LogTime {
        let millis =
            u64::try_from(self.elapsed() / 1_000_000).expect("no leadership lasts half a billion years");
        self.base.plus(Millis::new(millis))
    }

    /// The readings that [`stamp`](Self::stamp) was computed from.
    pub fn reading(&self) -> Reading {
        self.last
    }

    /// Time cut so far.
    pub fn cut(&self) -> Millis {
        Millis::new(u64::try_from(self.cut / 1_000_000).unwrap_or(u64::MAX))
    }

    fn elapsed(&self) -> u128 {
        self.boot.min(self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_micros(boot: u64, raw: u64) -> Reading {
        Reading { boot: boot * 1_000, raw: raw * 1_000 }
    }

    #[test]
    fn turns_of_microseconds_add_up() {
        let mut clock = LogClock::start(LogTime::new(5), at_micros(0, 0));
        for micros in 1..=3_000 {
            clock.turn(at_micros(micros, micros), STALL_CAP);
        }
        assert_eq!(clock.stamp(), LogTime::new(8));
    }

    #[test]
    fn a_stall_adds_at_most_the_cap_and_what_is_cut_stays_cut() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(0, 0));
        clock.turn(at_micros(5_000_000, 5_000_000), STALL_CAP);
        assert_eq!(clock.stamp(), LogTime::new(100));
        assert_eq!(clock.cut(), Millis::new(4_900));
        clock.turn(at_micros(5_010_000, 5_010_000), STALL_CAP);
        assert_eq!(clock.stamp(), LogTime::new(110));
    }

    #[test]
    fn suspend_is_seen_by_one_clock_and_counts_for_nothing() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(0, 0));
        clock.turn(at_micros(3_600_000_000, 10_000), STALL_CAP);
        assert_eq!(clock.stamp(), LogTime::new(10));
        clock.turn(at_micros(3_600_010_000, 20_000), STALL_CAP);
        assert_eq!(clock.stamp(), LogTime::new(20));
        assert_eq!(clock.cut(), Millis::ZERO);
    }

    #[test]
    fn a_slewed_clock_never_makes_time_run_ahead_of_the_other() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(0, 0));
        for turn in 1..=100 {
            clock.turn(at_micros(turn * 10_833, turn * 10_000), STALL_CAP);
        }
        assert_eq!(clock.stamp(), LogTime::new(1_000));
    }

    #[test]
    fn a_clock_that_was_slow_does_not_catch_up() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(0, 0));
        for turn in 1..=1_000 {
            clock.turn(at_micros(turn * 9_200, turn * 10_000), STALL_CAP);
        }
        assert_eq!(clock.stamp(), LogTime::new(9_200));
        for turn in 1..=100 {
            clock.turn(at_micros(9_200_000 + turn * 10_800, 10_000_000 + turn * 10_000), STALL_CAP);
        }
        assert_eq!(clock.stamp(), LogTime::new(10_200));
    }

    #[test]
    fn readings_taken_at_slightly_different_moments_lose_nothing() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(0, 0));
        for turn in 1..=10_000 {
            let jitter = turn % 7 * 10;
            clock.turn(at_micros(turn * 20 + jitter, turn * 20), STALL_CAP);
        }
        assert_eq!(clock.stamp(), LogTime::new(200));
    }

    #[test]
    fn readings_that_seem_to_go_back_add_nothing() {
        let mut clock = LogClock::start(LogTime::ZERO, at_micros(10_000, 10_000));
        clock.turn(at_micros(5_000, 5_000), STALL_CAP);
        clock.turn(at_micros(10_000, 10_000), STALL_CAP);
        assert_eq!(clock.stamp(), LogTime::ZERO);
    }
}
