//! Checkers: pure functions over a story, one promise in each file, each tried on a planted violation.
//!
//! Every checker compares pairs. A pair of one clock is compared as it stands. A pair of two clocks is compared only if somebody said
//! how far clocks are apart at most, and one thing comes before another only if it does by more than that.

pub mod claims;
pub mod exclusion;
pub mod kept;
mod overlap;
pub mod queue;
pub mod renewals;
pub mod tokens;
mod top;
mod view;
pub mod writes;

use std::borrow::Cow;
use std::time::Duration;

use crate::story::{Grant, LineNumber, Moment, Story};
use crate::time::At;

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Its name in tables.
    pub name: &'static str,
    /// What holds.
    pub about: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// The same, for one of them.
    pub one: &'static str,
}

/// What a checker found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was checked.
    pub check: Check,
    /// How many things were judged: a checker that judged nothing says nothing.
    pub judged: u64,
    /// How many violations there are.
    pub found: u64,
    /// The first of them; see [`KEPT`].
    pub violations: Vec<Violation>,
}

/// Violations that a verdict keeps; all are counted. A history that is wrong everywhere is wrong for one reason.
pub const KEPT: usize = 1000;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// In words, with tokens and times.
    pub words: String,
    /// The lines that say so, in order.
    pub lines: Vec<LineNumber>,
}

impl Verdict {
    pub(crate) const fn new(check: Check) -> Self {
        Self { check, judged: 0, found: 0, violations: Vec::new() }
    }

    /// Whether nothing is wrong.
    pub const fn is_good(&self) -> bool {
        self.found == 0
    }

    pub(crate) fn add(&mut self, words: impl FnOnce() -> String, lines: &[Option<LineNumber>]) {
        self.found += 1;
        if self.violations.len() < KEPT {
            let mut lines: Vec<LineNumber> = lines.iter().copied().flatten().collect();
            lines.sort_unstable();
            lines.dedup();
            self.violations.push(Violation { words: words(), lines });
        }
    }
}

/// What is known of a run beside its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Knowledge {
    /// Readings of two clocks at one moment differ by this at most; without it they are not compared.
    pub skew: Option<Duration>,
}

/// All checkers.
pub fn all(story: &Story, knowledge: Knowledge) -> Vec<Verdict> {
    vec![
        exclusion::check(story, knowledge),
        tokens::check(story, knowledge),
        renewals::check(story, knowledge),
        kept::check(story, knowledge),
        claims::check(story),
        queue::check(story, knowledge),
        writes::check(story, knowledge),
    ]
}

/// The line of a moment, if there is one.
fn line(moment: Option<Moment>) -> Option<LineNumber> {
    moment.map(|moment| moment.line)
}

/// What two rivals hold: mostly the same.
fn names<'a>(story: &'a Story, one: &Grant, other: &Grant) -> Cow<'a, str> {
    let [first, second] = [one, other].map(|grant| story.resource(grant.resource));
    if first == second { first.into() } else { format!("{first} and {second}").into() }
}

/// How much later, for people.
fn later(end: At, from: At) -> String {
    format!("{:?}", end.since(from))
}
