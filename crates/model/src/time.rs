//! Small integer time: true time in ticks, clocks at the two extremes of the bound, log time in units of the leader's clock.
//!
//! A clock counts units. The slow one counts one per tick and the fast one two: rate errors of a third around their mean, so that the
//! drift factor `(1 + 1/3) / (1 - 1/3)` is exactly two and nothing is hidden by rounding. Rates in between are left out: elapsed
//! time enters every rule monotonically, so that a rule that fails for one of them fails at an extreme.

use crate::rules::{Rules, WrongRule};

/// The ttl of every session, in units of whoever counts.
pub const TTL: u8 = 2;
/// What a ttl is multiplied by before a session is overdue.
const DRIFT_FACTOR: u8 = 2;
/// A ttl on the slowest clock: so many ticks a confirmed renewal is honoured.
pub const HONOURED_TICKS: u8 = TTL;
/// The first tick, counted from a renewal, at which the slowest leader finds the session overdue.
pub const LATEST_END_TICKS: u8 = TTL * DRIFT_FACTOR + 1;

/// A point in true time. Nobody in the model reads it; invariants do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(pub u8);

impl Tick {
    /// Ticks since an earlier point.
    pub fn since(self, earlier: Tick) -> u8 {
        self.0 - earlier.0
    }

    /// A later point.
    pub fn plus(self, ticks: u8) -> Tick {
        Tick(self.0 + ticks)
    }
}

/// A point in log time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogTime(pub u8);

impl LogTime {
    /// A later point.
    pub fn plus(self, units: u8) -> LogTime {
        LogTime(self.0 + units)
    }
}

/// How fast a clock runs, for a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// As slow as the bound allows.
    Slow,
    /// As fast as the bound allows.
    Fast,
}

impl Rate {
    /// What a clock of this rate counts in so many ticks.
    pub fn units(self, ticks: u8) -> u8 {
        match self {
            Rate::Slow => ticks,
            Rate::Fast => 2 * ticks,
        }
    }
}

/// How much log time may pass after a renewal before the session is overdue.
pub fn overdue_units(rules: Rules) -> u8 {
    if rules.has(WrongRule::NoDriftFactor) { TTL } else { TTL * DRIFT_FACTOR }
}
