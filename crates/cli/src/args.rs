//! The command line: what can be asked for, in the words of the help texts.

mod alarms;
mod bench;
mod check_history;
mod cluster;
mod data;
mod fence;
mod fence_proxy;
mod gaps;
mod groups;
mod leases;
mod mistakes;
mod parse;
mod plan;
mod probe;
#[cfg(test)]
mod reference;
mod run;
mod serve;
mod values;

use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use alarms::{AlarmsArgs, AlarmsCommand, ClearArgs};
pub(crate) use bench::BenchArgs;
pub(crate) use check_history::CheckHistoryArgs;
pub(crate) use cluster::{AddArgs, ClusterCommand};
pub(crate) use data::{BackupArgs, DataCommand, LifeArgs, RecoverArgs, RestoreArgs, VerifyArgs};
pub(crate) use fence::{Database, FenceCheckArgs, FenceCommand, FenceName};
pub(crate) use fence_proxy::FenceProxyArgs;
pub(crate) use gaps::GapsArgs;
pub(crate) use groups::command;
pub(crate) use leases::{GetArgs, ListArgs, NameArgs, ReleaseArgs, RevokeArgs, WatchArgs};
pub(crate) use parse::parse;
pub(crate) use plan::{Percent, PlanArgs};
pub(crate) use probe::ProbeArgs;
pub(crate) use run::{AcquireArgs, HoldArgs, ReadyWord, RunArgs};
pub(crate) use serve::ServeArgs;

const ROOT_EXAMPLES: &str = "\
`leasehold COMMAND --help` explains each command.

Examples:
  leasehold run backup ./backup.sh         run it here, on no other machine at the same time
  leasehold get backup                     show who holds it, and since when
  leasehold gaps backup                    show when it had no holder, and why
  leasehold release backup                 ask the holder to finish
  leasehold revoke backup --reason stuck   end the lease of a dead holder
  leasehold serve                          serve leases to many machines

Exit codes:
  0    done, or the answer is yes
  1    failed, or the answer is no
  2    usage error
  119  a receiver could not be sealed
  120  held by another
  121  the lease was lost
  122  the store cannot be reached or used
  123  outcome unknown: the request was sent, no answer came
  125  `run` itself failed, or was used wrongly
  126  the command cannot be executed
  127  the command was not found
  Otherwise `run` passes on the exit code of the command.";

/// Leases with fencing tokens: run a command on exactly one of many machines.
///
/// A lease gives one process exclusive rights to a name and stays valid while the holder renews it. Every grant has a token greater than
/// all before it, so that a database can refuse writes with a smaller one.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_help = ROOT_EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, but for those that use no store ([`groups`]).
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where the leases are kept: leasehold://HOST:PORT, dir:PATH or a path
    ///
    /// A service that many machines share (`leasehold serve`), or a directory that the processes of one machine share. Default: the
    /// directory leasehold in $XDG_STATE_HOME, or in ~/.local/state.
    #[arg(
        long,
        global = true,
        env = "LEASEHOLD_STORE",
        value_name = "URL",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) store: Option<String>,
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Give up after LENGTH without a connection
    #[arg(long, global = true, help_heading = "Global options", value_name = "LENGTH", default_value = "10s", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) timeout: Duration,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding NAME
    ///
    /// Waits until NAME is free, runs the command, and releases NAME when the command and all its child processes have ended. If the lease
    /// cannot be renewed, the command is killed before another process may hold NAME. Exits with the command's exit code, or with 128 + N if
    /// signal N ended the command. Options of `run` stand before CMD.
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),
    /// Hold NAME until a signal or `leasehold release`
    ///
    /// Prints one line at the grant and one at every change of state. Releases NAME and ends on SIGTERM, SIGINT or SIGHUP, on `leasehold
    /// release NAME`, and at the end of standard input if that is a pipe.
    #[command(after_help = run::HOLD_EXAMPLES)]
    Hold(HoldArgs),
    /// Show who holds NAME, since when, and who waits
    ///
    /// Exits 0 if NAME is held, 1 if it is free. With --token: 0 if that token belongs to a present lease of NAME, 1 if not.
    Get(GetArgs),
    /// List the names that are held or waited for
    List(ListArgs),
    /// Print every change of a lease as it happens
    ///
    /// Prints one line for each grant, each end of a lease, each new value and each write of a register. A line begins with the revision of
    /// its change. Runs until SIGINT, SIGTERM or SIGHUP.
    #[command(after_help = leases::WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Ask the holder of NAME to finish and release it
    ///
    /// The holder decides when: `leasehold run` sends SIGTERM to its command and waits for it. To end the lease of a holder that does not
    /// answer, use `leasehold revoke`.
    #[command(after_help = leases::RELEASE_EXAMPLES)]
    Release(ReleaseArgs),
    /// End the lease of a holder that does not answer
    ///
    /// Shows holder and token and asks for confirmation. The store grants NAME again once the old holder has acknowledged or its time has run
    /// out; the answer says when that is at the latest.
    Revoke(RevokeArgs),
    /// Show past and present holders of NAME, newest first, and how each lease ended
    History(NameArgs),
    /// Show how long a name had no working holder, and why
    ///
    /// A gap lasts from the last sign of life of one holder until the next holder is ready. Each gap is split by cause: detection, grace,
    /// cool-down, no waiter, warm-up of the next holder, outage of the service.
    #[command(after_help = gaps::EXAMPLES)]
    Gaps(GapsArgs),
    /// Check ttl, renewal and margin; show the failover times they give
    ///
    /// Checks the numbers as the store checks every session. Shows both sides of each inequality, gaps, traffic and the effect of a pause, or
    /// the nearest numbers that are accepted. Needs no store. Exits 0 if the numbers are accepted, 1 if not.
    #[command(after_help = plan::EXAMPLES)]
    Plan(Box<PlanArgs>),
    /// Measure round trips, pauses and clocks; check a ttl against them
    ///
    /// Renews a session of its own about a hundred times a second and leaves nothing behind. Ctrl-C ends it early and shows the results until
    /// then.
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),
    /// Put load on a store and measure how fast it answers
    ///
    /// Acquires and releases, then renews, with sessions and names of its own, and leaves no lease behind. Refuses a store in which other
    /// clients hold leases. Ctrl-C ends it early and shows the results until then.
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Check and protect receivers: the databases, files and services that refuse stale tokens
    #[command(subcommand)]
    Fence(FenceCommand),
    /// Serve leases to many machines
    ///
    /// Runs until SIGTERM or SIGINT. Then it closes its port, answers open requests and exits 0; a second signal ends it at once. Neither
    /// that nor a crash loses anything: every answer is on disk first. Other commands use the service with --store leasehold://HOST:PORT;
    /// other programs speak HTTP with JSON, or gRPC, on the same port.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Show whether the store is reachable, its leader, members and alarms
    ///
    /// For health checks: the exit code tells.
    #[command(after_help = cluster::STATUS_EXIT_CODES)]
    Status,
    /// Show, add, promote and remove the nodes of a service
    #[command(subcommand, flatten_help = true, after_help = cluster::EXAMPLES)]
    Cluster(ClusterCommand),
    /// List the names that an alarm blocks, or clear an alarm
    ///
    /// An alarm: a client released or wrote with a token that this store never granted. The state may have been set back; receivers that have
    /// seen that token would refuse every new holder. The store does not grant the name until an operator clears the alarm.
    #[command(flatten_help = true, after_help = alarms::EXAMPLES)]
    Alarms(AlarmsArgs),
    /// Write the state of a running service to a file
    ///
    /// The file is written whole or not at all. It contains the keys of sessions: protect it like the data directory.
    #[command(after_help = data::BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Check, restore and recover the data of a service that does not run
    #[command(subcommand)]
    Data(DataCommand),
    /// Check a recorded history for exclusion, token order and renewals
    ///
    /// Reads JSON lines, as `leasehold run --history` and other programs write them. Exits 0 if every check held, 3 if a promise was
    /// violated, 4 if the history cannot be judged.
    #[command(hide = true, after_help = check_history::EXAMPLES)]
    CheckHistory(CheckHistoryArgs),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }
}
