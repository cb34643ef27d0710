//! What was noted every second, and what it comes to.

use std::fmt;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use serde::Serialize;

use super::Shared;
use crate::peers::usage::number;

/// One second.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Seconds since the beginning.
    pub second: u64,
    /// Resident memory of the service in KiB.
    pub resident_kib: u64,
    /// Its descriptors.
    pub descriptors: u64,
    /// Its threads.
    pub threads: u64,
    /// Leases granted so far.
    pub grants: u64,
    /// Acquires not granted so far.
    pub refused: u64,
    /// Calls with trouble so far.
    pub troubles: u64,
    /// Changes seen by watchers so far.
    pub seen: u64,
    /// Requests that make no sense so far.
    pub nonsense: u64,
}

/// All of them.
#[derive(Debug, Default, Serialize)]
pub struct Samples {
    /// In order.
    pub all: Vec<Sample>,
}

/// Memory may rise by this much an hour after the warm-up: an allocator that settles, not a leak.
const MOST_KIB_PER_HOUR: f64 = 4_096.0;
/// The first part of the run is not judged: buffers and the ring of changes fill up.
const WARM_UP_PARTS: usize = 3;
/// Descriptors at the end, above those of the service alone.
const MOST_LEFT_OVER: u64 = 8;

impl Samples {
    /// Notes the present second.
    ///
    /// # Errors
    /// When the process cannot be looked at.
    pub fn take(&mut self, second: u64, pid: u32, shared: &Shared) -> Result<()> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("no such process")?;
        let number = |key: &str| number(&status, key).unwrap_or(0);
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        self.all.push(Sample {
            second,
            resident_kib: number("VmRSS:"),
            descriptors,
            threads: number("Threads:"),
            grants: count(&shared.grants),
            refused: count(&shared.refused),
            troubles: count(&shared.troubles),
            seen: count(&shared.seen),
            nonsense: count(&shared.nonsense),
        });
        Ok(())
    }

    /// The last second in one line.
    pub fn line(&self) -> String {
        let Some(last) = self.all.last() else { return String::new() };
        format!(
            "{:>6} s: {:>7} KiB, {:>4} descriptors, {} threads, {} grants, {} not granted, {} troubles, {} changes seen, {} refused nonsense",
            last.second,
            last.resident_kib,
            last.descriptors,
            last.threads,
            last.grants,
            last.refused,
            last.troubles,
            last.seen,
            last.nonsense
        )
    }

    /// All of it for programs.
    ///
    /// # Errors
    /// Never, in fact: these are numbers.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    /// Whether memory and descriptors stayed flat.
    pub fn judge(&self) -> Verdict {
        // The last sample was taken when everybody was gone.
        let (last, under_load) = self.all.split_last().expect("at least one second was noted");
        let judged = &under_load[under_load.len() / WARM_UP_PARTS..];
        let points: Vec<(f64, f64)> =
            judged.iter().map(|sample| (as_f64(sample.second), as_f64(sample.resident_kib))).collect();
        let descriptors = judged.iter().map(|sample| sample.descriptors);
        Verdict {
            kib_per_hour: slope(&points) * 3600.0,
            descriptors: (descriptors.clone().min().unwrap_or(0), descriptors.max().unwrap_or(0)),
            left_over: last.descriptors,
            grants: last.grants,
        }
    }
}

/// What all of it comes to.
#[derive(Debug, Clone)]
pub struct Verdict {
    kib_per_hour: f64,
    descriptors: (u64, u64),
    left_over: u64,
    grants: u64,
}

impl Verdict {
    /// Descriptors of the service alone: standard streams, log, runtimes, port, signals.
    const OWN: u64 = 24;

    /// Whether the service stayed as it was, and was in fact used.
    pub fn is_good(&self) -> bool {
        self.kib_per_hour < MOST_KIB_PER_HOUR
            && self.left_over <= Self::OWN + MOST_LEFT_OVER
            && self.grants > 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_good() { "flat" } else { "NOT FLAT" };
        write!(
            f,
            "{word}: memory {:+.0} KiB an hour (limit {MOST_KIB_PER_HOUR:+.0}), descriptors {} to {} under load and {} afterwards, {} grants",
            self.kib_per_hour, self.descriptors.0, self.descriptors.1, self.left_over, self.grants
        )
    }
}

/// The slope of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = as_f64(points.len() as u64);
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if below == 0.0 { 0.0 } else { above / below }
}

#[expect(clippy::cast_precision_loss, reason = "seconds and kibibytes are far below 2^53")]
pub(crate) fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kib: impl Fn(u64) -> u64, left_over: u64) -> Samples {
        let sample = |second: u64, descriptors| Sample {
            second,
            resident_kib: kib(second),
            descriptors,
            threads: 5,
            grants: second,
            refused: 0,
            troubles: 0,
            seen: 0,
            nonsense: 0,
        };
        let mut all: Vec<Sample> = (1..=3_600).map(|second| sample(second, 300)).collect();
        all.push(sample(3_602, left_over));
        Samples { all }
    }

    #[test]
    fn a_leak_of_two_bytes_a_millisecond_is_found_and_a_noisy_plateau_is_not() {
        let plateau = run(|second| 60_000 + (second.min(600) * 20) + (second * 7_919 % 400), 20);
        assert!(plateau.judge().is_good(), "{}", plateau.judge());
        let leak = run(|second| 60_000 + second * 2 + (second * 7_919 % 400), 20);
        assert!(!leak.judge().is_good(), "{}", leak.judge());
    }

    #[test]
    fn descriptors_that_stay_behind_are_found() {
        assert!(!run(|_| 60_000, 60).judge().is_good());
    }
}
