//! For how long nobody acted, and why. Patterns are the operator's words and causes are a closed list: no name that a client chose is a
//! label.
//!
//! Every node of a cluster counts the same entries, so these are read from one of them, and never added up.

use leasehold_core::Millis;
use leasehold_host::Inspection;
use leasehold_node::{GapPattern, Leaderless};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::table::{histogram, histogram_samples};
use super::{Written, counter, family, gauge, whole};

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
    gauge(to, "waiters", "Waits in the queues of all names", look.waiting)
}

/// Three families with the same labels: what was, how many there are, and the one that has waited longest.
fn leaderless(patterns: &[(GapPattern, Leaderless)], to: &mut DescriptorEncoder<'_>) -> Written {
    let label = |pattern: &GapPattern| [("pattern", pattern.to_string())];
    let seconds = |length: Millis| length.duration().as_secs_f64();
    let help =
        "Time in which nobody acted on names of a pattern, all of them together, since this process began";
    let total = patterns.iter().map(|(p, counted)| (label(p), ConstCounter::new(seconds(counted.total))));
    family(to, "leaderless", help, Some(&Unit::Seconds), total)?;
    let help = "Names of a pattern on which nobody acts, though somebody did";
    let names = patterns.iter().map(|(p, counted)| (label(p), whole(counted.names)));
    family(to, "leaderless_names", help, None, names)?;
    let help =
        "For how long nobody has acted on the one of these names that has waited longest; 0 if there is none";
    let longest = patterns.iter().map(|(p, counted)| (label(p), ConstGauge::new(seconds(counted.longest))));
    family(to, "leaderless_longest", help, Some(&Unit::Seconds), longest)
}
