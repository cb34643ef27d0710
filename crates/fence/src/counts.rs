//! How often receivers accepted and refused, for a page of metrics.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::error::{Error, Outcome};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    receiver: String,
    outcome: Outcome,
}

impl EncodeLabelValue for Outcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.word().encode(encoder)
    }
}

/// Seals and writes, by receiver and end. Clones count together; hand one to every adapter of a program.
///
/// ```
/// use leasehold_fence::Counts;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// let counts = Counts::default();
/// counts.register(&mut registry);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Counts {
    writes: Family<Labels, Counter>,
    seals: Family<Labels, Counter>,
}

impl Counts {
    /// Adds both counters to a registry: `leasehold_fence_writes_total` and `leasehold_fence_seals_total`.
    pub fn register(&self, registry: &mut Registry) {
        let writes = "Fenced writes by receiver and end";
        registry.register("leasehold_fence_writes", writes, self.writes.clone());
        let seals = "Seals of a fence by receiver and end";
        registry.register("leasehold_fence_seals", seals, self.seals.clone());
    }

    /// How many writes to a receiver ended so.
    pub fn writes(&self, receiver: &str, outcome: Outcome) -> u64 {
        count(&self.writes, receiver, outcome)
    }

    /// How many seals of a receiver ended so.
    pub fn seals(&self, receiver: &str, outcome: Outcome) -> u64 {
        count(&self.seals, receiver, outcome)
    }

    /// Counts a write by its end, and hands the result on. For adapters.
    ///
    /// # Errors
    /// The one that was given.
    pub fn write<T>(&self, receiver: &str, result: Result<T, Error>) -> Result<T, Error> {
        note(&self.writes, receiver, Outcome::of(&result));
        result
    }

    /// Counts a seal by its end, and hands the result on. For adapters.
    ///
    /// # Errors
    /// The one that was given.
    pub fn seal<T>(&self, receiver: &str, result: Result<T, Error>) -> Result<T, Error> {
        note(&self.seals, receiver, Outcome::of(&result));
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
        let open = Open { family: &self.writes, receiver, outcome: Outcome::Unknown };
        open.ended(write.await)
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
        let open = Open { family: &self.seals, receiver, outcome: Outcome::Unknown };
        open.ended(seal.await)
    }
}

/// Counted when it is dropped.
struct Open<'a> {
    family: &'a Family<Labels, Counter>,
    receiver: &'a str,
    outcome: Outcome,
}

impl Open<'_> {
    fn ended<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.outcome = Outcome::of(&result);
        result
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        note(self.family, self.receiver, self.outcome);
    }
}

fn count(family: &Family<Labels, Counter>, receiver: &str, outcome: Outcome) -> u64 {
    family.get(&Labels { receiver: receiver.to_owned(), outcome }).map_or(0, |counter| counter.get())
}

fn note(family: &Family<Labels, Counter>, receiver: &str, outcome: Outcome) {
    family.get_or_create(&Labels { receiver: receiver.to_owned(), outcome }).inc();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Stale;

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

    #[test]
    fn ends_are_counted_by_receiver_and_shown_with_their_words() {
        let (counts, mut registry) = (Counts::default(), Registry::default());
        counts.register(&mut registry);
        let stale = Stale { name: "a".to_owned(), token: 1, highest: Some(2) };
        counts.clone().write::<()>("file:/a", Err(stale.into())).unwrap_err();
        counts.write("file:/a", Ok(())).unwrap();
        counts.seal("file:/a", Ok(())).unwrap();
        assert_eq!(counts.writes("file:/a", Outcome::Stale), 1);
        assert_eq!(counts.writes("file:/b", Outcome::Stale), 0);

        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            "leasehold_fence_writes_total{receiver=\"file:/a\",outcome=\"stale\"} 1",
            "leasehold_fence_writes_total{receiver=\"file:/a\",outcome=\"accepted\"} 1",
            "leasehold_fence_seals_total{receiver=\"file:/a\",outcome=\"accepted\"} 1",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }
}
