//! What is allowed and not wise. Each rule is a name, a condition and a reason, and refuses nothing.

use alloc::vec::Vec;

use crate::limits::DEFAULT_MAX_TTL;
use crate::numbers::{Ask, Numbers};
use crate::time::Millis;

/// Below it the drift of a clock is the smaller danger: its steps, and a scheduler under load, are the greater.
pub const SHORT_TTL: Millis = Millis::new(3_000);
/// Above it a dead holder is missed for longer than most people wait before they act by hand.
pub const LONG_TTL: Millis = DEFAULT_MAX_TTL;

/// One rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// The ttl is below 3 s and nobody said how far clocks may come apart.
    ShortTtl,
    /// The ttl is below two round trips and a pause.
    BelowRoundTrips,
    /// The ttl is below two of the longest pauses.
    BelowPauses,
    /// The ttl is below three renewal intervals.
    BelowRenewals,
    /// The ttl is above 5 minutes.
    LongTtl,
}

impl Warning {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::ShortTtl, Self::BelowRoundTrips, Self::BelowPauses, Self::BelowRenewals, Self::LongTtl];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortTtl => "short-ttl",
            Self::BelowRoundTrips => "ttl-below-round-trips",
            Self::BelowPauses => "ttl-below-pauses",
            Self::BelowRenewals => "ttl-below-renewals",
            Self::LongTtl => "long-ttl",
        }
    }

    /// Its condition, in words.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::ShortTtl => "ttl below 3s without a clock bound",
            Self::BelowRoundTrips => "ttl below 2 x round trip + pause",
            Self::BelowPauses => "ttl below 2 x pause",
            Self::BelowRenewals => "ttl below 3 x renewal interval",
            Self::LongTtl => "ttl above 5m",
        }
    }

    /// Why it is not wise.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ShortTtl => {
                "one delay of a busy machine is a large part of it: measure the clocks and give a bound, or raise the ttl"
            }
            Self::BelowRoundTrips => {
                "after a pause there is no time to ask twice: one lost packet more ends the lease"
            }
            Self::BelowPauses => "two pauses in a row, as a busy collector makes them, end the lease",
            Self::BelowRenewals => "a second lost request ends the lease; renew every third of the ttl",
            Self::LongTtl => {
                "nobody acts for so long after a holder died, and a restore waits as long before it grants"
            }
        }
    }

    /// Whether this one applies.
    fn applies(self, ask: &Ask, numbers: &Numbers) -> bool {
        let (ttl, pause) = (numbers.ttl(), ask.pause);
        let twice = |length: Millis| length.saturating_add(length);
        match self {
            Self::ShortTtl => ttl < SHORT_TTL && ask.clock_bound.is_none(),
            Self::BelowRoundTrips => {
                ttl < twice(numbers.round_trip()).saturating_add(pause.unwrap_or(Millis::ZERO))
            }
            Self::BelowPauses => pause.is_some_and(|pause| ttl < twice(pause)),
            Self::BelowRenewals => ttl < twice(numbers.renew_every()).saturating_add(numbers.renew_every()),
            Self::LongTtl => ttl > LONG_TTL,
        }
    }

    pub(super) fn of(ask: &Ask, numbers: &Numbers) -> Vec<Self> {
        Self::ALL.into_iter().filter(|warning| warning.applies(ask, numbers)).collect()
    }
}
