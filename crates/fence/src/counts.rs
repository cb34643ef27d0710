//! How often receivers accepted and refused, for a page of metrics.

#[cfg(feature = "prometheus")]
mod page;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Outcome};
use crate::pending::Pending;

/// How many ended so, by receiver and end.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<BTreeMap<(String, Outcome), u64>>);

/// Seals and writes, by receiver and end. Clones count together; hand one to every adapter of a program. With the feature `prometheus` it
/// registers as metrics.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub(crate) writes: Arc<Ends>,
    seals: Arc<Ends>,
}

impl Counts {
    /// How many writes to a receiver ended so.
    pub fn writes(&self, receiver: &str, outcome: Outcome) -> u64 {
        self.writes.get(receiver, outcome)
    }

    /// How many seals of a receiver ended so.
    pub fn seals(&self, receiver: &str, outcome: Outcome) -> u64 {
        self.seals.get(receiver, outcome)
    }

    /// Counts a write by its end, and hands the result on. For adapters.
    ///
    /// # Errors
    /// The one that was given.
    pub fn write<T>(&self, receiver: &str, result: Result<T, Error>) -> Result<T, Error> {
        self.writes.note(receiver, Outcome::of(&result));
        result
    }

    /// Counts a seal by its end, and hands the result on. For adapters.
    ///
    /// # Errors
    /// The one that was given.
    pub fn seal<T>(&self, receiver: &str, result: Result<T, Error>) -> Result<T, Error> {
        self.seals.note(receiver, Outcome::of(&result));
        result
    }

    /// Waits for a write, counts it by its end and hands the result on. One that nobody waits for any more is counted as unknown: a receiver
    /// that does not answer is seen, also where every caller gives up first. For adapters.
    ///
    /// # Errors
    /// Those of the write.
    pub async fn writing<T>(
        &self,
        receiver: &str,
        write: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let pending = Pending { ends: &self.writes, place: receiver, outcome: Outcome::Unknown };
        pending.ended(write.await)
    }

    /// Waits for a seal, as [`Counts::writing`] for a write. For adapters.
    ///
    /// # Errors
    /// Those of the seal.
    pub async fn sealing<T>(
        &self,
        receiver: &str,
        seal: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let pending = Pending { ends: &self.seals, place: receiver, outcome: Outcome::Unknown };
        pending.ended(seal.await)
    }
}

impl Ends {
    fn get(&self, receiver: &str, outcome: Outcome) -> u64 {
        let ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ends.get(&(receiver.to_owned(), outcome)).copied().unwrap_or_default()
    }

    pub(crate) fn note(&self, receiver: &str, outcome: Outcome) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *ends.entry((receiver.to_owned(), outcome)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_counted_as_unknown() {
        let counts = Counts::default();
        let never = || std::future::pending::<Result<(), Error>>();
        for waits in [Duration::ZERO, Duration::from_millis(1)] {
            tokio::time::timeout(waits, counts.writing("file:/a", never())).await.unwrap_err();
            tokio::time::timeout(waits, counts.sealing("file:/a", never())).await.unwrap_err();
        }
        counts.writing("file:/a", async { Ok(()) }).await.unwrap();
        for (outcome, writes, seals) in [(Outcome::Unknown, 2, 2), (Outcome::Accepted, 1, 0)] {
            assert_eq!(
                (counts.writes("file:/a", outcome), counts.seals("file:/a", outcome)),
                (writes, seals)
            );
        }
        // One that was never begun was never sent.
        drop(counts.writing("file:/a", never()));
        assert_eq!(counts.writes("file:/a", Outcome::Unknown), 2);
    }
}
