//! The numbers next to refused ones that are accepted.
//!
//! What somebody knows about their world is left alone: round trip, drift, clock bound, in-flight bound, pause, how long stopping
//! takes, the longest ttl. What they choose may change, and in this order: the renewal interval comes down, the margin goes up to what
//! safety needs, the ttl goes up. Whether something fits is asked of [`Numbers::check`], every time, and of nobody else.

use alloc::vec::Vec;

use crate::limits::MIN_TTL;
use crate::numbers::{Ask, MIN_RENEW_EVERY, MIN_ROUND_TRIP, Numbers, Schedule};
use crate::time::Millis;

/// Renewing more often than ten times a ttl is a flood that a longer ttl spares; it is proposed only where no ttl would do.
pub const FEWEST_PARTS: u64 = 10;

/// A number that is not what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The ttl.
    Ttl(Millis),
    /// The renewal interval, or that it was left out.
    RenewEvery(Option<Millis>),
    /// The margin.
    Margin(Millis),
    /// The round-trip bound, which must not be nothing.
    RoundTrip(Millis),
    /// The schedule.
    Schedule(Schedule),
}

/// The accepted numbers next to these, and what is different; these themselves if they are accepted. Nothing if no ttl up to the
/// longest would do.
pub fn nearest(ask: Ask) -> Option<(Ask, Vec<Changed>)> {
    let found = if accepted(&ask) { Some(ask) } else { search(ask) }?;
    Some((found, differences(&ask, &found)))
}

fn accepted(ask: &Ask) -> bool {
    Numbers::check(*ask).is_ok()
}

fn search(ask: Ask) -> Option<Ask> {
    let mut start = ask;
    // Clamped by hand: a store whose longest ttl lies below the shortest takes nothing at all.
    start.ttl = ask.ttl.min(ask.max_ttl).max(MIN_TTL);
    start.round_trip = ask.round_trip.map(|bound| bound.max(MIN_ROUND_TRIP));
    start.renew_every = match ask.schedule {
        Schedule::Halves => None,
        Schedule::Even | Schedule::Fixed => ask.renew_every.map(|every| every.max(MIN_RENEW_EVERY)),
    };
    let evenly = Ask { schedule: Schedule::Even, ..start };
    let longest = Ask { ttl: ask.max_ttl.max(MIN_TTL), ..evenly };
    let least_margin = Ask { margin: Some(Millis::ZERO), ..longest };
    at_its_ttl(start, FEWEST_PARTS)
        .or_else(|| with_longer_ttl(start, safe))
        .or_else(|| with_longer_ttl(start, |ask| at_its_ttl(ask, FEWEST_PARTS)))
        .or_else(|| with_longer_ttl(evenly, |ask| at_its_ttl(ask, FEWEST_PARTS)))
        // Only a flood fits. The longest ttl leaves most room, so it needs the fewest renewals.
        .or_else(|| at_its_ttl(longest, u64::MAX))
        .or_else(|| at_its_ttl(least_margin, u64::MAX))
}

/// With this ttl: the margin as safety needs it, and then the longest renewal interval that fits, at least one of so many parts.
fn at_its_ttl(ask: Ask, parts: u64) -> Option<Ask> {
    let unchanged = raise_margin(ask);
    if accepted(&unchanged) {
        return Some(unchanged);
    }
    if ask.schedule == Schedule::Halves {
        return None;
    }
    let with = |every: u64| Ask { renew_every: Some(Millis::new(every)), ..unchanged };
    let least = (ask.ttl.get() / parts).max(MIN_RENEW_EVERY.get());
    // The longer the interval the less fits, in each of the inequalities.
    let most = Numbers::filled(&ask).renew_every().get();
    last_that(least, most, |every| accepted(&with(every))).map(with)
}

/// With this ttl, and at most another margin.
fn safe(ask: Ask) -> Option<Ask> {
    Some(raise_margin(ask)).filter(accepted)
}

/// The shortest longer ttl with which `fit` finds something.
fn with_longer_ttl(ask: Ask, fit: impl Fn(Ask) -> Option<Ask>) -> Option<Ask> {
    let with = |ttl: u64| fit(Ask { ttl: Millis::new(ttl), ..ask });
    let (mut low, mut high) = (ask.ttl.get(), ask.max_ttl.get());
    let mut found = with(high)?;
    // Rounding may make one millisecond fit less than the one before it, so the shortest is meant, not promised; accepted it is.
    while low < high {
        let middle = low + (high - low) / 2;
        match with(middle) {
            Some(fitting) => (found, high) = (fitting, middle),
            None => low = middle + 1,
        }
    }
    Some(found)
}

fn raise_margin(ask: Ask) -> Ask {
    let needed = Numbers::filled(&ask).guard();
    Ask { margin: ask.margin.map(|margin| margin.max(needed)), ..ask }
}

/// The greatest number between these for which `fits` holds, if it holds for the first at all.
fn last_that(first: u64, last: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    if first > last || !fits(first) {
        return None;
    }
    let (mut low, mut high) = (first, last);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    Some(low)
}

fn differences(asked: &Ask, found: &Ask) -> Vec<Changed> {
    let numbers = Numbers::filled(found);
    let mut changed = Vec::new();
    if asked.schedule != found.schedule {
        changed.push(Changed::Schedule(found.schedule));
    }
    if asked.ttl != found.ttl {
        changed.push(Changed::Ttl(found.ttl));
    }
    if asked.renew_every != found.renew_every {
        changed.push(Changed::RenewEvery(found.renew_every));
    }
    if asked.margin != found.margin {
        changed.push(Changed::Margin(numbers.margin()));
    }
    if asked.round_trip != found.round_trip {
        changed.push(Changed::RoundTrip(numbers.round_trip()));
    }
    changed
}
