//! What can be compared with what: the things of one clock exactly, and those of all clocks by their skew.

use crate::check::Knowledge;
use crate::names::Name;
use crate::story::{Grant, LineNumber, Look, Story, Write};
use crate::time::At;

/// Whose a thing is, for those who compare it with the things of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Where pairs of two clocks are compared, all things of a clock are its own.
    Clock(Name),
    /// Within one clock every thing stands for itself.
    Itself(LineNumber),
}

/// Things that can be compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    story: &'a Story,
    /// One clock, or the pairs of two clocks among all.
    clock: Option<Name>,
    slack: std::time::Duration,
}

impl Story {
    /// One for each clock, and one for the pairs of two clocks if those can be compared.
    pub(super) fn views(&self, knowledge: Knowledge) -> Vec<View<'_>> {
        let view = |clock, slack| View { story: self, clock, slack };
        let mut views: Vec<View<'_>> =
            self.every_clock().map(|clock| view(Some(clock), std::time::Duration::ZERO)).collect();
        if let Some(skew) = knowledge.skew.filter(|_| views.len() > 1) {
            views.push(view(None, skew));
        }
        views
    }
}

impl<'a> View<'a> {
    /// Whether one thing came before another for certain.
    pub(super) fn is_before(&self, one: At, other: At) -> bool {
        one.plus(self.slack) < other
    }

    /// Whose a thing is that this line of this clock tells of. Two are compared here only if they have different owners: pairs of one
    /// clock are judged in the view of that clock, and more exactly.
    pub(super) fn owner(&self, clock: Name, line: LineNumber) -> Owner {
        match self.clock {
            Some(_) => Owner::Itself(line),
            None => Owner::Clock(clock),
        }
    }

    pub(super) fn owner_of(&self, grant: &Grant) -> Owner {
        self.owner(grant.clock, grant.granted().line)
    }

    /// Whether a pair of these clocks is judged here.
    pub(super) fn judges(&self, one: Name, other: Name) -> bool {
        self.clock.is_some() || one != other
    }

    fn has(&self, clock: Name) -> bool {
        self.clock.is_none_or(|own| own == clock)
    }

    /// Grants, in the order in which clients were told.
    pub(super) fn grants(&self) -> Vec<&'a Grant> {
        let mut grants: Vec<&Grant> =
            self.story.grants.iter().filter(|grant| self.has(grant.clock)).collect();
        grants.sort_by_key(|grant| grant.granted().at);
        grants
    }

    /// Grants in groups of one resource each, each in the order in which clients were told.
    pub(super) fn resources(&self) -> Vec<Vec<&'a Grant>> {
        self.groups(|grant| grant.resource)
    }

    /// The same in groups of one family each: a resource and all its slots.
    pub(super) fn families(&self) -> Vec<Vec<&'a Grant>> {
        self.groups(|grant| grant.family)
    }

    fn groups(&self, of: impl Fn(&Grant) -> Name) -> Vec<Vec<&'a Grant>> {
        let mut grants: Vec<&Grant> =
            self.story.grants.iter().filter(|grant| self.has(grant.clock)).collect();
        grants.sort_by_key(|grant| (of(grant), grant.granted().at));
        grants.chunk_by(|one, other| of(one) == of(other)).map(<[&Grant]>::to_vec).collect()
    }

    pub(super) fn looks(&self) -> impl Iterator<Item = &'a Look> {
        let view = *self;
        self.story.looks.iter().filter(move |look| view.has(look.clock))
    }

    pub(super) fn writes(&self) -> Vec<&'a Write> {
        self.story.writes.iter().filter(|write| self.has(write.clock)).collect()
    }
}
