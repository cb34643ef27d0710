//! The numbers of the node, its table, its disk and its process, one by one.

use leasehold_core::Millis;
use leasehold_host::{Inspection, Steadiness};
use leasehold_node::Buckets;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::{Written, counter, family, gaps, gauge};

/// Everything that an inspection says.
pub(super) fn encode(look: &Inspection, to: &mut DescriptorEncoder<'_>) -> Written {
    operations(look, to)?;
    let stats = &look.stats;
    gauge(to, "serving", "Whether this node leads and answers", look.serving)?;
    gauge(to, "sessions", "Sessions in the table", look.sessions)?;
    gauge(to, "resources", "Resources in the table", look.resources)?;
    gauge(to, "alarms", "Resources that an alarm keeps from everybody", look.alarms)?;
    let help = "How long nothing is granted, because the state was restored; 0 otherwise";
    let wait = look.restore_wait.unwrap_or(Millis::ZERO);
    seconds(to, "restore_wait", help, MetricType::Gauge, wait)?;
    gauge(to, "queue_commands", "Commands that wait to be proposed", stats.queued)?;
    let help = "What the commands that wait weigh, roughly";
    gauge(to, "queue_bytes", help, stats.queued_bytes)?;
    let help = "Acquires over HTTP and gRPC whose callers are kept waiting";
    gauge(to, "held_calls", help, stats.held_calls)?;
    gauge(to, "revision", "The last entry applied", look.applied.get())?;
    counter(to, "grants", "Leases granted since the log began", look.counters.grants)?;
    counter(to, "renewals", "Renewals since the log began", look.counters.renewals)?;
    endings(look, to)?;
    counter(to, "changes", "Changes that watchers see, since this process began", stats.changes)?;
    let help = "Questions about tokens that were never granted, since this process began";
    counter(to, "token_checks_ahead", help, stats.ahead_checks)?;
    let help = "Releases and register writes with tokens that were never granted, since this process began";
    counter(to, "tokens_ahead", help, stats.ahead_commands)?;
    let help = "Log time of the last entry applied, since the log began";
    seconds(to, "log_time", help, MetricType::Gauge, look.log_time)?;
    let help = "Time cut from log time by this process because the loop or the disk stood still";
    seconds(to, "log_time_cut", help, MetricType::Counter, look.cut)?;
    counter(to, "log_entries", "Entries applied by this process", stats.entries)?;
    counter(to, "log_bytes", "Bytes of the entries applied by this process", stats.entry_bytes)?;
    counter(to, "snapshots", "Snapshots taken by this process", stats.snapshots)?;
    let help = "Commands in one entry of the log";
    histogram(to, "batch_commands", help, None, &stats.batch_commands, 1.0)?;
    let help = "Time from the proposal of an entry to its application";
    histogram(to, "commit", help, Some(&Unit::Seconds), &stats.commit_micros, 1e-6)?;
    let help = "Time of one write to the log and its sync";
    histogram(to, "disk_sync", help, Some(&Unit::Seconds), &look.sync_micros, 1e-6)?;
    steadiness(&look.steadiness, to)?;
    gaps::encode(look, to)
}

fn steadiness(look: &Steadiness, to: &mut DescriptorEncoder<'_>) -> Written {
    let help = "By how much a turn of the loop came later than it was to";
    histogram(to, "loop_pause", help, Some(&Unit::Seconds), &look.late_micros, 1e-6)?;
    let help = "How far the two clocks of log time come apart, in parts per million";
    gauge(to, "clock_disagreement_ppm", help, look.clock_disagreement_ppm)?;
    counter(to, "wall_clock_steps", "Times that the time of day was set", look.wall_steps)?;
    let help = "By how much the time of day was set, in all";
    let stepped = Millis::from_duration(look.wall_stepped);
    seconds(to, "wall_clock_step", help, MetricType::Counter, stepped)
}

fn operations(look: &Inspection, to: &mut DescriptorEncoder<'_>) -> Written {
    let help = "Requests of all doors by operation and outcome";
    let counted = look.stats.operations.iter().map(|((operation, outcome), count)| {
        ([("operation", operation.name()), ("outcome", outcome.name())], ConstCounter::new(*count))
    });
    family(to, "operations", help, None, counted)
}

fn endings(look: &Inspection, to: &mut DescriptorEncoder<'_>) -> Written {
    let help = "Leases ended since the log began, by whether the holder asked for it";
    let kinds = [("yes", look.counters.voluntary_endings), ("no", look.counters.involuntary_endings)];
    let counted = kinds.map(|(voluntary, count)| ([("voluntary", voluntary)], ConstCounter::new(count)));
    family(to, "endings", help, None, counted)
}

fn seconds(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    kind: MetricType,
    length: Millis,
) -> Written {
    let seconds = length.duration().as_secs_f64();
    let encoder = to.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
    match kind {
        MetricType::Counter => ConstCounter::new(seconds).encode(encoder),
        _ => ConstGauge::new(seconds).encode(encoder),
    }
}

pub(super) fn histogram(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    buckets: &Buckets,
    scale: f64,
) -> Written {
    histogram_samples(to.encode_descriptor(name, help, unit, MetricType::Histogram)?, buckets, scale)
}

/// The samples of one histogram, behind its name or in a family.
pub(super) fn histogram_samples(mut encoder: MetricEncoder<'_>, buckets: &Buckets, scale: f64) -> Written {
    let scaled = |value: u64| as_f64(value) * scale;
    let mut counts: Vec<(f64, u64)> = buckets.counts().map(|(bound, count)| (scaled(bound), count)).collect();
    let below: u64 = counts.iter().map(|(_, count)| count).sum();
    counts.push((f64::MAX, buckets.count() - below));
    encoder.encode_histogram::<NoLabelSet>(scaled(buckets.sum()), buckets.count(), &counts, None)
}

#[expect(clippy::cast_precision_loss, reason = "a metric of 2^53 and more may be off by one")]
fn as_f64(value: u64) -> f64 {
    value as f64
}

/// Memory and descriptors of this process, under the names that every dashboard knows.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Written {
        if let Some(bytes) = resident_bytes() {
            let help = "Resident memory size in bytes";
            gauge(&mut to, "process_resident_memory_bytes", help, bytes)?;
        }
        if let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") {
            let help = "Number of open file descriptors";
            gauge(&mut to, "process_open_fds", help, descriptors.count())?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
