//! The five numbers of a lease: ttl, renewal interval, clock bound, round-trip bound and margin.
//!
//! [`Numbers::check`] is the only place where they are checked against each other. Two inequalities hold for every value that it
//! gives back: the safety of the holder (`margin >= clock bound + in-flight bound`) and its availability when one request is
//! lost (`second attempt + round trip < ttl - margin`; twice the renewal interval is the second attempt of an even schedule). Who
//! says how long their process may stand still gets a third: `renewal interval + pause + round trip < ttl - margin`. An error shows
//! both sides in figures and says what to change.
//!
//! What it does not do: it measures nothing and trusts what it is told. A bound that is too small is safe only as far as the
//! drift factor of the service and the fence of the receiver reach.

mod error;

use crate::limits::MIN_TTL;
use crate::planted::{Bug, planted};
use crate::time::{Drift, Millis};

pub use error::{Inequality, NumbersError};

/// The ttl of whoever does not ask for another.
pub const DEFAULT_TTL: Millis = Millis::new(10_000);
/// Trusted until round trips were measured: a slow data centre, or a fast continent.
pub const DEFAULT_ROUND_TRIP: Millis = Millis::new(100);
/// Shortest margin by default: one delay of an ordinary scheduler under load.
pub const MIN_DEFAULT_MARGIN: Millis = Millis::new(50);
/// Shortest renewal interval: more often is a flood and buys nothing at the shortest ttl.
pub const MIN_RENEW_EVERY: Millis = Millis::new(10);
/// Shortest round-trip bound: the request timeout is made from it and must not be zero.
pub const MIN_ROUND_TRIP: Millis = Millis::new(1);

/// When a session is renewed, and when again if no answer came. All lengths count from the last confirmed sending; an unanswered
/// request is in fact repeated sooner, after its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Every interval, shortened at random by up to a fifth, so that sessions that began together do not stay together.
    #[default]
    Even,
    /// Every interval, to the millisecond. For those who must know when; many such sessions should not begin together.
    Fixed,
    /// As DHCP does: at half of the ttl, and at seven eighths of it through another node. Fewer renewals for longer ttls.
    Halves,
}

impl Schedule {
    /// What people call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Fixed => "fixed",
            Self::Halves => "halves",
        }
    }
}

/// What somebody asks for. Whatever is left open gets its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// How long the session lives after a renewal.
    pub ttl: Millis,
    /// How often it is renewed; a third of the ttl by default.
    pub renew_every: Option<Millis>,
    /// When it is renewed, and when again if that was in vain.
    pub schedule: Schedule,
    /// How long before the end of the ttl the holder stops; see [`Numbers::check`] for the default.
    pub margin: Option<Millis>,
    /// How far the clocks of holder and service may come apart within one ttl; drift times ttl by default.
    pub clock_bound: Option<Millis>,
    /// The longest ordinary round trip; [`DEFAULT_ROUND_TRIP`] by default.
    pub round_trip: Option<Millis>,
    /// How long a request of the holder may be on its way to a receiver; nothing by default, because the fence covers it.
    pub in_flight: Option<Millis>,
    /// How long work under a lease needs to stop at most, if it is to be told in time; nothing by default.
    pub stop_within: Option<Millis>,
    /// How long the holder's process may stand still and still keep its lease; not judged by default.
    pub pause: Option<Millis>,
    /// The greatest rate error of any clock.
    pub drift: Drift,
    /// The longest ttl that the service takes.
    pub max_ttl: Millis,
}

impl Ask {
    /// Asks for a ttl and leaves all else to the defaults.
    pub const fn for_ttl(ttl: Millis) -> Self {
        Self {
            ttl,
            renew_every: None,
            schedule: Schedule::Even,
            margin: None,
            clock_bound: None,
            round_trip: None,
            in_flight: None,
            stop_within: None,
            pause: None,
            drift: Drift::DEFAULT,
            max_ttl: crate::limits::DEFAULT_MAX_TTL,
        }
    }
}

/// Numbers that fit together. Only [`Numbers::check`] makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    ttl: Millis,
    schedule: Schedule,
    renew_every: Millis,
    margin: Millis,
    clock_bound: Millis,
    round_trip: Millis,
    in_flight: Millis,
    stop_within: Millis,
    drift: Drift,
}

impl Numbers {
    /// Fills in the defaults and checks everything.
    ///
    /// The default margin is the greatest of a tenth of the ttl, 50 ms, and clock bound + in-flight bound.
    ///
    /// # Errors
    /// When the ttl is outside its limits, or one of the inequalities does not hold.
    pub fn check(ask: Ask) -> Result<Self, NumbersError> {
        let ttl = ask.ttl;
        if ttl < MIN_TTL {
            return Err(NumbersError::TtlTooShort { ttl, min: MIN_TTL });
        }
        if ttl > ask.max_ttl {
            return Err(NumbersError::TtlTooLong { ttl, max: ask.max_ttl });
        }
        if let (Schedule::Halves, Some(renew_every)) = (ask.schedule, ask.renew_every) {
            return Err(NumbersError::IntervalNotFree { renew_every });
        }
        let numbers = Self::filled(&ask);
        for (what, length, min) in [
            ("renewal interval", numbers.renew_every, MIN_RENEW_EVERY),
            ("round-trip bound", numbers.round_trip, MIN_ROUND_TRIP),
        ] {
            if length < min {
                return Err(NumbersError::TooShort { what, length, min });
            }
        }
        numbers.check_safety()?;
        numbers.check_availability()?;
        if let Some(stop_within) = ask.stop_within {
            numbers.check_stop_within(stop_within)?;
        }
        if let Some(pause) = ask.pause {
            numbers.check_pause(pause)?;
        }
        Ok(numbers)
    }

    /// What was asked for with the defaults filled in, judged by nobody: a plan also shows figures that are refused.
    pub(crate) fn filled(ask: &Ask) -> Self {
        let ttl = ask.ttl;
        let renew_every = match (ask.schedule, ask.renew_every) {
            (Schedule::Halves, _) => Millis::new(ttl.get() / 2),
            (Schedule::Even | Schedule::Fixed, Some(renew_every)) => renew_every,
            (Schedule::Even | Schedule::Fixed, None) => Millis::new(ttl.get() / 3),
        };
        let clock_bound = ask.clock_bound.unwrap_or(share_of(ttl, ask.drift));
        let in_flight = ask.in_flight.unwrap_or(Millis::ZERO);
        let needed = clock_bound.saturating_add(in_flight);
        Self {
            ttl,
            schedule: ask.schedule,
            renew_every,
            margin: ask.margin.unwrap_or_else(|| default_margin(ttl, needed)),
            clock_bound,
            round_trip: ask.round_trip.unwrap_or(DEFAULT_ROUND_TRIP),
            in_flight,
            stop_within: ask.stop_within.unwrap_or(Millis::ZERO),
            drift: ask.drift,
        }
    }

    /// The same numbers with figures that were measured in place of the bounds. Nothing is judged by this.
    pub(crate) const fn measured(&self, round_trip: Millis, clock_bound: Millis) -> Self {
        Self { round_trip, clock_bound, ..*self }
    }

    pub(crate) fn check_safety(&self) -> Result<(), NumbersError> {
        let Self { ttl, margin, clock_bound, in_flight, .. } = *self;
        let needed = if planted(Bug::StrictNumbers) { ttl } else { self.guard() };
        if margin < needed {
            return Err(NumbersError::Unsafe { margin, clock_bound, in_flight, needed });
        }
        Ok(())
    }

    pub(crate) fn check_availability(&self) -> Result<(), NumbersError> {
        let Self { ttl, renew_every, margin, round_trip, .. } = *self;
        let second = self.second_attempt();
        let needed = second.saturating_add(round_trip);
        let usable = self.usable();
        if needed < usable {
            return Ok(());
        }
        if self.schedule == Schedule::Halves {
            return Err(NumbersError::SecondTooLate { second, round_trip, needed, ttl, margin, usable });
        }
        // The longest interval for which twice itself and the round trip stay strictly below the usable part.
        let fitting = Millis::new(usable.get().saturating_sub(round_trip.get()).saturating_sub(1) / 2);
        Err(if fitting >= MIN_RENEW_EVERY {
            NumbersError::RenewsTooSeldom { renew_every, round_trip, needed, ttl, margin, usable, fitting }
        } else {
            NumbersError::NoRoomToRenew { renew_every, round_trip, needed, ttl, margin, usable }
        })
    }

    /// How long work under a lease needs to stop at most.
    pub const fn stop_within(&self) -> Millis {
        self.stop_within
    }

    /// Whether work that takes up to `stop_within` to stop can be told in time, and is not told because of one lost request.
    ///
    /// # Errors
    /// When one lost request already leaves less than that before the deadline.
    pub fn check_stop_within(&self, stop_within: Millis) -> Result<(), NumbersError> {
        let Self { ttl, margin, round_trip, .. } = *self;
        let second = self.second_attempt();
        let behind = second.saturating_add(round_trip);
        let left = Millis::new(self.usable().get().saturating_sub(behind.get()));
        if stop_within < left {
            return Ok(());
        }
        Err(NumbersError::StopsTooSlowly { stop_within, ttl, margin, second, round_trip, left })
    }

    /// Whether a process that stands still for up to `pause` keeps its lease. A pause begins at the worst moment, when a renewal was
    /// due; what is sent after it must be answered before the deadline.
    ///
    /// # Errors
    /// When the answer may come too late.
    pub fn check_pause(&self, pause: Millis) -> Result<(), NumbersError> {
        let Self { ttl, margin, renew_every, round_trip, .. } = *self;
        let needed = renew_every.saturating_add(pause).saturating_add(round_trip);
        let usable = self.usable();
        if needed < usable {
            return Ok(());
        }
        Err(NumbersError::PauseTooLong { pause, renew_every, round_trip, needed, ttl, margin, usable })
    }

    /// How long the session lives after a renewal.
    pub const fn ttl(&self) -> Millis {
        self.ttl
    }

    /// When it is renewed, and when again if that was in vain.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// When a renewal that stays unanswered is tried again at the latest, counted from the last confirmed one.
    pub const fn second_attempt(&self) -> Millis {
        match self.schedule {
            Schedule::Even | Schedule::Fixed => self.renew_every.saturating_add(self.renew_every),
            Schedule::Halves => Millis::new(self.ttl.get() - self.ttl.get() / 8),
        }
    }

    /// How often it is renewed, unless the service wishes for another time within the safe window.
    pub const fn renew_every(&self) -> Millis {
        self.renew_every
    }

    /// How long before the end of the ttl the holder stops.
    pub const fn margin(&self) -> Millis {
        self.margin
    }

    /// How far the clocks may come apart within one ttl.
    pub const fn clock_bound(&self) -> Millis {
        self.clock_bound
    }

    /// What safety needs: clock bound + in-flight bound. The margin is never below it.
    pub const fn guard(&self) -> Millis {
        self.clock_bound.saturating_add(self.in_flight)
    }

    /// The longest ordinary round trip.
    pub const fn round_trip(&self) -> Millis {
        self.round_trip
    }

    /// How long a request of the holder may be on its way to a receiver.
    pub const fn in_flight(&self) -> Millis {
        self.in_flight
    }

    /// The greatest rate error that these numbers were made for.
    pub const fn drift(&self) -> Drift {
        self.drift
    }

    /// How long a holder believes after the sending of a confirmed renewal: ttl - margin.
    pub const fn usable(&self) -> Millis {
        Millis::new(self.ttl.get().saturating_sub(self.margin.get()))
    }

    /// After this long without an answer a request is sent again: the smaller of half the renewal interval and four round trips.
    pub fn request_timeout(&self) -> Millis {
        Millis::new((self.renew_every.get() / 2).min(self.round_trip.get().saturating_mul(4)))
    }

    /// The latest renewal, counted from the last confirmed one, that leaves room for a second attempt and for work to be stopped.
    pub fn latest_renewal(&self) -> Millis {
        let between = self.second_attempt().get().saturating_sub(self.renew_every.get());
        let behind = between.max(self.stop_within.get()).saturating_add(self.round_trip.get());
        Millis::new(self.usable().get().saturating_sub(behind))
    }
}

fn default_margin(ttl: Millis, needed: Millis) -> Millis {
    Millis::new(ttl.get() / 10).max(MIN_DEFAULT_MARGIN).max(needed)
}

/// The part of a length that a clock with this rate error can lose, rounded up.
fn share_of(length: Millis, drift: Drift) -> Millis {
    let lost = (u128::from(length.get()) * u128::from(drift.ppm())).div_ceil(1_000_000);
    Millis::new(u64::try_from(lost).expect("a drift is at most half, so the share is below the length"))
}

#[cfg(test)]
mod tests;
