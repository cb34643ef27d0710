//! The options of `fence-check`.

use std::fmt;

use clap::{Args, ValueEnum};
use leasehold::ResourceName;

use super::values;

/// The parser knows no two ways to be asked.
pub(super) const USAGE: &str = "leasehold fence-check [OPTIONS] --receiver <URL> <NAME>
       leasehold fence-check --print-migration <DATABASE>";

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold fence-check reports --receiver postgres://app@db/app
  leasehold fence-check reports -r file:/srv/report.json -r redis://cache
  leasehold fence-check --print-migration postgres | psql --single-transaction postgres://app@db/app
  leasehold fence-check reports -r 's3://bucket/report.json?endpoint=http://minio:9000'

Receivers:
  postgres://USER@HOST/DATABASE   mysql://USER@HOST/DATABASE (MariaDB too)
  sqlite:PATH                     redis://HOST (Valkey too)
  s3://BUCKET/PATH                file:PATH (the file that is protected)
  http://HOST:PORT (a fence-proxy)
S3 takes its keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and where it is
from ?endpoint=URL&region=NAME behind the path, or AWS_ENDPOINT_URL and AWS_REGION.
A comma separates receivers: in a password it is %2C. Passwords are never printed.

Exit codes: 0 the store and every receiver answered, and no receiver is ahead of
the store; 1 otherwise; 2 a bad URL, or a slot that NAME does not have.";

/// Names receivers to ask, if no option does.
pub(super) const RECEIVERS: &str = "LEASEHOLD_RECEIVERS";

/// A name as receivers keep it: a resource, or a slot of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FenceName {
    pub(crate) resource: ResourceName,
    pub(crate) slot: Option<u32>,
}

impl fmt::Display for FenceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot {
            Some(slot) => write!(f, "{}#{slot}", self.resource),
            None => write!(f, "{}", self.resource),
        }
    }
}

/// A database in which a fence has tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Database {
    /// Two tables, a sequence and functions, for psql
    Postgres,
    /// Two tables, for MySQL and MariaDB
    Mysql,
    /// Two tables
    Sqlite,
}

/// `fence-check`.
#[derive(Debug, Args)]
pub(crate) struct FenceCheckArgs {
    /// The fence name: a resource, or NAME#SLOT
    #[arg(value_parser = values::fence_name, required_unless_present = "print_migration")]
    pub(crate) name: Option<FenceName>,
    /// A receiver to ask; repeatable
    #[arg(
        short,
        long = "receiver",
        value_name = "URL",
        env = RECEIVERS,
        value_delimiter = ',',
        required_unless_present = "print_migration",
        hide_env_values = true
    )]
    pub(crate) receivers: Vec<String>,
    /// Print the SQL that creates the tables of a fence, and do nothing else
    #[arg(long, value_enum, value_name = "DATABASE", conflicts_with = "name")]
    pub(crate) print_migration: Option<Database>,
    /// The variable that these receivers come from, if it is one.
    #[arg(skip)]
    pub(crate) variable: Option<&'static str>,
}
