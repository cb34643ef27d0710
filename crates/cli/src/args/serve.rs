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
  leasehold serve --print-config > leasehold.toml    begin a file of your own

  leasehold --store leasehold://127.0.0.1:7420 run backup -- ./backup.sh

Configuration:
  Defaults, then the file, then variables such as LEASEHOLD_SERVE_LISTEN or
  LEASEHOLD_SERVE_HTTP_MAX_BODY_BYTES, then flags: what comes later wins.";

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Read this file first; see --print-config
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_SERVE_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// The directory with the log, made if it is missing [default: leasehold-service in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// Where to listen [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Allow an address that other machines can reach, without TLS and authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    /// What the service is called in logs and metrics [default: leasehold]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The longest ttl, for a directory that is new [default: 5m]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) max_ttl: Option<Duration>,
    /// How the log looks: auto is human on a terminal and json elsewhere [default: auto]
    #[arg(long, value_name = "auto|human|json")]
    pub(crate) log_format: Option<String>,
    /// How much is logged: a level, or directives such as info,leasehold_service=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Set any key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Write the address into this file once it listens: for port 0
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// Print the whole configuration that comes of all this, as a file, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}
