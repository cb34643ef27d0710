//! The two clocks of a simulated machine, and how they relate to true time.

use leasehold_core::holder::Reading;

/// Parts of a clock's rate: a billion is exactly right.
const EXACT: u64 = 1_000_000_000;

/// One clock: a line from a point, with a rate.
#[derive(Debug, Clone, Copy)]
struct Hand {
    shows: u64,
    rate: u64,
}

/// Two clocks that began at different times and may run at different rates.
#[derive(Debug, Clone)]
pub struct MachineClock {
    /// True time at which the present rates began.
    since: u64,
    boot: Hand,
    raw: Hand,
    /// Rates to go back to after a freeze or suspend.
    usual: (u64, u64),
}

impl MachineClock {
    /// Clocks that show some time already, with rate errors in billionths.
    pub fn new(boot: u64, raw: u64, boot_error: i64, raw_error: i64) -> Self {
        let rate = |error: i64| EXACT.saturating_add_signed(error);
        Self {
            since: 0,
            boot: Hand { shows: boot, rate: rate(boot_error) },
            raw: Hand { shows: raw, rate: rate(raw_error) },
            usual: (rate(boot_error), rate(raw_error)),
        }
    }

    /// Both clocks at a point of true time that is not before the last change of their rates.
    pub fn read(&self, now: u64) -> Reading {
        let passed = now - self.since;
        Reading { boot: self.boot.after(passed), raw: self.raw.after(passed) }
    }

    /// True time at which one of the clocks reaches a point, if their rates stay as they are.
    pub fn when(&self, now: u64, point: Reading) -> u64 {
        let boot = self.boot.until(point.boot);
        let raw = self.raw.until(point.raw);
        self.since.saturating_add(boot.min(raw)).max(now)
    }

    /// True time after which the clock of timers has moved by so many nanoseconds: the one that stands still in suspend.
    pub fn after(&self, now: u64, length: u64) -> u64 {
        if self.raw.rate == 0 {
            return u64::MAX;
        }
        let scaled = u128::from(length) * u128::from(EXACT) / u128::from(self.raw.rate) + 1;
        now.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Other usual rates from now on, as errors in billionths.
    pub fn set_errors(&mut self, now: u64, boot_error: i64, raw_error: i64) {
        self.usual = (EXACT.saturating_add_signed(boot_error), EXACT.saturating_add_signed(raw_error));
        self.set_rates(now, self.usual);
    }

    /// The machine stands still: asleep, with one clock running on, or stopped from outside with both.
    pub fn stop(&mut self, now: u64, with_both: bool) {
        self.set_rates(now, (if with_both { 0 } else { self.usual.0 }, 0));
    }

    /// The usual rates again.
    pub fn resume(&mut self, now: u64) {
        self.set_rates(now, self.usual);
    }

    /// Whether its timers stand still: asleep, or stopped from outside.
    pub const fn stands_still(&self) -> bool {
        self.raw.rate == 0
    }

    fn set_rates(&mut self, now: u64, rates: (u64, u64)) {
        let reading = self.read(now);
        self.since = now;
        self.boot = Hand { shows: reading.boot, rate: rates.0 };
        self.raw = Hand { shows: reading.raw, rate: rates.1 };
    }
}

impl Hand {
    fn after(self, passed: u64) -> u64 {
        let moved = u128::from(passed) * u128::from(self.rate) / u128::from(EXACT);
        self.shows + u64::try_from(moved).expect("centuries are not simulated")
    }

    fn until(self, point: u64) -> u64 {
        let Some(left) = point.checked_sub(self.shows) else { return 0 };
        if self.rate == 0 {
            return u64::MAX;
        }
        let passed = (u128::from(left) * u128::from(EXACT)).div_ceil(u128::from(self.rate));
        u64::try_from(passed).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_reached_when_the_first_clock_reaches_it() {
        let clock = MachineClock::new(5_000, 9_000, 1_000_000, -1_000_000);
        let point = clock.read(0).plus(std::time::Duration::from_secs(10));
        let when = clock.when(0, point);
        assert!(!clock.read(when - 1).has_reached(point));
        assert!(clock.read(when).has_reached(point));
    }

    #[test]
    fn in_suspend_one_clock_runs_on() {
        let mut clock = MachineClock::new(0, 0, 0, 0);
        clock.stop(1_000, false);
        assert_eq!(clock.read(3_000), Reading { boot: 3_000, raw: 1_000 });
        clock.resume(3_000);
        assert_eq!(clock.read(4_000), Reading { boot: 4_000, raw: 2_000 });
        clock.stop(4_000, true);
        assert_eq!(clock.read(9_000), Reading { boot: 4_000, raw: 2_000 });
        assert_eq!(clock.after(9_000, 1), u64::MAX);
    }
}
