//! A write of which the end is not known yet, counted also if nobody waits for it.

use crate::counts::Counts;
use crate::error::Error;

/// A write that has not ended. One that is dropped half way is counted too: as failed, or as unknown when its commit was sent. For adapters.
#[derive(Debug)]
pub struct Pending<'a> {
    counts: &'a Counts,
    place: &'a str,
    is_sent: bool,
    is_counted: bool,
}

impl<'a> Pending<'a> {
    /// A write to this place, of which nothing was sent yet.
    pub const fn new(counts: &'a Counts, place: &'a str) -> Self {
        Self { counts, place, is_sent: false, is_counted: false }
    }

    /// From here on nobody can say how it ended, until an answer comes.
    pub const fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Counts it by its end, and hands the result on.
    ///
    /// # Errors
    /// The one that was given.
    pub fn ended<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.is_counted = true;
        self.counts.write(self.place, result)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.is_counted {
            let why = "nobody waited for its end";
            let end =
                if self.is_sent { Error::unknown(self.place, why) } else { Error::failed(self.place, why) };
            let counted: Result<(), Error> = self.counts.write(self.place, Err(end));
            drop(counted);
        }
    }
}
