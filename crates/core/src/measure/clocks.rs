//! How the clocks of one machine run against each other.

use core::time::Duration;

use crate::holder::Reading;

/// All four clocks of a machine, read together. For measurement only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clocks {
    /// The two that deadlines are made of.
    pub reading: Reading,
    /// `CLOCK_MONOTONIC`, in nanoseconds: slewed as the first of them, and standing still in suspend as the second.
    pub monotonic: u64,
    /// The time of day, in nanoseconds since 1970. It may be set by anybody; nothing depends on it.
    pub wall: u64,
}

/// A wall clock that moved by more than this against the others was set; less is the scatter of reading them one after the other.
pub const MIN_WALL_STEP: Duration = Duration::from_millis(50);
/// Below this much time a rate says more about the reading of the clocks than about the clocks.
const MIN_SPAN: Duration = Duration::from_secs(1);
/// A rate is taken over one to two times this.
const SPAN: Duration = Duration::from_secs(30);

/// Rates against `CLOCK_MONOTONIC_RAW`, which nobody adjusts, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Of `CLOCK_MONOTONIC`: what a time daemon adds or takes away.
    pub monotonic_ppm: i64,
    /// Of `CLOCK_BOOTTIME`: the same and the time in suspend.
    pub boot_ppm: i64,
}

impl Rates {
    /// By how much the two clocks of deadlines disagree.
    pub const fn disagreement_ppm(self) -> u64 {
        self.boot_ppm.unsigned_abs()
    }
}

/// The time of day was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallStep {
    /// By how much.
    pub by: Duration,
    /// Whether forwards.
    pub forwards: bool,
}

/// What was found by looking at the clocks again and again.
#[derive(Debug, Clone, Copy)]
pub struct ClockRates {
    older: Clocks,
    newer: Clocks,
    last: Clocks,
    rates: Option<Rates>,
    steps: u64,
    stepped: Duration,
    last_step: Option<WallStep>,
    suspended: Duration,
}

impl ClockRates {
    /// Nothing yet: two looks make a rate.
    pub const fn new(first: Clocks) -> Self {
        Self {
            older: first,
            newer: first,
            last: first,
            rates: None,
            steps: 0,
            stepped: Duration::ZERO,
            last_step: None,
            suspended: Duration::ZERO,
        }
    }

    /// Another look; once a second is often enough.
    pub fn look(&mut self, now: Clocks) {
        let boot = moved(now.reading.boot, self.last.reading.boot);
        let difference = moved(now.wall, self.last.wall) - boot;
        let by = Duration::from_nanos(difference.unsigned_abs());
        if by > MIN_WALL_STEP {
            self.steps += 1;
            self.stepped = self.stepped.saturating_add(by);
            self.last_step = Some(WallStep { by, forwards: difference > 0 });
        }
        let asleep = u64::try_from(boot - moved(now.monotonic, self.last.monotonic)).unwrap_or(0);
        // The two are not read at the very same moment.
        if Duration::from_nanos(asleep) > MIN_WALL_STEP {
            self.suspended = self.suspended.saturating_add(Duration::from_nanos(asleep));
        }
        self.last = now;
        self.rates = rates(self.older, now).or(self.rates);
        if now.reading.since(self.newer.reading).greater() >= SPAN {
            (self.older, self.newer) = (self.newer, now);
        }
    }

    /// How the clocks run, over at least a second.
    pub const fn rates(&self) -> Option<Rates> {
        self.rates
    }

    /// How often the time of day was set.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// By how much in all, forwards and backwards alike.
    pub const fn stepped(&self) -> Duration {
        self.stepped
    }

    /// The last time it was.
    pub const fn last_step(&self) -> Option<WallStep> {
        self.last_step
    }

    /// How long this machine was seen to sleep.
    pub const fn suspended(&self) -> Duration {
        self.suspended
    }
}

/// How far a clock has moved, backwards too.
fn moved(now: u64, before: u64) -> i64 {
    let forwards = i64::try_from(now.saturating_sub(before)).unwrap_or(i64::MAX);
    let back = i64::try_from(before.saturating_sub(now)).unwrap_or(i64::MAX);
    forwards - back
}

fn rates(before: Clocks, now: Clocks) -> Option<Rates> {
    let raw = moved(now.reading.raw, before.reading.raw);
    if u64::try_from(raw).ok()? < u64::try_from(MIN_SPAN.as_nanos()).ok()? {
        return None;
    }
    let ppm = |other: i64| {
        let ppm = (i128::from(other) - i128::from(raw)) * 1_000_000 / i128::from(raw);
        i64::try_from(ppm).unwrap_or(i64::MAX)
    };
    let boot_ppm = ppm(moved(now.reading.boot, before.reading.boot));
    Some(Rates { monotonic_ppm: ppm(moved(now.monotonic, before.monotonic)), boot_ppm })
}
