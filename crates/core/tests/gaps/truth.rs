//! What is true of the gaps of a day, written down from the incidents that were chosen and from nothing else.
//!
//! A gap is known as two points and the causes between them. A point is a log time and an event: log time stands still in an outage, so only
//! the order of events says on which side of a point an outage lies. In numbers a point is the time outside, in which outages pass.

use std::fmt::Write;

use leasehold_core::Token;
use leasehold_core::gap::{GapCause, GapView};

/// Parts of one gap that are told apart (`docs/reference/limits.md`): later ones are added to the last of the same cause.
const MOST_PARTS: usize = 16;

/// Which event of the day.
pub(crate) type Mark = usize;
/// Which grant of the day.
pub(crate) type GrantId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) at: u64,
    pub(crate) mark: Mark,
}

/// One gap of one name, as the incident has it.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub(crate) name: usize,
    pub(crate) words: String,
    pub(crate) from: Point,
    pub(crate) to: Point,
    /// Each cause with the log time up to which it is the reason, rising.
    pub(crate) causes: Vec<(GapCause, u64)>,
    pub(crate) before: GrantId,
    pub(crate) after: GrantId,
}

/// A holder that acted: from its grant to its last sign of life.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) name: usize,
    pub(crate) grant: GrantId,
    pub(crate) ttl: u64,
    pub(crate) from: Mark,
    pub(crate) to: Mark,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blackout {
    pub(crate) mark: Mark,
    pub(crate) at: u64,
    pub(crate) length: Option<u64>,
}

/// A gap in numbers, by the time outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) parts: Vec<(GapCause, u64)>,
    pub(crate) before: Token,
    pub(crate) after: Option<Token>,
}

impl Known {
    /// What the table shows to whoever looks at this time outside.
    pub(crate) fn shown(view: &GapView, at: u64) -> Self {
        Self {
            from: at - view.began_ago.get(),
            to: at - view.ended_ago.map_or(0, leasehold_core::Millis::get),
            parts: view.parts.iter().map(|part| (part.cause, part.length.get())).collect(),
            before: view.before.token,
            after: view.after.as_ref().map(|side| side.token),
        }
    }

    pub(crate) fn words(&self) -> String {
        let length: u64 = self.parts.iter().map(|(_, length)| length).sum();
        let number = |token: Token| format!("t{}.{}", token.epoch(), token.get() & 0xffff_ffff_ffff);
        let after = self.after.map_or("nobody".to_owned(), number);
        let mut words =
            format!("{} to {}, {length} ms, {} to {after}:", self.from, self.to, number(self.before));
        for (cause, length) in &self.parts {
            write!(words, " {} {length}", cause.word()).expect("text can be written");
        }
        words
    }
}

/// The order of events in the log: their places, by mark.
pub(crate) struct Order {
    pub(crate) place: Vec<usize>,
    pub(crate) token: Vec<Token>,
    pub(crate) blackouts: Vec<Blackout>,
}

impl Order {
    fn inside(&self, blackout: &Blackout, from: Mark, to: Mark) -> bool {
        let place = self.place[blackout.mark];
        self.place[from] < place && place < self.place[to]
    }

    /// The time in outages whose places are so.
    fn dark(&self, is_so: impl Fn(usize) -> bool) -> u64 {
        let lengths = self.blackouts.iter().filter(|blackout| is_so(self.place[blackout.mark]));
        lengths.filter_map(|blackout| blackout.length).sum()
    }

    /// The time outside at a log time, behind everything up to a place.
    pub(crate) fn outside(&self, at: u64, place: usize) -> u64 {
        at + self.dark(|dark| dark <= place)
    }

    fn outside_at(&self, point: Point) -> u64 {
        point.at + self.dark(|dark| dark < self.place[point.mark])
    }

    /// The gap in numbers, with the outages that lie in it; nothing if it has no length.
    pub(crate) fn known(&self, truth: &Truth) -> Option<Known> {
        let inside = |blackout: &&Blackout| self.inside(blackout, truth.from.mark, truth.to.mark);
        let mut blackouts = self.blackouts.iter().filter(inside).peekable();
        let (mut parts, mut reached) = (Vec::new(), truth.from.at);
        for (cause, until) in truth.causes.iter().map(|(cause, until)| (*cause, (*until).min(truth.to.at))) {
            while let Some(blackout) = blackouts.next_if(|blackout| blackout.at <= until.max(reached)) {
                add(&mut parts, cause, blackout.at.max(reached) - reached);
                reached = reached.max(blackout.at);
                add_outage(&mut parts, blackout.length.unwrap_or(0));
            }
            add(&mut parts, cause, until.saturating_sub(reached));
            reached = reached.max(until);
        }
        assert_eq!(reached, truth.to.at, "the causes of {truth:?} do not reach its end");
        for blackout in blackouts {
            add_outage(&mut parts, blackout.length.unwrap_or(0));
        }
        (!parts.is_empty()).then(|| Known {
            from: self.outside_at(truth.from),
            to: self.outside_at(truth.to),
            parts,
            before: self.token[truth.before],
            after: Some(self.token[truth.after]),
        })
    }

    /// Outages in which a holder must have lapsed, though it went on afterwards: those longer than its ttl that lie in no gap.
    pub(crate) fn lapses<'a>(
        &'a self,
        term: &'a Term,
        truths: &'a [Truth],
    ) -> impl Iterator<Item = (usize, Known)> + 'a {
        let long = |blackout: &&Blackout| blackout.length.is_some_and(|length| length > term.ttl);
        let alone = |blackout: &&Blackout| {
            let mut of_name = truths.iter().filter(|truth| truth.name == term.name);
            self.inside(blackout, term.from, term.to)
                && !of_name.any(|truth| self.inside(blackout, truth.from.mark, truth.to.mark))
        };
        self.blackouts.iter().filter(long).filter(alone).map(|blackout| {
            let token = self.token[term.grant];
            let length = blackout.length.unwrap_or(0);
            let parts = vec![(GapCause::Outage, length)];
            let to = self.outside(blackout.at, self.place[blackout.mark]);
            let from = to - length;
            (self.place[blackout.mark], Known { from, to, parts, before: token, after: Some(token) })
        })
    }
}

fn add(parts: &mut Vec<(GapCause, u64)>, cause: GapCause, length: u64) {
    if length > 0 {
        join(parts, cause, length);
    }
}

/// An outage counts even if nobody knows how long it was.
fn add_outage(parts: &mut Vec<(GapCause, u64)>, length: u64) {
    join(parts, GapCause::Outage, length);
}

fn join(parts: &mut Vec<(GapCause, u64)>, cause: GapCause, length: u64) {
    let full = parts.len() >= MOST_PARTS;
    match parts.iter().rposition(|part| part.0 == cause) {
        Some(place) if full || place + 1 == parts.len() => parts[place].1 += length,
        _ => parts.push((cause, length)),
    }
}
