//! A write of which the end is not known yet, counted also if nobody waits for it.

use crate::counts::{Counts, Ends};
use crate::error::{Error, Outcome};

/// A write that has not ended. One that is dropped half way is counted too: as failed, or as unknown when its commit was sent. For adapters.
#[derive(Debug)]
pub struct Pending<'a> {
    pub(crate) ends: &'a Ends,
    pub(crate) place: &'a str,
    /// How it has ended, if it is dropped now.
    pub(crate) outcome: Outcome,
}

impl<'a> Pending<'a> {
    /// A write to this place, of which nothing was sent yet.
    pub fn new(counts: &'a Counts, place: &'a str) -> Self {
        Self { ends: &counts.writes, place, outcome: Outcome::Failed }
    }

    /// From here on nobody can say how it ended, until an answer comes.
    pub const fn sent(&mut self) {
        self.outcome = Outcome::Unknown;
    }

    /// Counts it by its end, and hands the result on.
    ///
    /// # Errors
    /// The one that was given.
    pub fn ended<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.outcome = Outcome::of(&result);
        result
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.ends.note(self.place, self.outcome);
    }
}
