//! The options of `bench`.

use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold bench --store leasehold://db-1:7420
  leasehold bench --store leasehold://db-1:7420 --clients 256 --connections 8 --for 1m

Exit codes: 0 measured, 1 a lease was lost or the store went away, 2 others use the store.";

/// Most clients and connections: beyond that this process is measured and not the store.
const MOST_CLIENTS: i64 = 4_096;
const MOST_CONNECTIONS: i64 = 64;

/// `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Put load for so long, half of it cycles and half of it renewals, from 1s to 1h
    #[arg(long = "for", value_name = "LENGTH", default_value = "10s", value_parser = values::probe, allow_hyphen_values = true)]
    pub(crate) length: Duration,
    /// So many clients, each with a session and one request at a time
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=MOST_CLIENTS))]
    pub(crate) clients: u16,
    /// Over so many connections
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=MOST_CONNECTIONS))]
    pub(crate) connections: u16,
    /// Also if others hold leases in this store: they are slowed down, and figures are those of a busy store
    #[arg(long)]
    pub(crate) beside_others: bool,
}
