//! The options of `probe`.

use std::time::Duration;

use clap::Args;
use leasehold::core::Millis;
use leasehold::core::limits::LONGEST_MAX_TTL;
use leasehold::core::numbers::Ask;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold probe                          this machine and its default store
  leasehold probe --store leasehold://db-1:7420 --for 1m --ttl 3s

Exit codes: 0 the ttl fits what was measured, 1 it does not.";

/// `probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Measure for LENGTH, 1s to 1h
    #[arg(long = "for", value_name = "LENGTH", default_value = "10s", value_parser = values::probe, allow_hyphen_values = true)]
    pub(crate) length: Duration,
    /// Check the results for leases of this ttl...
    #[arg(long, value_name = "LENGTH", default_value = "10s", value_parser = values::ttl, allow_hyphen_values = true)]
    pub(crate) ttl: Duration,
    /// ...renewed every LENGTH [default: a third of the ttl]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) renew_every: Option<Duration>,
    /// ...stopping LENGTH before the ttl ends [default: a tenth of the ttl, at least 50ms]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) margin: Option<Duration>,
}

impl ProbeArgs {
    /// The numbers that are asked for, but for what is to be measured.
    pub(crate) fn ask(&self) -> Ask {
        Ask {
            renew_every: self.renew_every.map(Millis::from_duration),
            margin: self.margin.map(Millis::from_duration),
            max_ttl: LONGEST_MAX_TTL,
            ..Ask::for_ttl(Millis::from_duration(self.ttl))
        }
    }
}
