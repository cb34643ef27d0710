//! What numbers come to before anybody uses them: both sides of every inequality, the gaps, the traffic, what a pause does.
//!
//! [`Numbers::check`] alone judges; a plan shows. It also shows the figures of numbers that are refused, because whoever is refused
//! wants to see by how much, and [`nearest`] finds the ones next to them that are not. A [`Warning`] refuses nothing.
//!
//! What it does not do: it measures nothing. The bytes of a renewal were measured once, see [`Traffic`].

mod nearest;
mod preset;
mod traffic;
mod warning;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use crate::command::Policies;
use crate::numbers::{Ask, Inequality, Numbers, NumbersError, Schedule};
use crate::time::{Drift, Millis};

pub use nearest::{Changed, FEWEST_PARTS, nearest};
pub use preset::{PRESETS, Preset};
pub use traffic::{BYTES_ALONE, BYTES_TOGETHER, Traffic};
pub use warning::{LONG_TTL, SHORT_TTL, Warning};

/// Everything that follows from an ask. A refused one has all figures too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What was asked for.
    pub ask: Ask,
    /// Whether the numbers are accepted, by [`Numbers::check`].
    pub verdict: Result<(), NumbersError>,
    /// How long the session lives after a renewal.
    pub ttl: Millis,
    /// When it is renewed.
    pub schedule: Schedule,
    /// The renewal interval.
    pub renew_every: Millis,
    /// The second attempt, counted from the last confirmed renewal.
    pub second_attempt: Millis,
    /// The round-trip bound.
    pub round_trip: Millis,
    /// How far the clocks may come apart within a ttl.
    pub clock_bound: Millis,
    /// How long a request may be on its way to a receiver.
    pub in_flight: Millis,
    /// What safety needs: clock bound + in-flight bound.
    pub guard: Millis,
    /// How long before the end of the ttl the holder stops.
    pub margin: Millis,
    /// How long a holder may act after a confirmed renewal was sent: ttl - margin. Its deadline.
    pub effective: Millis,
    /// When the service gives the session up: `ttl * (1 + drift) / (1 - drift)`.
    pub overdue: Millis,
    /// Safety.
    pub safety: Sides,
    /// Availability.
    pub availability: Sides,
    /// The same for a pause, if one was given.
    pub paused: Option<Sides>,
    /// What happens when the session is not renewed.
    pub policies: Policies,
    /// How long nobody acts at most.
    pub gaps: Gaps,
    /// What standing still does.
    pub pauses: Pauses,
    /// All leases in as few sessions as can be.
    pub coalesced: Traffic,
    /// A session for each lease.
    pub separate: Traffic,
    /// What is allowed and not wise.
    pub warnings: Vec<Warning>,
}

/// An inequality with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// Which.
    pub which: Inequality,
    /// The left side.
    pub left: Millis,
    /// The right side.
    pub right: Millis,
    /// Whether it holds.
    pub holds: bool,
}

impl Sides {
    /// How much it has to spare; nothing if it does not hold, or only just.
    pub const fn spare(&self) -> Millis {
        let (more, less) = match self.which {
            Inequality::Safety => (self.left, self.right),
            Inequality::Availability | Inequality::Pause => (self.right, self.left),
        };
        Millis::new(more.get().saturating_sub(less.get()))
    }
}

/// How long nobody acts at most, while the service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// The holder lets go and somebody waits in line: the word to the service and the word to the next.
    pub planned: Millis,
    /// The same where others only ask now and then, every renewal interval.
    pub planned_polling: Millis,
    /// The holder dies just after a renewal and somebody waits in line: overdue, grace, delay, and a round trip to tell.
    pub unplanned: Millis,
    /// The same where others only ask now and then, every renewal interval.
    pub unplanned_polling: Millis,
}

/// What standing still does, if it begins at the worst moment: when a renewal was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// The longest that nobody notices: the next renewal is answered before the deadline. Nothing if even none at all is too long.
    pub unnoticed: Option<Millis>,
    /// The longest after which the lease is still there: the holder stopped at its deadline and goes on with the same token.
    pub returns: Option<Millis>,
    /// The one that was asked about, and what it does.
    pub asked: Option<(Millis, PauseEffect)>,
}

/// What one pause does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseEffect {
    /// Nothing: the next renewal is answered in time.
    Unnoticed,
    /// The holder's deadline passes; the service still has the lease, and a renewal brings it back.
    Lapses,
    /// Another may hold the lease meanwhile: only the token keeps the old holder out.
    Lost,
}

impl PauseEffect {
    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unnoticed => "unnoticed",
            Self::Lapses => "lapses",
            Self::Lost => "lost",
        }
    }
}

impl Plan {
    /// Everything that follows from an ask, for so many leases under these policies.
    pub fn of(ask: Ask, leases: u64, policies: Policies) -> Self {
        let numbers = Numbers::filled(&ask);
        let (renew_every, round_trip) = (numbers.renew_every(), numbers.round_trip());
        let overdue = stretched(ask.drift, ask.ttl);
        let traffic = |sessions, bytes| Traffic::of(sessions, renew_every, ask.schedule, bytes);
        Self {
            ask,
            verdict: Numbers::check(ask).map(drop),
            ttl: ask.ttl,
            schedule: ask.schedule,
            renew_every,
            second_attempt: numbers.second_attempt(),
            round_trip,
            clock_bound: numbers.clock_bound(),
            in_flight: numbers.in_flight(),
            guard: numbers.guard(),
            margin: numbers.margin(),
            effective: numbers.usable(),
            overdue,
            safety: safety(&numbers),
            availability: within(
                Inequality::Availability,
                &numbers,
                numbers.second_attempt().saturating_add(round_trip),
            ),
            paused: ask.pause.map(|pause| {
                let left = renew_every.saturating_add(pause).saturating_add(round_trip);
                within(Inequality::Pause, &numbers, left)
            }),
            policies,
            gaps: Gaps::of(&numbers, overdue, policies),
            pauses: Pauses::of(&numbers, policies, ask.pause),
            coalesced: traffic(traffic::sessions_for(leases), BYTES_ALONE),
            separate: traffic(leases, BYTES_TOGETHER),
            warnings: Warning::of(&ask, &numbers),
        }
    }

    /// Whether the numbers are accepted.
    pub const fn is_accepted(&self) -> bool {
        self.verdict.is_ok()
    }
}

fn safety(numbers: &Numbers) -> Sides {
    let (left, right) = (numbers.margin(), numbers.guard());
    Sides { which: Inequality::Safety, left, right, holds: left >= right }
}

/// One of those that have to be over before the deadline.
fn within(which: Inequality, numbers: &Numbers, left: Millis) -> Sides {
    let right = numbers.usable();
    Sides { which, left, right, holds: left < right }
}

/// A refused ttl may be of any length, so this does not overflow.
fn stretched(drift: Drift, ttl: Millis) -> Millis {
    // The factor is three at most.
    if ttl.get() > u64::MAX / 3 { Millis::new(u64::MAX) } else { drift.stretch(ttl) }
}

impl Gaps {
    fn of(numbers: &Numbers, overdue: Millis, policies: Policies) -> Self {
        let planned = numbers.round_trip();
        let unplanned =
            overdue.saturating_add(policies.grace).saturating_add(policies.delay).saturating_add(planned);
        Self {
            planned,
            planned_polling: planned.saturating_add(numbers.renew_every()),
            unplanned,
            unplanned_polling: unplanned.saturating_add(numbers.renew_every()),
        }
    }
}

impl Pauses {
    fn of(numbers: &Numbers, policies: Policies, asked: Option<Millis>) -> Self {
        let behind = numbers.renew_every().saturating_add(numbers.round_trip()).get();
        // Strictly before the deadline; of the service's patience only the ttl is counted, because its clock may be the fast one.
        let unnoticed = numbers.usable().get().checked_sub(behind.saturating_add(1)).map(Millis::new);
        let kept = numbers.ttl().saturating_add(policies.grace).get();
        let returns = kept.checked_sub(behind).map(Millis::new);
        let effect = |pause: Millis| match (unnoticed, returns) {
            (Some(unnoticed), _) if pause <= unnoticed => PauseEffect::Unnoticed,
            (_, Some(returns)) if pause <= returns => PauseEffect::Lapses,
            _ => PauseEffect::Lost,
        };
        Self { unnoticed, returns, asked: asked.map(|pause| (pause, effect(pause))) }
    }
}
