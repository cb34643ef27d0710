//! Which inequality the measured figures break, and which number to change.

use core::fmt;
use core::time::Duration;

use crate::limits::LONGEST_MAX_TTL;
use crate::numbers::{Ask, MIN_RENEW_EVERY, MIN_ROUND_TRIP, Numbers, Schedule};
use crate::time::Millis;

/// What was measured; nothing where nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// The longest ordinary round trip: all but one in a thousand took no longer.
    pub round_trip: Option<Duration>,
    /// The longest time that the process stood still.
    pub pause: Option<Duration>,
    /// By how many parts per million somebody adjusts a clock.
    pub rate_ppm: Option<u64>,
}

impl Measured {
    /// The round trip as a bound: rounded up, and not below the shortest there is.
    pub fn round_trip_bound(&self) -> Option<Millis> {
        self.round_trip.map(|length| rounded_up(length).max(MIN_ROUND_TRIP))
    }

    /// The pause, rounded up.
    pub fn pause_bound(&self) -> Option<Millis> {
        self.pause.map(rounded_up)
    }
}

/// An inequality that does not hold for what was measured. It refuses nothing: the lease is still safe, but it may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// One lost request ends the lease: `second attempt + round trip < ttl - margin`.
    RoundTrip {
        /// As measured.
        round_trip: Millis,
        /// When the second attempt is made at the latest.
        second: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
        /// What to change.
        change: Change,
    },
    /// A pause at the worst moment ends the lease: `renewal interval + pause + round trip < ttl - margin`.
    Pause {
        /// As measured.
        pause: Millis,
        /// The renewal interval.
        renew_every: Millis,
        /// As measured, or the bound if it was not.
        round_trip: Millis,
        /// The left side.
        needed: Millis,
        /// The ttl.
        ttl: Millis,
        /// The margin.
        margin: Millis,
        /// The right side.
        usable: Millis,
        /// What to change.
        change: Change,
    },
    /// The clocks come further apart than the margin covers: `margin >= clock bound + in-flight bound`.
    ClockRate {
        /// As measured.
        ppm: u64,
        /// The ttl.
        ttl: Millis,
        /// That part of the ttl.
        clock_bound: Millis,
        /// The in-flight bound.
        in_flight: Millis,
        /// The right side.
        needed: Millis,
        /// The left side.
        margin: Millis,
    },
}

/// The number to change, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Renew so often.
    RenewEvery(Millis),
    /// Take this ttl.
    Ttl(Millis),
    /// No number helps.
    Nothing,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RenewEvery(interval) => write!(f, "renew every {interval}"),
            Self::Ttl(ttl) => write!(f, "raise the ttl to {ttl}"),
            Self::Nothing => write!(f, "no ttl is long enough for that: find out what takes so long"),
        }
    }
}

impl Broken {
    /// Every name there is, in the order of the kinds.
    pub const NAMES: [&'static str; 3] = ["round-trip", "pause", "clock-rate"];

    /// Which of them, from 0.
    pub const fn kind(&self) -> usize {
        match self {
            Self::RoundTrip { .. } => 0,
            Self::Pause { .. } => 1,
            Self::ClockRate { .. } => 2,
        }
    }

    /// In one word, for programs.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.kind()]
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundTrip { round_trip, second, needed, ttl, margin, usable, change } => write!(
                f,
                "round trips take up to {round_trip}, so one lost request may end the lease: second attempt + round trip = {second} + \
                 {round_trip} = {needed}, which is not below ttl - margin = {ttl} - {margin} = {usable}; {change}"
            ),
            Self::Pause { pause, renew_every, round_trip, needed, ttl, margin, usable, change } => write!(
                f,
                "the process stood still for up to {pause}, which may end the lease: renewal interval + pause + round trip = \
                 {renew_every} + {pause} + {round_trip} = {needed}, which is not below ttl - margin = {ttl} - {margin} = {usable}; {change}"
            ),
            Self::ClockRate { ppm, ttl, clock_bound, in_flight, needed, margin } => write!(
                f,
                "a clock is adjusted by {ppm} parts per million, which is {clock_bound} in a ttl of {ttl}: clock bound + in-flight bound = \
                 {clock_bound} + {in_flight} = {needed}, which is above the margin of {margin}; raise the margin to {needed}"
            ),
        }
    }
}

/// What the figures break of these numbers, at most one of each kind.
pub fn judge(numbers: &Numbers, measured: &Measured) -> impl Iterator<Item = Broken> {
    [round_trip(numbers, measured), pause(numbers, measured), clock_rate(numbers, measured)]
        .into_iter()
        .flatten()
}

fn round_trip(numbers: &Numbers, measured: &Measured) -> Option<Broken> {
    let round_trip = measured.round_trip_bound()?;
    let (ttl, margin, usable, second) =
        (numbers.ttl(), numbers.margin(), numbers.usable(), numbers.second_attempt());
    numbers.measured(round_trip, numbers.clock_bound()).check_availability().err()?;
    let needed = second.saturating_add(round_trip);
    let fitting = usable.get().saturating_sub(round_trip.get()).saturating_sub(1) / 2;
    let change = change(numbers, measured, Millis::new(fitting));
    Some(Broken::RoundTrip { round_trip, second, needed, ttl, margin, usable, change })
}

fn pause(numbers: &Numbers, measured: &Measured) -> Option<Broken> {
    let pause = measured.pause_bound()?;
    let round_trip = measured.round_trip_bound().unwrap_or(numbers.round_trip());
    let (ttl, margin, usable, renew_every) =
        (numbers.ttl(), numbers.margin(), numbers.usable(), numbers.renew_every());
    numbers.measured(round_trip, numbers.clock_bound()).check_pause(pause).err()?;
    let away = pause.saturating_add(round_trip);
    let needed = renew_every.saturating_add(away);
    let fitting = usable.get().saturating_sub(away.get()).saturating_sub(1);
    let change = change(numbers, measured, Millis::new(fitting));
    Some(Broken::Pause { pause, renew_every, round_trip, needed, ttl, margin, usable, change })
}

fn clock_rate(numbers: &Numbers, measured: &Measured) -> Option<Broken> {
    let ppm = measured.rate_ppm?;
    let (ttl, in_flight, margin) = (numbers.ttl(), numbers.in_flight(), numbers.margin());
    let lost = (u128::from(ttl.get()) * u128::from(ppm)).div_ceil(1_000_000);
    let clock_bound = Millis::new(u64::try_from(lost).unwrap_or(u64::MAX));
    let needed = clock_bound.saturating_add(in_flight);
    numbers.measured(numbers.round_trip(), clock_bound).check_safety().err()?;
    Some(Broken::ClockRate { ppm, ttl, clock_bound, in_flight, needed, margin })
}

/// To renew more often is cheaper than a longer ttl, as long as it is not a flood.
fn change(numbers: &Numbers, measured: &Measured, fitting: Millis) -> Change {
    let least = MIN_RENEW_EVERY.max(Millis::new(numbers.ttl().get() / 10));
    if numbers.schedule() != Schedule::Halves && fitting >= least {
        return Change::RenewEvery(fitting);
    }
    fitting_ttl(numbers, measured).map_or(Change::Nothing, Change::Ttl)
}

/// The shortest ttl, in round figures, that leaves room for all that was measured when the rest is left to the defaults.
fn fitting_ttl(numbers: &Numbers, measured: &Measured) -> Option<Millis> {
    let round_trip = measured.round_trip_bound().unwrap_or(numbers.round_trip());
    let fits = |ttl: Millis| {
        let ask = Ask {
            schedule: numbers.schedule(),
            in_flight: Some(numbers.in_flight()),
            round_trip: Some(round_trip),
            pause: measured.pause_bound(),
            drift: numbers.drift(),
            max_ttl: LONGEST_MAX_TTL,
            ..Ask::for_ttl(ttl)
        };
        Numbers::check(ask).is_ok()
    };
    let round = if numbers.ttl() < Millis::new(10_000) { 500 } else { 1_000 };
    let (mut short, mut long) = (numbers.ttl().get() / round, LONGEST_MAX_TTL.get() / round);
    if !fits(Millis::new(long * round)) {
        return None;
    }
    while long - short > 1 {
        let middle = short + (long - short) / 2;
        if fits(Millis::new(middle * round)) {
            long = middle;
        } else {
            short = middle;
        }
    }
    Some(Millis::new(long * round))
}

fn rounded_up(length: Duration) -> Millis {
    Millis::new(u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}
