//! The options of `gaps`.

use std::time::Duration;

use clap::Args;
use leasehold::ResourceName;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold gaps                    the last 24h, worst names first
  leasehold gaps app --last 1h      every gap of app
  leasehold gaps --prefix jobs/     only names that begin with jobs/
  leasehold gaps --min 1s --all     every name, every gap from 1s on

Exit codes: 0, with or without gaps; 1 if NAME is unknown.";

/// `gaps`.
#[derive(Debug, Args)]
pub(crate) struct GapsArgs {
    /// The name of the lease [default: all, worst first]
    #[arg(value_parser = values::name)]
    pub(crate) name: Option<ResourceName>,
    /// Look back LENGTH
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
    /// Leave out shorter gaps; totals still count them
    #[arg(long, value_name = "LENGTH", default_value = "0s", hide_default_value = true, value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) min: Duration,
    /// Show every gap of every name, also of names that are idle on purpose
    #[arg(long)]
    pub(crate) all: bool,
}
