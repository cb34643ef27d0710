//! Checkers: what must be true of every run, one invariant per file, named by its id.
//!
//! A checker reads the [`Record`] of a run and the [`Story`] that replaying its committed logs tells. It never
//! guesses: where the order of two things is open it takes the one in which nothing is wrong, and what the promises do not cover
//! (clocks beyond the bound, files rolled back, restores told wrongly) is [excused](excuse). So a violation reported is one. Every
//! checker is tested on a made-up history that is bad and on one near it that is good.
//!
//! Not checked here, because a simulated history cannot show it:
//! - I16 (wall clocks): there are none in the simulated world.
//! - I17 (rights): there is no door in the simulated world; the service's own tests have it.
//! - I18 (bounds of memory, files and descriptors): nothing in the simulated world costs any.
//! - How long the 100,000 expiries of L7 compute: a simulated node computes in no time. Only that no entry and no turn is wasted is checked.
//! - The second half of I9 (the fence is durable before the first effect): simulated receivers do not crash.
//! - Linearizability is searched for exclusive leases; shared ones, slots and units are compared with the model only.

pub mod deadline;
pub mod excuse;
pub mod gaps;
pub mod i01;
pub mod i02;
pub mod i03;
pub mod i04;
pub mod i05;
pub mod i06;
pub mod i07;
pub mod i08;
pub mod i09;
pub mod i10;
pub mod i11;
pub mod i12;
pub mod i13;
pub mod i14;
pub mod i15;
pub mod l1;
pub mod l2;
pub mod l3;
pub mod l4;
pub mod l5;
pub mod l6;
pub mod l7;
pub mod linear;
pub mod model;
pub mod numbers;
mod points;
pub mod running;
pub mod sometimes;
pub mod story;
pub mod unfenced;
pub mod windows;

#[cfg(test)]
mod stage;

use std::fmt;

use leasehold_core::SessionId;

use crate::record::{Record, TrueTime};
use excuse::Excuses;
use sometimes::Sometimes;
use story::Story;

/// Violations of one checker that are kept: the first ones say what is wrong.
const MAX_PER_CHECKER: usize = 20;

/// Which invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// Exclusion.
    I1,
    /// Token order.
    I2,
    /// Grant durability.
    I3,
    /// Renewal honoured.
    I4,
    /// No resurrection.
    I5,
    /// Owner-only release.
    I6,
    /// Queue honesty.
    I7,
    /// Exactly-once requests.
    I8,
    /// Fenced receivers.
    I9,
    /// Reads.
    I10,
    /// Events.
    I11,
    /// Determinism.
    I12,
    /// Durability.
    I13,
    /// Integrity.
    I14,
    /// Definite errors.
    I15,
    /// A leader soon.
    L1,
    /// The next waiter soon.
    L2,
    /// The leases of the dead end.
    L3,
    /// The living keep theirs.
    L4,
    /// Every request ends.
    L5,
    /// Everything recovers.
    L6,
    /// What is due at once ends without a pause.
    L7,
    /// A deadline counts from a sending that was confirmed.
    Deadline,
    /// Gaps are told as a stopwatch has them.
    Gaps,
    /// Numbered calls of plain sessions are taken once, and none becomes a ghost.
    Numbers,
    /// Unfenced receivers, within the assumptions.
    Unfenced,
    /// Replies are those of the model.
    Model,
    /// Histories of one resource have an order.
    Linear,
}

/// Something that must not have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What it violates.
    pub id: Id,
    /// When it showed.
    pub at: TrueTime,
    /// A sentence.
    pub what: String,
}

impl Violation {
    /// A violation.
    pub fn new(id: Id, at: TrueTime, what: impl Into<String>) -> Self {
        Self { id, at, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:.6} s: {}", self.id, self.at.0 as f64 / 1e9, self.what)
    }
}

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Everything but what is slow.
    Quick,
    /// Also the naive table and the search for an order.
    Full,
}

/// What the checkers found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What must not have happened, in the order of the checkers.
    pub violations: Vec<Violation>,
    /// Situations that were reached, as far as the record shows them.
    pub sometimes: Sometimes,
    /// Violations that are no wonder: an operator had told a restore what was not so, or a node that was rolled back had broken the log
    /// apart.
    pub excused: u64,
    /// Windows that were too wide to search for an order.
    pub windows_not_judged: u64,
}

/// Everything that a checker reads.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// What was recorded.
    pub record: &'a Record,
    /// What the logs say.
    pub story: &'a Story<'a>,
    /// What is not covered.
    pub excuses: &'a Excuses,
}

impl Run<'_> {
    /// From here on no fault excuses anything: faults have stopped, and the time to recover is over.
    pub fn healthy(&self) -> Option<TrueTime> {
        self.excuses.stopped.map(|stopped| stopped.plus(self.record.bounds.recovery))
    }

    /// Whether the client of a session lives and is not through with it: then it must hear what becomes of its requests.
    pub fn waits_for_news(&self, session: SessionId) -> bool {
        self.story.sessions.get(&session).is_some_and(|session| {
            session.client.is_some() && session.died.is_none() && session.client_over.is_none()
        })
    }
}

/// A checker.
type Checker = fn(Run<'_>) -> Vec<Violation>;

/// Those that are quick, in the order of their ids.
const CHECKERS: [Checker; 26] = [
    i01::check,
    i02::check,
    i03::check,
    i04::check,
    i05::check,
    i06::check,
    i07::check,
    i08::check,
    i09::check,
    i10::check,
    i11::check,
    i12::check,
    i13::check,
    i14::check,
    i15::check,
    l1::check,
    l2::check,
    l3::check,
    l4::check,
    l5::check,
    l6::check,
    l7::check,
    deadline::check,
    gaps::check,
    numbers::check,
    unfenced::check,
];

/// Checks a run.
pub fn check(record: &Record, depth: Depth) -> Report {
    let story = Story::of(record);
    let excuses = Excuses::of(record);
    let run = Run { record, story: &story, excuses: &excuses };
    let mut report = Report { violations: story.broken.clone(), ..Report::default() };
    for checker in CHECKERS {
        report.keep(checker(run));
    }
    report.keep(model::check_replies(run));
    if depth == Depth::Full {
        report.keep(model::check_naive(run));
        let searched = linear::check(run);
        report.windows_not_judged = searched.not_judged;
        report.keep(searched.violations);
    }
    if let Some(from) = excuses.told_wrongly {
        report.excuse_two_lives(from);
    }
    if let Some(from) = excuses.files {
        report.excuse_two_logs(from);
    }
    sometimes::observe(run, &mut report.sometimes);
    report
}

impl Report {
    /// After a restore that was told wrongly two lives may hand out the same tokens and sessions: nothing that is told apart by those is
    /// promised, or can even be judged. What nodes do among themselves is, and what was wrong before stands.
    fn excuse_two_lives(&mut self, from: TrueTime) {
        self.excuse_unless(|violation| {
            violation.at < from
                || matches!(violation.id, Id::I9 | Id::I12 | Id::I13 | Id::I14 | Id::L1 | Id::L6)
        });
    }

    /// After a node was rolled back and the log broke apart, two leaders may both have committed, and answered from it. What came before
    /// stands; and after it the fence, that nobody serves damaged files, and that all come together again, if only after an operator has
    /// begun another life.
    fn excuse_two_logs(&mut self, from: TrueTime) {
        self.excuse_unless(|violation| {
            violation.at < from || matches!(violation.id, Id::I9 | Id::I14 | Id::L6)
        });
    }

    fn excuse_unless(&mut self, stands: impl Fn(&Violation) -> bool) {
        let before = self.violations.len();
        self.violations.retain(stands);
        self.excused += (before - self.violations.len()) as u64;
    }

    fn keep(&mut self, found: Vec<Violation>) {
        self.violations.extend(found.into_iter().take(MAX_PER_CHECKER));
    }
}
