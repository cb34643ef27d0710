//! Counts as metrics of `prometheus-client`.

use std::fmt;
use std::sync::PoisonError;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;

use super::Counts;

impl Counts {
    /// Adds both counters to a registry: `leasehold_fence_writes_total` and `leasehold_fence_seals_total`.
    ///
    /// ```
    /// use leasehold_fence::Counts;
    /// use prometheus_client::registry::Registry;
    ///
    /// let mut registry = Registry::default();
    /// let counts = Counts::default();
    /// counts.register(&mut registry);
    /// ```
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for Counts {
    fn encode(&self, mut page: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, help, ends) in [
            ("leasehold_fence_writes", "Fenced writes by receiver and end.", &self.writes),
            ("leasehold_fence_seals", "Seals of a fence by receiver and end.", &self.seals),
        ] {
            let mut family = page.encode_descriptor(name, help, None, MetricType::Counter)?;
            for ((receiver, outcome), count) in &*ends.0.lock().unwrap_or_else(PoisonError::into_inner) {
                let labels = [("receiver", receiver.as_str()), ("outcome", outcome.word())];
                ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Outcome, Stale};

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
            "# HELP leasehold_fence_writes Fenced writes by receiver and end.\n# TYPE leasehold_fence_writes counter\n",
            "leasehold_fence_writes_total{receiver=\"file:/a\",outcome=\"stale\"} 1",
            "leasehold_fence_writes_total{receiver=\"file:/a\",outcome=\"accepted\"} 1",
            "leasehold_fence_seals_total{receiver=\"file:/a\",outcome=\"accepted\"} 1",
        ] {
            assert!(page.contains(line), "{page}");
        }
    }
}
