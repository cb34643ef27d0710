//! The options of the commands about leases that other processes hold.

use std::time::Duration;

use clap::Args;
use leasehold::{Label, Reason, ResourceName, Revision, Successor, Token};

use super::values;

pub(super) const RELEASE_EXAMPLES: &str = "\
Examples:
  leasehold release leader                 free it
  leasehold release leader --to first      hand it to the first waiter
  leasehold release leader --to web-2      hand it to web-2, past the other waiters
  leasehold release app --holder \"$POD_NAME\" --await-successor 5s   in a stop hook

Exit codes: 0 released, or handed to the waiter that --to names; 1 no holder, no such
waiter, or no successor in time; 120 the holder still holds it.";

pub(super) const WATCH_EXAMPLES: &str = "\
Examples:
  leasehold watch                  all names, from now on
  leasehold watch jobs/            only names that begin with jobs/
  leasehold watch --after 17       continue after revision 17";

/// How long a holder has to release, and one that hands over to a successor, unless told otherwise.
const RELEASE_WAIT: Duration = Duration::from_secs(10);
const HANDOVER_WAIT: Duration = Duration::from_secs(30);

/// A command about one resource.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
}

/// `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Check whether this token is current, instead of showing the lease
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only names that begin with this
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Include names that are free
    #[arg(long)]
    pub(crate) all: bool,
    /// List connected clients instead of names
    #[arg(long, conflicts_with_all = ["prefix", "all"])]
    pub(crate) sessions: bool,
}

/// `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only names that begin with this
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Start after this revision instead of now; the store keeps only the latest changes
    #[arg(long, value_name = "REVISION", value_parser = values::revision, allow_hyphen_values = true)]
    pub(crate) after: Option<Revision>,
}

/// `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Hand NAME to the first waiter, or to the waiter with the label HOLDER
    ///
    /// The holder keeps NAME until its successor is ready, and only then finishes and releases it. Nothing happens without such a waiter.
    #[arg(long, value_name = "HOLDER|first", value_parser = to, allow_hyphen_values = true, conflicts_with_all = ["holder", "await_successor"])]
    pub(crate) to: Option<Successor>,
    /// Only the lease with this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Wait up to LENGTH for the release [default: 10s; with --to, 30s for the successor]
    #[arg(long, value_name = "LENGTH", value_parser = values::wait, allow_hyphen_values = true)]
    wait: Option<Duration>,
    /// Only if held by LABEL; otherwise do nothing, exit 0
    ///
    /// For the stop hook of one replica of many: without it, the present holder is asked, even if that is another replica.
    #[arg(long, value_name = "LABEL", value_parser = values::label, allow_hyphen_values = true, conflicts_with = "token")]
    pub(crate) holder: Option<Label>,
    /// Then wait up to LENGTH for the next holder, and show it
    ///
    /// For the preStop hook of an orchestrator, together with --holder. Exits 0 when NAME has a new holder, 1 when LENGTH is over.
    #[arg(long, value_name = "LENGTH", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) await_successor: Option<Duration>,
}

impl ReleaseArgs {
    /// How long the holder, or its successor, is waited for.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.unwrap_or(if self.to.is_some() { HANDOVER_WAIT } else { RELEASE_WAIT })
    }
}

fn to(text: &str) -> Result<Successor, String> {
    match text {
        "first" => Ok(Successor::FirstWaiter),
        label => values::label(label).map(Successor::Labelled),
    }
}

/// `revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Why; shown in the history and to the holder
    #[arg(long, value_name = "TEXT", value_parser = values::reason, allow_hyphen_values = true)]
    pub(crate) reason: Reason,
    /// Only the lease with this token; required if NAME has several holders
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Grant NAME again at once; only tokens then protect against the old holder
    #[arg(long)]
    pub(crate) now: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}
