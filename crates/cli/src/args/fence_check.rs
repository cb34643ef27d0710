//! The options of `fence-check`.

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold fence-check reports --receiver postgres://app@db/app
  leasehold fence-check reports -r file:/srv/report.json -r redis://cache
  leasehold fence-check reports -r 's3://bucket/report.json?endpoint=http://minio:9000'

Receivers:
  postgres://USER@HOST/DATABASE   mysql://USER@HOST/DATABASE (MariaDB too)
  sqlite:PATH                     redis://HOST (Valkey too)
  s3://BUCKET/PATH                file:PATH (the file that is protected)
  http://HOST:PORT (a fence-proxy)
S3 takes its keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and where it is
from ?endpoint=URL&region=NAME behind the path, or AWS_ENDPOINT_URL and AWS_REGION.
A comma separates receivers: in a password it is %2C. Passwords are never printed.

Each receiver is waited for as long as --timeout says, all at the same time.

Exit codes: 0 every receiver was asked and compared, and none is ahead,
1 otherwise, 2 a URL that is none.";

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
