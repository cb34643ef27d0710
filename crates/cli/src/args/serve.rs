//! The options of `serve`: the few that are used every day have flags of their own, the rest goes through `--set`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold serve
  leasehold serve --data /var/lib/leasehold --listen 10.0.0.5:7420 --insecure
  leasehold serve --config /etc/leasehold.toml --set limits.max_watches=100
  leasehold serve --print-config > leasehold.toml    start a file of your own

  leasehold --store leasehold://127.0.0.1:7420 run backup ./backup.sh

Configuration:
  Defaults, then the file, then variables such as LEASEHOLD_SERVE_LISTEN or
  LEASEHOLD_SERVE_HTTP_MAX_BODY_BYTES, then flags, then --set. The last one wins.";

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Read the configuration from FILE; --print-config writes one
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_SERVE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Keep the log in this directory [default: leasehold-service in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// Listen on this address [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Allow an address that other machines can reach, without TLS and authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Name of the node in logs, metrics and its cluster; fixed once it is a member [default: leasehold]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Found a cluster of these nodes, this one included; give every node the same list
    #[arg(long, value_name = "N1=HOST:PORT,N2=HOST:PORT,...")]
    pub(crate) initial_cluster: Option<String>,
    /// Wait to be added to an existing cluster with `leasehold cluster add`
    #[arg(long)]
    pub(crate) join: bool,
    /// Address at which clients and other nodes reach this one [default: where it listens]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<String>,
    /// The longest ttl of a new directory, 500ms to 1d [default: 5m]
    #[arg(long, value_name = "LENGTH", value_parser = values::ttl, allow_hyphen_values = true)]
    pub(crate) max_ttl: Option<Duration>,
    /// Write the log as human or json; auto is human on a terminal and json elsewhere [default: auto]
    #[arg(long, value_name = "FORMAT", value_parser = values::LogFormats, hide_possible_values = true)]
    pub(crate) log_format: Option<String>,
    /// Log level such as warn, or directives such as info,leasehold_server=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Set any key of the configuration, over all other flags; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Write the address to FILE once it listens (for port 0)
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// Print the resulting configuration as a file, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}
