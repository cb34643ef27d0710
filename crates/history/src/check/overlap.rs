//! Which times of rivals overlap, found in the order of time and not pair by pair.
//!
//! Two overlap for certain if each begins before the other ends, by more than the slack of the view. So whatever overlaps with
//! something is among those that begin before it ends, and if any of these does, the one that reaches furthest does.

use std::collections::HashMap;

use crate::check::top::Top;
use crate::check::view::{Owner, View};
use crate::names::Name;
use crate::story::{Grant, LineNumber};
use crate::time::At;

/// A time that belongs to a grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) from: At,
    pub(super) until: At,
    pub(super) grant: &'a Grant,
    /// The line that reaches so far.
    pub(super) line: LineNumber,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Overlaps<'a> {
    /// How many have a rival before them.
    pub(super) judged: u64,
    /// Of each time that overlaps with others, it and the one of them that reaches furthest; the one that begins first comes first.
    pub(super) pairs: Vec<(Span<'a>, Span<'a>)>,
}

/// Finds them among the times of one family.
pub(super) fn find<'a>(view: View<'_>, mut spans: Vec<Span<'a>>) -> Overlaps<'a> {
    spans.sort_by_key(|span| span.from);
    let mut by_end: Vec<usize> = (0..spans.len()).collect();
    by_end.sort_by_key(|place| spans[*place].until);
    let (mut judged, mut pairs) = (0, Vec::new());
    let mut reaches = Reaches::default();
    let mut begun = 0;
    for place in by_end {
        let span = spans[place];
        while let Some(next) = spans.get(begun).filter(|next| view.is_before(next.from, span.until)) {
            judged += u64::from(reaches.furthest_rival(view, next).is_some());
            reaches.take(view, next, begun);
            begun += 1;
        }
        if let Some((until, other)) = reaches.furthest_rival(view, &span)
            && view.is_before(span.from, until)
        {
            pairs.push((place.max(other), place.min(other)));
        }
    }
    // Those that begin so late that nobody has to be compared with them were judged by that.
    for (place, next) in spans.iter().enumerate().skip(begun) {
        judged += u64::from(reaches.furthest_rival(view, next).is_some());
        reaches.take(view, next, place);
    }
    // Two that overlap may each be what the other finds.
    pairs.sort_unstable();
    pairs.dedup();
    Overlaps {
        judged,
        pairs: pairs.into_iter().map(|(second, first)| (spans[first], spans[second])).collect(),
    }
}

/// Of leases that do not share, and of those that do.
type Kinds = [Top<At, Owner, usize>; 2];

/// What reaches furthest, of all that can be a rival to something.
#[derive(Debug, Default)]
struct Reaches {
    all: Kinds,
    without_slot: Kinds,
    slots: HashMap<Name, Kinds>,
}

impl Reaches {
    fn take(&mut self, view: View<'_>, span: &Span<'_>, place: usize) {
        let Span { until, grant, .. } = *span;
        let own = match grant.is_in_slot() {
            true => self.slots.entry(grant.resource).or_default(),
            false => &mut self.without_slot,
        };
        for kinds in [&mut self.all, own] {
            kinds[usize::from(grant.shared)].take(until, view.owner_of(grant), place);
        }
    }

    fn furthest_rival(&self, view: View<'_>, span: &Span<'_>) -> Option<(At, usize)> {
        let grant = span.grant;
        let among: [Option<&Kinds>; 2] = match grant.is_in_slot() {
            true => [Some(&self.without_slot), self.slots.get(&grant.resource)],
            false => [Some(&self.all), None],
        };
        let kinds = if grant.shared { 1 } else { 2 };
        let tops = among.into_iter().flatten().flat_map(|of| &of[..kinds]);
        tops.filter_map(|top| top.beside(view.owner_of(grant))).max_by_key(|(until, _)| *until)
    }
}
