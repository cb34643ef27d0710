//! The options of `plan`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use leasehold::core::Drift;
use leasehold::core::numbers::Schedule;
use leasehold::core::plan::Preset;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold plan --ttl 10s --pause 2s              these, and defaults
  leasehold plan --ttl 30s --drift 20% --in-flight 1s
  leasehold plan --presets                         compare all presets
  leasehold plan --preset kubernetes               show one of them
  leasehold plan --ttl 10s --svg plan.svg          draw a timeline";

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// How long a lease outlives its last renewal [default: 10s]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) ttl: Option<Duration>,
    /// Renew every LENGTH [default: a third of the ttl]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) renew_every: Option<Duration>,
    /// When to renew, and when to retry [default: even]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) schedule: Option<ScheduleWord>,
    /// Stop LENGTH before the ttl ends [default: a tenth of the ttl, at least 50ms and what the bounds need]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) margin: Option<Duration>,
    /// The longest ordinary round trip to the service [default: 100ms]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) rtt: Option<Duration>,
    /// The greatest rate error of any clock, as 0.1% or 200ppm [default: 0.1%]
    #[arg(long, value_name = "PERCENT", value_parser = values::drift, allow_hyphen_values = true)]
    pub(crate) drift: Option<Percent>,
    /// How far clocks drift apart within one ttl, if known [default: drift times ttl]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) clock_bound: Option<Duration>,
    /// How long a write may travel to a receiver without a fence [default: 0s]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) in_flight: Option<Duration>,
    /// How long the holder may freeze and keep its lease [default: not checked]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) pause: Option<Duration>,
    /// Reserve names for their holder for LENGTH after the ttl [default: 0s]
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true)]
    pub(crate) grace: Option<Duration>,
    /// After a crash, leave names free for LENGTH [default: 0s]
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true)]
    pub(crate) delay: Option<Duration>,
    /// Count the renewals of N leases
    #[arg(long, value_name = "N", default_value = "1000", value_parser = values::leases, allow_hyphen_values = true)]
    pub(crate) leases: u64,
    /// The longest ttl that the store accepts [default: 5m]
    #[arg(long, value_name = "LENGTH", value_parser = values::ttl, allow_hyphen_values = true)]
    pub(crate) max_ttl: Option<Duration>,
    /// Start from a preset; other options override it
    #[arg(long, value_name = "NAME", value_parser = values::preset)]
    pub(crate) preset: Option<&'static Preset>,
    /// Compare all presets
    #[arg(long)]
    pub(crate) presets: bool,
    /// Draw the timeline of one ttl to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// When a session is renewed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScheduleWord {
    /// Every interval, shortened at random by up to a fifth
    Even,
    /// Every interval, to the millisecond
    Fixed,
    /// At half of the ttl, and at seven eighths of it
    Halves,
}

impl From<ScheduleWord> for Schedule {
    fn from(word: ScheduleWord) -> Self {
        match word {
            ScheduleWord::Even => Self::Even,
            ScheduleWord::Fixed => Self::Fixed,
            ScheduleWord::Halves => Self::Halves,
        }
    }
}

/// A drift as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) Drift);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ppm = self.0.ppm();
        let places = format!("{:04}", ppm % 10_000);
        match places.trim_end_matches('0') {
            "" => write!(f, "{}%", ppm / 10_000),
            places => write!(f, "{}.{places}%", ppm / 10_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_shown_as_it_is_read() {
        for text in ["0%", "0.1%", "20%", "0.0001%", "12.5%", "50%"] {
            assert_eq!(values::drift(text).unwrap().to_string(), text);
        }
    }
}
