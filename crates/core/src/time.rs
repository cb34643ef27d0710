//! Lengths, log time and the drift factor.
//!
//! Only lengths cross the wire. Points in time exist in two forms that never meet: [`LogTime`], which the log carries, and the
//! readings of one machine's clocks, which only that machine interprets (see [`holder`](crate::holder)).

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::planted::{Bug, planted};

/// A length of time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Millis(u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A length of `millis` milliseconds.
    pub const fn new(millis: u64) -> Self {
        Self(millis)
    }

    /// A duration, rounded down to milliseconds; lengths beyond 2^64 ms become the greatest one.
    pub fn from_duration(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// The number of milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same length as a [`Duration`].
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The sum, or the greatest length if it does not fit.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero if the other is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A point in log time: milliseconds since the log began, as counted by its leaders. It never outruns real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct LogTime(u64);

impl LogTime {
    /// The beginning of the log.
    pub const ZERO: Self = Self(0);

    /// The point `millis` after the beginning.
    pub const fn new(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the beginning.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The point `length` later.
    ///
    /// # Panics
    /// When log time would exceed 2^64 ms, which is half a billion years.
    pub fn plus(self, length: Millis) -> Self {
        Self(
            self.0
                .checked_add(length.get())
                .expect("log time stays below 2^64 ms: every length is limited to a day"),
        )
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Millis {
        Millis::new(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The greatest rate error that any clock is trusted to keep, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Drift(u32);

impl Drift {
    /// One in a thousand: twenty times a bad crystal, and what both clocks used here keep while time daemons slew the others.
    pub const DEFAULT: Self = Self(1_000);
    /// Half: beyond it the factor below loses its meaning.
    pub const MAX: Self = Self(500_000);

    /// A bound of `ppm` parts per million, or nothing above [`Drift::MAX`].
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm <= Self::MAX.0 { Some(Self(ppm)) } else { None }
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// How long the service waits for a holder that counts `ttl`: `ttl * (1 + drift) / (1 - drift)`, rounded up. The holder's
    /// clock may be slow and the service's fast, each by the whole bound.
    #[inline]
    pub fn stretch(self, ttl: Millis) -> Millis {
        if planted(Bug::TtlOverflow) {
            let numerator = (ttl.get() as u32).wrapping_mul(1_000_000 + self.0);
            return Millis::new(u64::from(numerator / (1_000_000 - self.0)));
        }
        // Every renewal asks for this several times, and 128 bits are divided step by step.
        if let Some(numerator) = ttl.get().checked_mul(1_000_000 + u64::from(self.0)) {
            return Millis::new(numerator.div_ceil(1_000_000 - u64::from(self.0)));
        }
        let numerator = u128::from(ttl.get()) * (1_000_000 + u128::from(self.0));
        let stretched = numerator.div_ceil(1_000_000 - u128::from(self.0));
        Millis::new(u64::try_from(stretched).expect("a ttl is at most a day, and the factor at most three"))
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drift_factor_is_rounded_up() {
        assert_eq!(Drift::DEFAULT.stretch(Millis::new(10_000)), Millis::new(10_021));
        assert_eq!(Drift::DEFAULT.stretch(Millis::new(500)), Millis::new(502));
    }

    #[test]
    fn without_drift_nothing_is_added() {
        let none = Drift::from_ppm(0).unwrap();
        assert_eq!(none.stretch(Millis::new(10_000)), Millis::new(10_000));
    }

    #[test]
    fn a_drift_above_half_is_refused() {
        assert!(Drift::from_ppm(500_000).is_some());
        assert!(Drift::from_ppm(500_001).is_none());
    }

    #[test]
    fn time_since_a_later_point_is_zero() {
        assert_eq!(LogTime::new(3).since(LogTime::new(5)), Millis::ZERO);
    }
}
