//! Gaps: how long nobody acted on a name, and why.
//!
//! Everything is computed from points that sessions and operators decided (last sign of life, overdue, end of grace, of a revoke, of a
//! cool-down), never from the entry that happened to find something over: tables that differ in when they were tidied show the same
//! gaps. Nothing here decides a grant or an ending, and nothing is kept before the log is of a version that counts gaps.
//!
//! What it does not see: with several places (slots), that nobody acted while a dead holder had one of them and another was granted.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use super::resource::{Holder, Kind, Standing};
use super::session::Session;
use crate::answer::{Applied, Ending};
use crate::command::Policies;
use crate::gap::{GapCause, GapNote, GapPart};
use crate::id::{AttachNumber, SessionId, Token};
use crate::limits::{MAX_GAP_PARTS, MAX_GAPS, MAX_OUTAGE, MAX_OUTAGES};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::{Drift, LogTime, Millis};

/// What is kept of the gaps of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gaps {
    pub(super) ends: Ends,
    pub(super) open: Option<Gap>,
    /// Oldest first.
    pub(super) past: VecDeque<Gap>,
}

/// What is known of the leases that have ended: each point is the latest of all of them, so the order in which endings are found does
/// not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ends {
    /// The last sign of life, and of which lease.
    pub(super) alive: (Sign, Option<Token>),
    /// For how long behind it a holder may have acted, unless the log was too old to count that. Behind the table in a snapshot.
    #[serde(skip)]
    pub(super) leeway: Option<Millis>,
    pub(super) detection: LogTime,
    pub(super) grace: LogTime,
    pub(super) revoke: LogTime,
    pub(super) cool_down: LogTime,
}

/// A sign of life. Log time stands still in an outage, so the number of outages before it tells which of two equal points came first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Sign {
    pub(super) at: LogTime,
    pub(super) outages: u32,
}

/// One gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gap {
    pub(super) from: LogTime,
    /// Up to where it is settled.
    pub(super) end: LogTime,
    /// Up to which outage.
    outages: u32,
    /// The lease that ended last before it.
    pub(super) before: Token,
    pub(super) parts: Vec<GapPart>,
    /// Who ended it, or is warming up.
    pub(super) after: Option<Token>,
    /// For how long from its beginning the holder before it may have acted, unless the log was too old to count that. Behind the table in a
    /// snapshot.
    #[serde(skip)]
    pub(super) leeway: Option<Millis>,
}

/// A time that is missing in log time, because nobody led or nothing was stamped: it lies at a point, because log time stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outage {
    /// Counted from one.
    pub(super) number: u32,
    pub(super) at: LogTime,
    pub(super) length: Option<Millis>,
    /// Somebody led: it is no outage, and belongs to whatever went on. Behind the table in a snapshot.
    #[serde(skip)]
    pub(super) led: bool,
}

/// What settling a gap needs to know of the whole table.
pub(super) struct Surroundings<'a> {
    pub(super) at: LogTime,
    /// Nothing is granted up to this point.
    pub(super) restored: Option<LogTime>,
    /// An alarm keeps the name from everybody.
    pub(super) stopped: bool,
    pub(super) outages: &'a VecDeque<Outage>,
}

impl Gaps {
    /// Keeps a gap that is over.
    pub(super) fn keep(&mut self, gap: Gap) {
        self.past.push_back(gap);
        while self.past.len() > MAX_GAPS {
            self.past.pop_front();
        }
    }

    /// Where a gap begins behind these endings, and behind all that is told already: a holder that lapsed may have said since then that it
    /// is ready.
    pub(super) fn begin(&self, ends: Ends) -> (Sign, Option<Token>, Option<Millis>) {
        let told =
            self.past.back().map_or_else(Sign::default, |gap| Sign { at: gap.end, outages: gap.outages });
        let from = ends.alive.0.max(told);
        (from, ends.alive.1, ends.leeway_from(from.at))
    }

    /// What stands behind them in a snapshot.
    pub(super) fn leeways(&self) -> impl Iterator<Item = Option<Millis>> {
        let gaps = self.past.iter().chain(&self.open).map(|gap| gap.leeway);
        core::iter::once(self.ends.leeway).chain(gaps)
    }

    pub(super) fn leeways_mut(&mut self) -> impl Iterator<Item = &mut Option<Millis>> {
        let gaps = self.past.iter_mut().chain(&mut self.open).map(|gap| &mut gap.leeway);
        core::iter::once(&mut self.ends.leeway).chain(gaps)
    }

    /// Whether a snapshot of the point `now` can have had it: bounded, no gap beyond the present, and nothing beyond `latest`.
    pub(super) fn is_whole(&self, now: LogTime, latest: LogTime) -> bool {
        let Ends { alive, detection, grace, revoke, cool_down, leeway: _ } = self.ends;
        let whole = |gap: &Gap| {
            gap.from <= gap.end
                && gap.end <= now
                && gap.parts.len() <= MAX_GAP_PARTS + GapCause::ALL.len()
                && gap.parts.iter().all(|part| part.length <= Millis::new(latest.get()))
        };
        alive.0.at <= now
            && [detection, grace, revoke, cool_down].iter().all(|point| *point <= latest)
            && self.past.len() <= MAX_GAPS
            && self.past.iter().chain(&self.open).all(whole)
    }
}

impl Gap {
    pub(super) fn new(from: Sign, before: Token, leeway: Option<Millis>) -> Self {
        let outages = from.outages.saturating_sub(u32::from(planted(Bug::GapOutageTwice)));
        Self { from: from.at, end: from.at, outages, before, parts: Vec::new(), after: None, leeway }
    }

    /// All that is settled.
    pub(super) fn length(&self) -> Millis {
        self.parts.iter().fold(Millis::ZERO, |sum, part| sum.saturating_add(part.length))
    }

    /// The last outage that is in it, or before it.
    pub(super) fn last_outage(&self) -> u32 {
        self.outages
    }

    /// Settles it up to `until`, with the outages on the way, and tells what was added. Nothing is added for a point that lies behind.
    pub(super) fn settle(
        &mut self,
        outages: &VecDeque<Outage>,
        cause: GapCause,
        until: LogTime,
        tell: &mut impl FnMut(GapPart),
    ) {
        if until < self.end {
            return;
        }
        if outages.back().is_some_and(|last| last.number > self.outages) {
            let from = outages.partition_point(|outage| outage.number <= self.outages);
            for outage in outages.range(from..).take_while(|outage| outage.at <= until) {
                self.add(cause, outage.at, tell);
                self.outages = outage.number;
                let cause = if outage.led { cause } else { GapCause::Outage };
                let part = GapPart { cause, length: outage.length.unwrap_or(Millis::ZERO) };
                self.push(part);
                tell(part);
            }
        }
        self.add(cause, until, tell);
    }

    fn add(&mut self, cause: GapCause, until: LogTime, tell: &mut impl FnMut(GapPart)) {
        let part = GapPart { cause, length: until.since(self.end) };
        self.end = self.end.max(until);
        if part.length > Millis::ZERO {
            self.push(part);
            tell(part);
        }
    }

    fn push(&mut self, part: GapPart) {
        let full = self.parts.len() >= MAX_GAP_PARTS;
        let last = self.parts.len().saturating_sub(1);
        let same = self.parts.iter().rposition(|other| other.cause == part.cause);
        match same.filter(|place| full || *place == last) {
            Some(place) => self.parts[place].length = self.parts[place].length.saturating_add(part.length),
            None => self.parts.push(part),
        }
    }

    /// Settles what comes before the next grant, up to the present.
    pub(super) fn settle_before_grant(
        &mut self,
        ends: &Ends,
        around: &Surroundings<'_>,
        tell: &mut impl FnMut(GapPart),
    ) {
        if around.at <= self.end && around.outages.back().is_none_or(|last| last.number <= self.outages) {
            // A lease that was given back a moment ago: it is settled up to the present.
            return;
        }
        let restore = if planted(Bug::GapRestoreAsQueue) { GapCause::Queue } else { GapCause::Restore };
        let points = [
            (GapCause::Detection, ends.detection),
            (GapCause::Grace, ends.grace),
            (GapCause::Revoke, ends.revoke),
            (GapCause::CoolDown, ends.cool_down),
            (restore, around.restored.unwrap_or(LogTime::ZERO)),
            (if around.stopped { GapCause::Alarm } else { GapCause::Queue }, around.at),
        ];
        for (cause, until) in points {
            self.settle(around.outages, cause, until.min(around.at), tell);
        }
    }
}

impl Ends {
    /// The later of each point.
    pub(super) fn take(&mut self, other: Self) {
        let last = self.alive.max(other.alive);
        self.leeway = self.leeway_from(last.0.at).max(other.leeway_from(last.0.at));
        self.alive = last;
        self.detection = self.detection.max(other.detection);
        self.grace = self.grace.max(other.grace);
        self.revoke = self.revoke.max(other.revoke);
        self.cool_down = self.cool_down.max(other.cool_down);
    }
}

impl Sign {
    /// The grant of a lease among the signs of life: it came behind the outages before it.
    pub(super) fn of_grant(holder: &Holder, outages: &VecDeque<Outage>) -> Self {
        Self::behind(holder.since, holder.outages, outages)
    }

    /// The time outside between two points: log time, and the outages in which it stood still, as far as they are remembered.
    pub(super) fn passed(self, to: Self, outages: &VecDeque<Outage>) -> Millis {
        let first = outages.partition_point(|outage| outage.number <= self.outages);
        let between = outages.range(first..).take_while(|outage| outage.number <= to.outages);
        between.fold(to.at.since(self.at), |sum, outage| {
            sum.saturating_add(outage.length.unwrap_or(Millis::ZERO))
        })
    }

    /// A point behind all outages of earlier points, and behind so many if it is at the same point as the last of them.
    pub(super) fn behind(at: LogTime, known: u32, outages: &VecDeque<Outage>) -> Self {
        let earlier = outages.partition_point(|outage| outage.at < at);
        let earlier = match earlier.checked_sub(1) {
            Some(last) => outages[last].number,
            None => outages.front().map_or(0, |first| first.number.saturating_sub(1)),
        };
        Self { at, outages: earlier.max(known) }
    }
}

/// The moment at which a lease is looked at.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) now: Sign,
    pub(super) drift: Drift,
    pub(super) outages: &'a VecDeque<Outage>,
    pub(super) two_lengths: bool,
}

impl Ends {
    /// The points of a lease that ends now in this way.
    pub(super) fn of_lease(
        (kind, holder, session): (Kind, &Holder, &Session),
        how: &Ending,
        moment: Moment<'_>,
    ) -> Self {
        let Moment { now, drift, outages, two_lengths } = moment;
        let (at, overdue) = (now.at, session.overdue_after(drift));
        let lapsed = matches!(how, Ending::Expired | Ending::Taken { .. });
        let silent = session.last_sign().max(Sign::of_grant(holder, outages));
        // Only a holder that can have acted until now was there until now.
        let left = how.is_voluntary() && at <= overdue && !session.was_away(now, outages);
        let mut ends = Self::default();
        if lapsed || at > overdue {
            ends.detection = overdue;
            if kind.is_single() {
                let Policies { grace, hard, .. } = session.policies;
                ends.grace = overdue.plus(if planted(Bug::GapAllGrace) { hard } else { grace });
                let from = if planted(Bug::GapCoolsFromDiscovery) { at.max(ends.grace) } else { ends.grace };
                ends.cool_down = cooling(from, session.policies.delay);
            }
        } else if !left {
            ends.detection = at;
        }
        if !lapsed {
            // Whatever else ended it, from here on its place is kept from nobody for its sake.
            ends.grace = ends.grace.min(at);
            ends.cool_down = ends.cool_down.min(at);
        }
        let revoked = matches!(how, Ending::Revoked { .. }) && planted(Bug::GapFromRevoke);
        let from_overdue = planted(Bug::GapFromOverdue) && (lapsed || at > overdue);
        let alive = match (left || revoked, from_overdue) {
            (true, _) => now,
            (false, true) => Sign { at: overdue, ..silent },
            (false, false) => silent,
        };
        ends.alive = (alive, Some(holder.token));
        let leeway = if left { Millis::ZERO } else { overdue.since(alive.at) };
        ends.leeway = two_lengths.then_some(leeway);
        ends
    }

    /// For how long behind a point a holder may have acted.
    pub(super) fn leeway_from(&self, at: LogTime) -> Option<Millis> {
        Some(self.leeway?.saturating_sub(at.since(self.alive.0.at)))
    }
}

impl LeaseTable {
    /// The present among the signs of life.
    pub(super) fn now(&self) -> Sign {
        Sign { at: self.last_at, outages: self.outages.back().map_or(0, |outage| outage.number) }
    }

    /// The session showed that it is there.
    pub(super) fn hear(&mut self, id: SessionId) {
        let (now, drift) = (self.now(), self.config.drift);
        if self.counts_gaps()
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.hear(now, drift, &self.outages);
        }
    }

    /// The connection of a session has ended: its process may have.
    pub(super) fn detached(&mut self, id: SessionId, attach: AttachNumber) {
        let of_now = |session: &Session| {
            session.attach == attach || (planted(Bug::GapOlderConnection) && session.attach > attach)
        };
        if self.sessions.get(&id).is_some_and(of_now) && !planted(Bug::GapIgnoresHangUp) {
            self.hear(id);
        }
    }

    /// How many outages there have been, if the last of them was at this point of log time.
    pub(super) fn outages_right_now(&self) -> u32 {
        self.outages.back().filter(|outage| outage.at == self.last_at).map_or(0, |outage| outage.number)
    }

    /// Log time stood still for so long.
    pub(super) fn stood_still(&mut self, out: &mut Applied, length: Option<Millis>, led: bool) {
        if !self.counts_gaps() {
            return;
        }
        let length = length.map(|length| length.min(MAX_OUTAGE));
        let number = self.now().outages.saturating_add(1);
        self.outages.push_back(Outage { number, at: self.last_at, length, led });
        while self.outages.len() > MAX_OUTAGES {
            self.outages.pop_front();
        }
        if !led {
            out.gaps.push(GapNote::Outage { length });
        }
    }

    /// Settles the open gap of a name up to the present.
    pub(super) fn settle_gap(&mut self, out: &mut Applied, name: &ResourceName) {
        let stopped = self.stopped_by(name).is_some();
        let around =
            Surroundings { at: self.last_at, restored: self.granting_after, stopped, outages: &self.outages };
        if let Some(resource) = self.resources.get_mut(name) {
            resource.settle_gap(&around, &mut teller(out, name));
        }
    }

    /// A place is kept from everybody for `delay` from `from` on: a part of the gap where that is the only place.
    pub(super) fn note_cool_down(&mut self, name: &ResourceName, from: LogTime, delay: Millis) {
        self.raise(name, |ends| ends.cool_down = ends.cool_down.max(cooling(from, delay)));
    }

    /// The holder of a revoked lease may act until this point.
    pub(super) fn note_held_back(&mut self, name: &ResourceName, until: LogTime) {
        self.raise(name, |ends| ends.revoke = ends.revoke.max(until));
    }

    /// The place of a revoked lease was given up before that point: what is left of the others counts.
    pub(super) fn note_acknowledged(&mut self, name: &ResourceName) {
        let at = self.last_at;
        let Some(resource) = self.resources.get(name) else { return };
        let until = resource.holders.iter().filter_map(|holder| match holder.standing {
            Standing::Revoked { until, .. } => Some(until),
            Standing::Held => None,
        });
        let left = until.max().unwrap_or(at).max(at);
        if !planted(Bug::GapRevokeNotCut) {
            self.raise(name, |ends| ends.revoke = ends.revoke.min(left));
        }
    }

    fn raise(&mut self, name: &ResourceName, change: impl FnOnce(&mut Ends)) {
        if self.counts_gaps()
            && let Some(resource) = self.resources.get_mut(name).filter(|resource| resource.kind.is_single())
        {
            change(&mut resource.gaps_mut().ends);
        }
    }

    /// Everything ends and nothing is granted for a while: gaps that last already are settled up to here.
    pub(super) fn note_restore(&mut self, out: &mut Applied) {
        let names: Vec<ResourceName> = self.open_gaps().map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.settle_gap(out, name));
    }

    /// A session has come back with its leases, and its own clock had let go of them. Its last renewal is still the one before.
    pub(super) fn note_return(&mut self, out: &mut Applied, id: SessionId) {
        if !self.counts_gaps() {
            return;
        }
        let (now, drift, outages) = (self.now(), self.config.drift, &self.outages);
        let moment = Moment { now, drift, outages, two_lengths: self.gaps_have_two_lengths() };
        let around = Surroundings { at: now.at, restored: None, stopped: false, outages };
        let session = &self.sessions[&id];
        for (name, token) in session.leases.keys() {
            let Some(resource) = self.resources.get_mut(name) else { continue };
            let Some(holder) = resource.holder(*token).filter(|holder| holder.acts()) else { continue };
            // A lease that it was granted since then did not lapse.
            let granted = Sign::of_grant(holder, outages);
            if resource.others_act(*token) || !session.was_away_since(granted, now, outages) {
                continue;
            }
            // Had it not come back, this is how its lease would have ended.
            let ends = Ends::of_lease((resource.kind, holder, session), &Ending::Expired, moment);
            let gaps = resource.gaps_mut();
            let mut both = gaps.ends;
            both.take(ends);
            let (alive, last, leeway) = gaps.begin(if planted(Bug::GapBeforeRelease) { ends } else { both });
            resource.open_gap(out, name, Gap::new(alive, last.unwrap_or(*token), leeway));
            if let Some(gap) = &mut resource.gaps_mut().open {
                gap.settle_before_grant(&ends, &around, &mut teller(out, name));
            }
            resource.close_gap(out, name, *token);
        }
    }
}

pub(super) fn cooling(from: LogTime, delay: Millis) -> LogTime {
    if delay > Millis::ZERO { from.plus(delay) } else { LogTime::ZERO }
}

/// Tells whoever counts what is added to the gap of a name.
pub(super) fn teller<'a>(out: &'a mut Applied, name: &'a ResourceName) -> impl FnMut(GapPart) + 'a {
    |part| out.gaps.push(GapNote::Part { resource: name.clone(), part })
}
