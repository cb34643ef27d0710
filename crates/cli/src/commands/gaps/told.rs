//! What is to be told: gaps, cut to the window and added up.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::core::Millis;
use leasehold::core::gap::{GapCause, GapView, NameGaps};
use leasehold::{Ending, ResourceName};

/// One part of a gap, between two points that lie so long back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) cause: GapCause,
    pub(super) from: Duration,
    pub(super) to: Duration,
}

/// One gap.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) view: GapView,
    pub(super) began_ago: Duration,
    /// Nothing while it lasts.
    pub(super) ended_ago: Option<Duration>,
    /// It was let go of, and until somebody asked nobody did: a job that is idle on purpose looks like this.
    pub(super) idle: bool,
}

/// The gaps of one name in a window.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) resource: ResourceName,
    /// Newest first.
    pub(super) gaps: Vec<Told>,
    /// How much of the window is known.
    pub(super) known: Duration,
    pub(super) sums: Sums,
}

/// What gaps come to within a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sums {
    causes: BTreeMap<GapCause, Duration>,
    /// All causes together, of idle gaps alone.
    pub(super) idle: Duration,
    pub(super) longest: Duration,
}

impl Told {
    pub(super) fn new(view: GapView) -> Self {
        let ended_ago = view.ended_ago.map(Millis::duration);
        let began_ago = view.began_ago.duration();
        let idle = is_idle(&view);
        Self { view, began_ago, ended_ago, idle }
    }

    pub(super) fn length(&self) -> Duration {
        self.view.length().duration()
    }

    /// Its parts in the order of time.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let mut from = self.began_ago;
        let mut pieces = Vec::new();
        for part in &self.view.parts {
            let to = from.saturating_sub(part.length.duration());
            pieces.push(Piece { cause: part.cause, from, to });
            from = to;
        }
        pieces
    }
}

impl Named {
    pub(super) fn new(view: NameGaps, window: Duration) -> Self {
        let known = view.known_for.duration().min(window);
        let gaps: Vec<Told> = view.gaps.into_iter().map(Told::new).collect();
        let sums = Sums::of(&gaps, window);
        Self { resource: view.resource, gaps, known, sums }
    }

    /// Whether nobody acts on it now for another reason than that it was let go of.
    pub(super) fn is_missed(&self) -> bool {
        self.lasting().is_some_and(|gap| !gap.idle)
    }

    /// The gap that lasts.
    pub(super) fn lasting(&self) -> Option<&Told> {
        self.gaps.first().filter(|gap| gap.ended_ago.is_none())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.gaps.iter().all(|gap| gap.idle)
    }

    /// Gaps that are not idle and at least so long.
    pub(super) fn that_matter(&self, min: Duration) -> impl Iterator<Item = &Told> {
        self.gaps.iter().filter(move |gap| !gap.idle && gap.length() >= min)
    }

    /// A length in millionths of what is known of the window.
    pub(super) fn share(&self, length: Duration) -> u64 {
        let known = self.known.max(self.sums.leaderless()).as_millis().max(1);
        u64::try_from(length.as_millis() * 1_000_000 / known).unwrap_or(1_000_000)
    }
}

impl Sums {
    pub(super) fn of(gaps: &[Told], window: Duration) -> Self {
        let mut sums = Self::default();
        for gap in gaps {
            let mut length = Duration::ZERO;
            for piece in gap.pieces() {
                let inside = piece.from.min(window).saturating_sub(piece.to);
                *sums.causes.entry(piece.cause).or_default() += inside;
                length += inside;
            }
            sums.longest = sums.longest.max(length);
            sums.idle += if gap.idle { length } else { Duration::ZERO };
        }
        sums
    }

    /// All causes together.
    pub(super) fn leaderless(&self) -> Duration {
        self.causes.values().sum()
    }

    /// Without gaps that are idle.
    pub(super) fn needed(&self) -> Duration {
        self.leaderless().saturating_sub(self.idle)
    }

    /// The causes that took any time, those that took most first.
    pub(super) fn by_cause(&self) -> Vec<(GapCause, Duration)> {
        let mut causes: Vec<(GapCause, Duration)> =
            self.causes.clone().into_iter().filter(|(_, length)| !length.is_zero()).collect();
        causes.sort_by_key(|(cause, length)| (std::cmp::Reverse(*length), *cause));
        causes
    }
}

fn is_idle(view: &GapView) -> bool {
    let let_go = !matches!(
        view.before.how,
        Some(
            Ending::Expired
                | Ending::Taken { .. }
                | Ending::Revoked { .. }
                | Ending::Rebooted
                | Ending::Restored
        )
    );
    let only = |cause| matches!(cause, GapCause::Queue | GapCause::Outage);
    let_go
        && view.parts.iter().any(|part| part.cause == GapCause::Queue)
        && view.parts.iter().all(|part| only(part.cause))
}
