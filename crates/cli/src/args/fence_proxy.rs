//! The options of `fence proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold fence proxy --upstream http://127.0.0.1:9000 --fence /var/lib/fence
  curl -X PUT -H 'Fencing-Token: 34' -H 'Fencing-Name: reports/nightly' \\
       --data @report http://127.0.0.1:7421/report
  curl 'http://127.0.0.1:7421/.leasehold/fence?name=reports/nightly'

A proxy is weaker than a check in the service's own transaction: after a timeout
the service may still carry out the request, later than that of a newer holder.

Exit codes: 0 after a signal, 1 it could not start, 2 usage error.";

/// `fence proxy`.
#[derive(Debug, Args)]
pub(crate) struct FenceProxyArgs {
    /// The service: http://HOST:PORT, with a path if it is not at the root
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: String,
    /// Keep the highest tokens in this directory, of one proxy at a time
    #[arg(long, value_name = "DIR")]
    pub(crate) fence: PathBuf,
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7421", value_parser = values::address)]
    pub(crate) listen: SocketAddr,
    /// Allow an address that other machines can reach, without TLS and authentication
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Fence every request under this name [default: the header Fencing-Name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Fence reads too: GET, HEAD, OPTIONS and TRACE need a token as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Give up on a request that the service has not answered after LENGTH
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = values::upstream_time, allow_hyphen_values = true)]
    pub(crate) timeout: Duration,
    /// After a timeout or a start, delay greater tokens by LENGTH: the time that the service may still work on the old request
    #[arg(long, value_name = "LENGTH", default_value = "0s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) settle: Duration,
    /// Write the address to FILE once it listens (for port 0)
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
}
