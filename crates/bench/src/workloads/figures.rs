//! What comes of a measurement: named numbers, so that every workload is kept, compared and written down alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Metered, Window};

/// Numbers by their names. Units are part of the name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<String, f64>);

impl Figures {
    /// Adds one.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// What there is.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Quantiles of lengths of time in nanoseconds, as microseconds under `name`, with the quantile behind it.
    #[must_use]
    pub fn with_lengths(self, name: &str, mut lengths: Vec<u64>) -> Self {
        if lengths.is_empty() {
            return self;
        }
        lengths.sort_unstable();
        let at =
            |per_mille: usize| micros(lengths[(lengths.len() * per_mille / 1000).min(lengths.len() - 1)]);
        self.with(&format!("{name}p50_us"), at(500))
            .with(&format!("{name}p99_us"), at(990))
            .with(&format!("{name}p999_us"), at(999))
            .with(&format!("{name}max_us"), at(1000))
    }

    /// Of operations in a window: how many, how fast, and what they cost the servers.
    #[must_use]
    pub fn of_window(took: Vec<u64>, window: Window, Metered { servers, load, .. }: &Metered) -> Self {
        let count = as_f64(took.len());
        Self::default()
            .with("operations", count)
            .with("per_second", count / window.seconds())
            .with("server_cpu_s", servers.cpu_s)
            .with("server_cpu_s_per_100k", servers.cpu_s / count.max(1.0) * 100_000.0)
            .with("server_dirtied_bytes", servers.dirtied)
            .with("server_resident_mib", servers.resident_mib)
            .with("load_cpu_s", load.cpu_s)
            .with_lengths("", took)
    }
}

/// Nanoseconds as seconds.
pub fn seconds(nanos: u64) -> f64 {
    micros(nanos) / 1e6
}

/// Nanoseconds as microseconds.
#[expect(clippy::cast_precision_loss, reason = "lengths of a measurement are far below 2^53 ns")]
pub fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

/// The digits of a whole number, with a comma between thousands.
pub fn thousands_apart(digits: &str) -> String {
    let mut apart = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !apart.ends_with('-') {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart
}

/// A count.
#[expect(clippy::cast_precision_loss, reason = "counts of a measurement are far below 2^53")]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_lengths() {
        let lengths = (1..=1000).rev().map(|number| number * 1000).collect();
        let figures = Figures::default().with_lengths("x_", lengths);
        assert_eq!(figures.get("x_p50_us"), Some(501.0));
        assert_eq!(figures.get("x_p99_us"), Some(991.0));
        assert_eq!(figures.get("x_max_us"), Some(1000.0));
    }

    #[test]
    fn nothing_measured_has_no_quantiles() {
        assert_eq!(Figures::default().with_lengths("", Vec::new()), Figures::default());
    }
}
