//! Looking at gaps. Outages are put in where they lie: log time stood still in them, so they are in no part. How long ago something was has
//! the outages since in it.
//!
//! Whoever looks says when that is: a table that nobody uses is given no entries, and a gap of it goes on all the same. Nothing is decided by it.

use alloc::vec::Vec;
use core::ops::Bound;

use super::LeaseTable;
use super::gaps::{Gap, Outage, Sign, Surroundings};
use super::resource::{Past, Resource};
use crate::gap::{GapCause, GapSide, GapView, NameGaps, OutageView};
use crate::id::Token;
use crate::name::ResourceName;
use crate::time::{LogTime, Millis};

/// Names that one page of gaps looks at: most have none, and renewals wait until the page is made.
pub const MAX_NAMES_SCANNED: usize = 4_096;

/// Gaps in one page, and those of the last name: each may name two holders and two reasons, and a page must fit a frame.
pub const MAX_GAPS_SHOWN: usize = 512;

impl LeaseTable {
    /// The gaps of one name that ended no longer before `at` than `last`, if the table knows it.
    pub fn gaps(&self, name: &ResourceName, last: Option<Millis>, at: LogTime) -> Option<NameGaps> {
        let resource = self.resources.get(name)?;
        let at = at.max(self.last_at);
        let mut gaps: Vec<GapView> = Vec::new();
        let mut untold = |_| ();
        if let Some(kept) = &resource.gaps {
            gaps.extend(kept.open.as_ref().map(|gap| {
                let mut gap = gap.clone();
                let around = Surroundings {
                    at,
                    restored: self.granting_after,
                    stopped: self.stopped_by(name).is_some(),
                    outages: &self.outages,
                };
                match gap.after {
                    Some(_) => gap.settle(around.outages, GapCause::WarmUp, at, &mut untold),
                    None => {
                        gap.settle_before_grant(&resource.ends_by(&kept.ends, at), &around, &mut untold);
                    }
                };
                self.view_gap(resource, &gap, None)
            }));
            let past = kept.past.iter().rev().map(|gap| (gap, self.ended_ago(gap, at)));
            let recent = past.filter(|(_, ago)| last.is_none_or(|last| *ago <= last));
            gaps.extend(recent.map(|(gap, ago)| self.view_gap(resource, gap, Some(ago))));
        }
        if let Some(last) = last {
            gaps.retain(|gap| gap.ended_ago.is_none_or(|ago| ago <= last));
        }
        let past = resource.history.iter().map(|past| self.ends_of(past)[0]);
        let present = resource.holders.iter().map(|holder| Sign::of_grant(holder, &self.outages));
        let now = self.now_at(at);
        let since = past.chain(present).min().unwrap_or(now);
        Some(NameGaps { resource: name.clone(), gaps, known_for: self.passed(since, now) })
    }

    /// The point at which somebody looks, behind all outages.
    fn now_at(&self, at: LogTime) -> Sign {
        Sign { at, ..self.now() }
    }

    /// The time outside between two points.
    pub(super) fn passed(&self, from: Sign, to: Sign) -> Millis {
        from.passed(to, &self.outages)
    }

    /// When a lease of the past was granted, and when it ended.
    pub(super) fn ends_of(&self, past: &Past) -> [Sign; 2] {
        let (granted, ended) = past.outages;
        let granted = Sign::behind(past.since, granted, &self.outages);
        [granted, Sign::behind(past.until, ended, &self.outages).max(granted)]
    }

    fn ended_ago(&self, gap: &Gap, at: LogTime) -> Millis {
        self.passed(Sign { at: gap.end, outages: gap.last_outage() }, self.now_at(at))
    }

    /// A page of names with gaps: at most `limit` of those that begin with `prefix`, behind `after`, and where to go on.
    pub fn gaps_page(
        &self,
        prefix: &str,
        after: Option<&ResourceName>,
        last: Option<Millis>,
        limit: usize,
        at: LogTime,
    ) -> (Vec<NameGaps>, Option<ResourceName>) {
        let first = ResourceName::new(prefix).ok();
        let from = match (after, &first) {
            (Some(after), Some(first)) if after < first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let names = self.resources.range((from.cloned(), Bound::Unbounded));
        let (mut page, mut views): (Vec<NameGaps>, usize) = (Vec::new(), 0);
        for (scanned, (name, _)) in
            names.take_while(|(name, _)| name.as_str().starts_with(prefix)).enumerate()
        {
            let of = self.gaps(name, last, at).filter(|of| !of.gaps.is_empty());
            views += of.as_ref().map_or(0, |of| of.gaps.len());
            page.extend(of);
            if page.len() >= limit || views >= MAX_GAPS_SHOWN || scanned + 1 >= MAX_NAMES_SCANNED {
                return (page, Some(name.clone()));
            }
        }
        (page, None)
    }

    /// When nobody led, newest first, as far as it is remembered.
    pub fn outages(&self, at: LogTime) -> Vec<OutageView> {
        let now = self.now_at(at.max(self.last_at));
        let view = |outage: &Outage| {
            let end = Sign { at: outage.at, outages: outage.number };
            OutageView { ended_ago: self.passed(end, now), length: outage.length }
        };
        self.outages.iter().rev().filter(|outage| !outage.led).map(view).collect()
    }

    /// Names on which nobody acts, though somebody did, with up to where their gaps are settled. It looks at every name: for whoever begins to count.
    pub fn open_gaps(&self) -> impl Iterator<Item = (&ResourceName, LogTime)> {
        self.resources.iter().filter_map(|(name, resource)| {
            let gap = resource.gaps.as_ref()?.open.as_ref()?;
            Some((name, gap.end))
        })
    }

    /// For how long nobody has acted on a name at `at`, though somebody did.
    pub fn gap_lasts(&self, name: &ResourceName, at: LogTime) -> Option<Millis> {
        let gap = self.resources.get(name)?.gaps.as_ref()?.open.as_ref()?;
        Some(self.ended_ago(gap, at).saturating_add(gap.length()))
    }

    fn view_gap(&self, resource: &Resource, gap: &Gap, ended_ago: Option<Millis>) -> GapView {
        GapView {
            began_ago: ended_ago.unwrap_or(Millis::ZERO).saturating_add(gap.length()),
            ended_ago,
            parts: gap.parts.clone(),
            leeway: gap.leeway,
            before: self.side(resource, gap.before),
            after: gap.after.map(|after| self.side(resource, after)),
        }
    }

    fn side(&self, resource: &Resource, token: Token) -> GapSide {
        let past = resource.history.iter().rev().find(|past| past.token == token);
        let present = resource.holder(token).and_then(|holder| self.sessions.get(&holder.session));
        let label = past.map(|past| &past.label).or_else(|| present.map(|session| &session.label));
        GapSide { token, label: label.cloned(), how: past.map(|past| past.how.clone()) }
    }
}
