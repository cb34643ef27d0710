//! The options of `fence-proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold fence-proxy --upstream http://127.0.0.1:9000 --fence /var/lib/fence
  curl -X PUT -H 'Fencing-Token: 34' -H 'Fencing-Name: reports/nightly' \\
       --data @report http://127.0.0.1:7421/report
  curl 'http://127.0.0.1:7421/.leasehold/fence?name=reports/nightly'

A proxy is weaker than a check in the service's own transaction: a request that
it gave up on may still be carried out by the service, after a newer holder's.

Exit codes: 0 after a signal, 1 it could not begin, 2 an option makes no sense.";

/// `fence-proxy`.
#[derive(Debug, Args)]
pub(crate) struct FenceProxyArgs {
    /// The service: http://HOST:PORT, with a path if it is not at the root
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// Keep the highest tokens in this directory, and make it if it is missing; it belongs to one proxy at a time
    #[arg(long, value_name = "DIR")]
    pub(crate) fence: PathBuf,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7421", value_parser = values::address)]
    pub(crate) listen: SocketAddr,
    /// Allow an address that other machines can reach, although there is neither TLS nor authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Fence everything under this name [default: what the header Fencing-Name says]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Fence reads too: GET, HEAD, OPTIONS and TRACE need a token as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Give up on the service when a request is not answered within this time
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = values::upstream_time, allow_hyphen_values = true)]
    pub(crate) timeout: Duration,
    /// Let greater tokens wait so long after a request was given up on, and after a start: for as long as the service might still work on it
    #[arg(long, value_name = "LENGTH", default_value = "0s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) settle: Duration,
    /// Write the address into this file once it listens, to tell which port the system chose for port 0
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}
