//! The options of `gaps`.

use std::time::Duration;

use clap::Args;
use leasehold::ResourceName;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold gaps                    what matters of the last 24h, worst first
  leasehold gaps app --last 1h      every gap of app
  leasehold gaps --prefix jobs/     only names that begin with jobs/
  leasehold gaps --min 1s --all     every name, every gap from 1s on

Exit codes: 0, also if there are none; 1 if nothing is known of NAME.";

/// `gaps`.
#[derive(Debug, Args)]
pub(crate) struct GapsArgs {
    /// The resource [default: all, the worst first]
    #[arg(value_parser = values::name)]
    pub(crate) name: Option<ResourceName>,
    /// Look back so far
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = values::window, allow_hyphen_values = true)]
    pub(crate) last: Duration,
    /// Only names that begin with this
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        conflicts_with = "name",
        allow_hyphen_values = true
    )]
    pub(crate) prefix: String,
    /// Leave out gaps that are shorter; totals count them all the same
    #[arg(long, value_name = "LENGTH", default_value = "0s", hide_default_value = true, value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) min: Duration,
    /// Every name with every gap, also those that were released and that nobody asked for
    #[arg(long)]
    pub(crate) all: bool,
}
