//! The options of `fence-check`.

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold fence-check reports --receiver postgres://app@db/app
  leasehold fence-check reports -r file:/srv/report.json -r redis://cache

Receivers: postgres://, redis://, file:PATH (what is protected), http://
(a fence-proxy); and where this program was built with them mysql://,
sqlite:PATH and s3://BUCKET/PATH.

Exit codes: 0 every receiver was asked and none is ahead of the store,
1 otherwise.";

/// `fence-check`.
#[derive(Debug, Args)]
pub(crate) struct FenceCheckArgs {
    /// The fence name: a resource, or NAME#SLOT
    #[arg(value_parser = values::fence_name)]
    pub(crate) name: String,
    /// A receiver to ask; may be given several times
    #[arg(
        short,
        long = "receiver",
        value_name = "URL",
        env = "LEASEHOLD_RECEIVERS",
        value_delimiter = ',',
        required = true,
        hide_env_values = true
    )]
    pub(crate) receivers: Vec<String>,
}
