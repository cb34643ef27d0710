//! For how long nobody acted, and why. Patterns are the operator's words and causes are a closed list: no name that a client chose is a
//! label.
//!
//! Every node of a cluster counts the same entries, so these are read from one of them, and never added up.

use std::fmt;

use leasehold_host::Inspection;
use leasehold_node::{GapPattern, Leaderless};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::table::{histogram, histogram_samples};
use super::{as_i64, counter, gauge};

type Written = Result<(), fmt::Error>;

/// Everything that an inspection says of gaps.
pub(super) fn encode(look: &Inspection, to: &mut DescriptorEncoder<'_>) -> Written {
    leaderless(&look.leaderless, to)?;
    let help = "Parts of gaps by why nobody acted";
    let mut family = to.encode_descriptor("gap", help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (cause, buckets) in look.stats.gaps.causes().filter(|(_, buckets)| buckets.count() > 0) {
        histogram_samples(family.encode_family(&[("cause", cause.word())])?, buckets, 1e-3)?;
    }
    let (outages, unknown) = look.stats.gaps.outages();
    let help = "Times in which no node led";
    histogram(to, "outage", help, Some(&Unit::Seconds), outages, 1e-3)?;
    let help = "Times in which no node led, and of which nobody knows how long they were";
    counter(to, "outages_of_unknown_length", help, unknown)?;
    let help = "Time from the end of a dead holder's lease to the entry that ended it";
    histogram(to, "expiry_late", help, Some(&Unit::Seconds), &look.stats.expiry_late_millis, 1e-3)?;
    gauge(to, "waiters", "Waits in the queues of all names", &ConstGauge::new(as_i64(look.waiting)))
}

/// Three families with the same labels: what was, how many there are, and the one that has waited longest.
fn leaderless(patterns: &[(GapPattern, Leaderless)], to: &mut DescriptorEncoder<'_>) -> Written {
    let help =
        "Time in which nobody acted on names of a pattern, all of them together, since this process began";
    let mut family = to.encode_descriptor("leaderless", help, Some(&Unit::Seconds), MetricType::Counter)?;
    for (pattern, counted) in patterns {
        let seconds = ConstCounter::new(counted.total.duration().as_secs_f64());
        seconds.encode(family.encode_family(&[("pattern", pattern.to_string())])?)?;
    }
    let help = "Names of a pattern on which nobody acts, though somebody did";
    let mut family = to.encode_descriptor("leaderless_names", help, None, MetricType::Gauge)?;
    for (pattern, counted) in patterns {
        let names = ConstGauge::new(i64::try_from(counted.names).unwrap_or(i64::MAX));
        names.encode(family.encode_family(&[("pattern", pattern.to_string())])?)?;
    }
    let help =
        "For how long nobody has acted on the one of these names that has waited longest; 0 if there is none";
    let unit = Some(&Unit::Seconds);
    let mut family = to.encode_descriptor("leaderless_longest", help, unit, MetricType::Gauge)?;
    for (pattern, counted) in patterns {
        let seconds = ConstGauge::new(counted.longest.duration().as_secs_f64());
        seconds.encode(family.encode_family(&[("pattern", pattern.to_string())])?)?;
    }
    Ok(())
}
