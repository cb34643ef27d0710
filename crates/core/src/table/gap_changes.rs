//! What happens to the gap of one name: it opens with an ending, is settled, and closes with a grant.
//!
//! Releases and grants are what a table does most. Everything here works on the resource that the caller has looked up already, and a name is
//! copied only into what whoever counts is told.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::gaps::{Ends, Gap, Gaps, Outage, Surroundings, cooling, teller};
use super::resource::{Holder, Readiness, Resource, Standing};
use crate::answer::Applied;
use crate::gap::{GapCause, GapNote, GapPart};
use crate::id::Token;
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

impl Resource {
    /// Whether somebody other than this lease is known to act.
    pub(super) fn others_act(&self, token: Token) -> bool {
        self.holders.iter().any(|holder| holder.token != token && holder.acts())
    }

    /// The points of the leases that have ended, with the cool-down behind a revoke that is over at `at`, found or not.
    pub(super) fn ends_by(&self, ends: &Ends, at: LogTime) -> Ends {
        let cool_down = self.holders.iter().filter_map(|holder| match holder.standing {
            Standing::Revoked { until, delay, .. } if until < at => Some(cooling(until, delay)),
            Standing::Revoked { .. } | Standing::Held => None,
        });
        let cool_down = cool_down.filter(|_| self.kind.is_single()).max().unwrap_or(LogTime::ZERO);
        Ends { cool_down: ends.cool_down.max(cool_down), ..*ends }
    }

    pub(super) fn gaps_mut(&mut self) -> &mut Gaps {
        self.gaps.get_or_insert_with(Box::default)
    }

    /// Settles the open gap up to the present.
    pub(super) fn settle_gap(&mut self, around: &Surroundings<'_>, tell: &mut impl FnMut(GapPart)) {
        let Some(gaps) = self.gaps.as_deref().filter(|gaps| gaps.open.is_some()) else { return };
        let warming = self.holders.iter().any(Holder::is_warming);
        let ends = self.ends_by(&gaps.ends, around.at);
        let Some(gap) = self.gaps.as_mut().and_then(|gaps| gaps.open.as_mut()) else { return };
        if warming {
            gap.settle(around.outages, GapCause::WarmUp, around.at, tell);
        } else {
            gap.settle_before_grant(&ends, around, tell);
        }
    }

    /// Keeps the open gap as it is settled, if it has any length: `after` has ended it.
    pub(super) fn close_gap(&mut self, out: &mut Applied, name: &ResourceName, after: Token) {
        let Some(gaps) = self.gaps.as_mut() else { return };
        let Some(mut gap) = gaps.open.take() else { return };
        out.gaps.push(GapNote::Over { resource: name.clone() });
        if !gap.parts.is_empty() {
            gap.after = Some(after);
            gaps.keep(gap);
        }
    }

    pub(super) fn open_gap(&mut self, out: &mut Applied, name: &ResourceName, gap: Gap) {
        out.gaps.push(GapNote::Began { resource: name.clone(), from: gap.end });
        self.gaps_mut().open = Some(gap);
    }

    /// A lease is granted: a gap ends here, unless its holder says that it is not ready. Its place is not taken yet.
    pub(super) fn note_grant(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        around: &Surroundings<'_>,
    ) {
        if self.gaps.as_ref().is_some_and(|gaps| gaps.open.is_some()) {
            self.settle_gap(around, &mut teller(out, name));
            self.close_gap(out, name, token);
        }
        if let Some(gaps) = self.gaps.as_mut().filter(|_| self.holders.is_empty()) {
            // Whoever held it before holds it no more.
            gaps.ends.leeway = gaps.ends.leeway.map(|_| Millis::ZERO);
        }
    }

    /// A lease ends: if nobody else acts, a gap begins with its last sign of life. Its holder still has its place.
    pub(super) fn note_ending(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        ends: Ends,
        outages: &VecDeque<Outage>,
    ) {
        let warming = self.holder(token).is_some_and(Holder::is_warming);
        let others_act = self.others_act(token);
        let other_warming = self.holders.iter().find(|other| other.token != token && other.is_warming());
        let other_warming = other_warming.map(|other| other.token);
        let gaps = self.gaps_mut();
        gaps.ends.take(ends);
        if others_act {
            return;
        }
        if let Some(gap) = &mut gaps.open {
            if warming {
                gap.settle(outages, GapCause::WarmUp, ends.alive.0.at, &mut teller(out, name));
                gap.after = other_warming;
                if planted(Bug::GapEndsInWarmUp) {
                    self.close_gap(out, name, token);
                    self.open_gap(out, name, Gap::new(ends.alive.0, token, ends.leeway));
                }
            }
            return;
        }
        let (alive, last, leeway) = gaps.begin(gaps.ends);
        // A holder that came back and gave the lease up with the same breath did not act in between.
        let gave_back = ends.detection == LogTime::ZERO;
        let goes_on = gaps.past.back().is_some_and(|gap| {
            let came_back = gave_back && gap.before == token;
            let same = came_back || planted(Bug::GapGrantIsNoSign);
            same && gap.after == Some(token) && gap.end == alive.at
        });
        let gap = if goes_on { gaps.past.pop_back() } else { None };
        let mut gap = gap.unwrap_or_else(|| Gap::new(alive, last.unwrap_or(token), leeway));
        gap.after = other_warming;
        self.open_gap(out, name, gap);
    }
}

impl Holder {
    /// Whether this holder counts as acting.
    pub(super) fn acts(&self) -> bool {
        matches!(self.standing, Standing::Held) && !matches!(self.readiness, Readiness::WarmingUp)
    }
}
