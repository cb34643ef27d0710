//! The commands about fences: `fence check`, `fence proxy` and `fence migration`.

use std::fmt;

use clap::{Args, Subcommand, ValueEnum};
use leasehold::ResourceName;

use super::fence_proxy::{self, FenceProxyArgs};
use super::values;

const CHECK_EXAMPLES: &str = "\
Examples:
  leasehold fence check reports --receiver postgres://app@db/app
  leasehold fence check reports -r file:/srv/report.json -r redis://cache
  leasehold fence check reports -r 's3://bucket/report.json?endpoint=http://minio:9000'

Receivers:
  postgres://USER@HOST/DATABASE   mysql://USER@HOST/DATABASE (MariaDB too)
  sqlite:PATH                     redis://HOST (Valkey too)
  s3://BUCKET/PATH                file:PATH (the file that is protected)
  http://HOST:PORT (leasehold fence proxy)
S3 takes its keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and where it is
from ?endpoint=URL&region=NAME behind the path, or AWS_ENDPOINT_URL and AWS_REGION.
A comma separates receivers: in a password it is %2C. Passwords are never printed.

Exit codes: 0 the store and every receiver answered, and no receiver is ahead of
the store; 1 otherwise; 2 a bad URL, or a slot that NAME does not have.";

const MIGRATION_EXAMPLES: &str = "\
Examples:
  leasehold fence migration postgres | psql --single-transaction -v ON_ERROR_STOP=1 postgres://app@db/app
  leasehold fence migration sqlite | sqlite3 app.db";

/// What to do about receivers.
#[derive(Debug, Subcommand)]
pub(crate) enum FenceCommand {
    /// Show the highest token that each receiver has seen
    ///
    /// Compares it with the token of the present holder. Also shows the last refused writes with their holders, and the smallest token with
    /// which another store may start. Changes nothing.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(FenceCheckArgs),
    /// Refuse writes with a stale token in front of a service that cannot check them
    ///
    /// A reverse proxy that keeps the highest token of every fence name. It refuses requests with a smaller token, and forwards one with a
    /// greater token after those with smaller tokens are answered. Runs until SIGTERM or SIGINT; then it answers open requests and ends.
    #[command(after_help = fence_proxy::EXAMPLES)]
    Proxy(Box<FenceProxyArgs>),
    /// Print the SQL that creates the tables of a fence
    #[command(after_help = MIGRATION_EXAMPLES)]
    Migration {
        /// For which database
        database: Database,
    },
}

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
    /// PostgreSQL: two tables, a sequence and functions
    Postgres,
    /// MySQL and MariaDB: two tables
    Mysql,
    /// SQLite: two tables
    Sqlite,
}

/// `fence check`.
#[derive(Debug, Args)]
pub(crate) struct FenceCheckArgs {
    /// The name to fence under: NAME, or NAME#SLOT
    #[arg(value_parser = values::fence_name)]
    pub(crate) name: FenceName,
    /// A receiver to ask; repeatable
    #[arg(
        short,
        long = "receiver",
        value_name = "URL",
        env = RECEIVERS,
        value_delimiter = ',',
        required = true,
        hide_env_values = true
    )]
    pub(crate) receivers: Vec<String>,
    /// The variable that these receivers come from, if it is one.
    #[arg(skip)]
    pub(crate) variable: Option<&'static str>,
}
