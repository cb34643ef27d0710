//! The command line: what can be asked for, in the words of the help texts.

mod alarms;
mod bench;
mod check_history;
mod cluster;
mod fence_check;
mod fence_proxy;
mod files;
mod gaps;
mod plan;
mod probe;
mod run;
mod serve;
mod values;

use std::error::Error as _;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use leasehold::{Label, Reason, ResourceName, Revision, Token};

use crate::exit::Exit;

pub(crate) use alarms::{AlarmsArgs, AlarmsCommand, ClearArgs};
pub(crate) use bench::BenchArgs;
pub(crate) use check_history::CheckHistoryArgs;
pub(crate) use cluster::{AddArgs, ClusterCommand, PromoteArgs};
pub(crate) use fence_check::{Database, FenceCheckArgs, FenceName};
pub(crate) use fence_proxy::FenceProxyArgs;
pub(crate) use files::{BackupArgs, LifeArgs, RecoverArgs, RestoreArgs, VerifyArgs};
pub(crate) use gaps::GapsArgs;
pub(crate) use plan::{Percent, PlanArgs};
pub(crate) use probe::ProbeArgs;
pub(crate) use run::{AcquireArgs, HoldArgs, OnLossWord, ReadyWord, RunArgs};
pub(crate) use serve::ServeArgs;

const ROOT_EXAMPLES: &str = "\
Examples:
  leasehold run backup -- ./backup.sh      run it here, on no other machine at the same time
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
  126  the command cannot be executed
  127  the command was not found
  Otherwise `run` passes on the exit code of the command.";

const HANDOVER_EXAMPLES: &str = "\
Examples:
  leasehold handover leader                to the first waiter
  leasehold handover leader --to web-2     to web-2, wherever it stands in the queue

Exit codes: 0 handed over, 1 no such waiter or another one holds it now,
120 the holder did not release it in time.";

const WATCH_EXAMPLES: &str = "\
Examples:
  leasehold watch                  all names, from now on
  leasehold watch jobs/            only names that begin with jobs/
  leasehold watch --after 17       continue after revision 17";

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

/// What every command takes.
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
    /// Run a command while holding NAME, or several names at once
    ///
    /// Waits until NAME is free, runs the command, and releases NAME when the command and all its child processes have ended. If the lease
    /// cannot be renewed, the command is killed before another process may hold NAME. Exits with the command's exit code, or with 128 + N if
    /// signal N ended the command.
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),
    /// Hold NAME until a signal or `leasehold release`
    ///
    /// Prints one line at the grant and one at every change of state. Releases NAME and ends on SIGTERM, SIGINT or SIGHUP, on `leasehold
    /// release NAME`, and at the end of standard input if that is a pipe.
    #[command(after_help = run::HOLD_EXAMPLES)]
    Hold(HoldArgs),
    /// Ask the holder of NAME to finish and release it
    ///
    /// The holder decides when: `leasehold run` sends SIGTERM to its command and waits for it. To end the lease of a holder that does not
    /// answer, use `leasehold revoke`.
    Release(ReleaseArgs),
    /// Ask the holder of NAME to finish and hand it to a waiter
    ///
    /// As `release`, but the holder keeps NAME until its successor is ready, and only then finishes and releases it. Nothing happens
    /// without a waiter.
    #[command(after_help = HANDOVER_EXAMPLES)]
    Handover(HandoverArgs),
    /// Show who holds NAME, since when, and who waits
    ///
    /// Exits 0 if NAME is held, 1 if it is free.
    Get(NameArgs),
    /// List the names that are held or waited for
    List(ListArgs),
    /// Print every change of a lease as it happens
    ///
    /// Prints one line for each grant, each end of a lease, each new value and each write of a register. A line begins with the revision of
    /// its change. Runs until SIGINT, SIGTERM or SIGHUP.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// List connected clients
    Sessions,
    /// Show past and present holders of NAME, newest first, and how each lease ended
    History(NameArgs),
    /// Show how long a name had no working holder, and why
    ///
    /// A gap lasts from the last sign of life of one holder until the next holder is ready. Each gap is split by cause: detection, grace,
    /// cool-down, no waiter, warm-up of the next holder, outage of the service.
    #[command(after_help = gaps::EXAMPLES)]
    Gaps(GapsArgs),
    /// Check whether TOKEN belongs to a present lease of NAME
    ///
    /// Exits 0 if it is current, 1 if not.
    Check(CheckArgs),
    /// List the names that an alarm blocks, or clear an alarm
    ///
    /// An alarm: a client released or wrote with a token that this store never granted. The state may have been set back; receivers that have
    /// seen that token would refuse every new holder. The store does not grant the name until an operator clears the alarm.
    #[command(after_help = alarms::EXAMPLES)]
    Alarms(AlarmsArgs),
    /// Show the highest token that each receiver has seen
    ///
    /// Compares it with the token of the present holder. Also shows the last refused writes with their holders, and the smallest token with
    /// which another store may start. Changes nothing.
    #[command(after_help = fence_check::EXAMPLES, override_usage = fence_check::USAGE)]
    FenceCheck(FenceCheckArgs),
    /// End the lease of a holder that does not answer
    ///
    /// Shows holder and token and asks for confirmation. The store grants NAME again once the old holder has acknowledged or its time has run
    /// out; the answer says when that is at the latest.
    Revoke(RevokeArgs),
    /// Check ttl, renewal and margin; show the failover times they give
    ///
    /// Checks the numbers as the store checks every session. Shows both sides of each inequality, gaps, traffic and the effect of a pause, or
    /// the nearest numbers that are accepted. Needs no store. Exits 0 if the numbers are accepted, 1 if not.
    #[command(after_help = plan::EXAMPLES)]
    Plan(Box<PlanArgs>),
    /// Measure round trips, pauses and clocks; check a ttl against them
    ///
    /// Renews a session of its own about a hundred times a second and leaves nothing behind. Ctrl-C ends it early and shows the results so
    /// far.
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),
    /// Put load on a store and measure how fast it answers
    ///
    /// Acquires and releases, then renews, with sessions and names of its own, and leaves no lease behind. Refuses a store in which other
    /// clients hold leases. Ctrl-C ends it early and shows the results so far.
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Serve leases to many machines
    ///
    /// Runs until SIGTERM or SIGINT. Then it closes its port, answers open requests and exits 0; a second signal ends it at once. Neither
    /// that nor a crash loses anything: every answer is on disk first. Other commands use the service with --store leasehold://HOST:PORT;
    /// other programs speak HTTP with JSON, or gRPC, on the same port.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Refuse writes with a stale token in front of a service that cannot check them
    ///
    /// A reverse proxy that keeps the highest token of every fence name. It refuses requests with a smaller token, and forwards one with a
    /// greater token after those with smaller tokens are answered. Runs until SIGTERM or SIGINT; then it answers open requests and ends.
    #[command(after_help = fence_proxy::EXAMPLES)]
    FenceProxy(Box<FenceProxyArgs>),
    /// Show, add, promote and remove the nodes of a service
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(ClusterCommand),
    /// Write the state of a running service to a file
    ///
    /// The file is written whole or not at all. It contains the keys of sessions: protect it like the data directory.
    #[command(after_help = files::BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Make a data directory from a backup
    ///
    /// Stop the old service first. The restored state has a new node, a greater epoch, so that every token is greater than all before, and
    /// no sessions or leases. It grants nothing until the leases of old holders have run out. Start it with `leasehold serve`.
    #[command(after_help = files::RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Continue with one node of a cluster that has lost its majority
    ///
    /// As restore, from the node's own log and in its own directory; the old log is kept beside the new one. Entries that only other nodes
    /// had are lost.
    #[command(after_help = files::RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
    /// Check a data directory that is not in use, or a backup
    ///
    /// Reads everything, replays the log, and reports damage by file and byte. Exits 0 if all is good, 1 if anything is damaged.
    #[command(after_help = files::VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Check a recorded history for exclusion, token order and renewals
    ///
    /// Reads JSON lines, as `leasehold run --history` and other programs write them. Exits 0 if every check held, 3 if a promise was
    /// violated, 4 if the history cannot be judged.
    #[command(after_help = check_history::EXAMPLES)]
    CheckHistory(CheckHistoryArgs),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page
    Man(ManArgs),
}

/// A command about one resource.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
}

/// `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Only the lease with this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Wait up to LENGTH for the release
    #[arg(long, value_name = "LENGTH", default_value = "10s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) wait: Duration,
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

/// `handover`.
#[derive(Debug, Args)]
pub(crate) struct HandoverArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// To the first waiter with this label, past the others [default: to the first waiter]
    #[arg(long, value_name = "HOLDER", value_parser = values::label, allow_hyphen_values = true)]
    pub(crate) to: Option<Label>,
    /// Only the lease with this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Wait up to LENGTH for the successor
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) wait: Duration,
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

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// The token
    #[arg(value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Token,
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

/// `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands into this directory instead
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Reads the command line of this process. What cannot be understood is said, and becomes an exit code.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let command = without_empty_variables(Cli::command());
    let matches = command.try_get_matches().map_err(|error| say(&without_variable(error)))?;
    if names_store_to_serve(&matches) {
        // Whoever names one here means another option, and would serve another directory than they think.
        let why = "serve takes no --store; name its directory with --data, and its address with --listen";
        let _ = writeln!(std::io::stderr(), "leasehold: {why}");
        return Err(Exit::MISUSE);
    }
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| say(&error))?;
    cli.note_variables(&matches);
    Ok(cli)
}

/// Options that name receivers: of which command, as which argument, and the variable that is read if none is given.
const RECEIVERS: [(&str, &str, &str); 3] = [
    ("run", "seal_at", run::SEAL_AT),
    ("hold", "seal_at", run::SEAL_AT),
    ("fence-check", "receivers", fence_check::RECEIVERS),
];

/// A variable that is set to nothing is not set: so is one that a script has left empty.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    RECEIVERS.into_iter().fold(command, |command, (of, argument, variable)| {
        match std::env::var_os(variable) {
            Some(value) if value.is_empty() => command.mut_subcommand(of, |command| {
                command.mut_arg(argument, |argument| argument.env(Resettable::Reset))
            }),
            _ => command,
        }
    })
}

impl Cli {
    /// Notes which receivers come from a variable: whoever reads an error about one has not typed it.
    fn note_variables(&mut self, matches: &ArgMatches) {
        let variable = RECEIVERS.into_iter().find_map(|(of, argument, variable)| {
            let source = matches.subcommand_matches(of)?.value_source(argument)?;
            (source == ValueSource::EnvVariable).then_some(variable)
        });
        match &mut self.command {
            Command::Run(args) => args.acquire.variable = variable,
            Command::Hold(args) => args.acquire.variable = variable,
            Command::FenceCheck(args) => args.variable = variable,
            _ => {}
        }
    }
}

/// The same mistake as if no store were named by a variable: the parser shows everything that was given in its usage line, also for commands
/// that have no store.
fn without_variable(error: clap::Error) -> clap::Error {
    // A help text names the variable, and is no mistake.
    if !error.use_stderr() {
        return error;
    }
    let command = Cli::command().mut_arg("store", |store| store.env(Resettable::Reset));
    without_empty_variables(command).try_get_matches().err().unwrap_or(error)
}

/// Whether a service is given a store on the command line. A variable that is set for other commands does no harm.
fn names_store_to_serve(matches: &ArgMatches) -> bool {
    let serve = matches.subcommand_matches("serve");
    serve.is_some_and(|own| own.value_source("store") == Some(ValueSource::CommandLine))
}

fn say(error: &clap::Error) -> Exit {
    if let (ErrorKind::ValueValidation, Some(why)) = (error.kind(), error.source()) {
        // One line, and never the whole of a value that may be a hundred kilobytes long.
        let argument =
            error.get(ContextKind::InvalidArg).map(|argument| format!("{argument}: ")).unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "leasehold: {argument}{why}");
        return Exit::MISUSE;
    }
    // Nobody reads: that is no error of this program.
    let _ = error.print();
    u8::try_from(error.exit_code())
        .map_or(Exit::MISUSE, |code| if code == 0 { Exit::OK } else { Exit::MISUSE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_reference_names_every_command_and_option() {
        let reference = include_str!("../../../docs/reference/cli.md");
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(reference.contains(&format!("\n## {name}\n")), "{name} has no section");
            for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(reference.contains(&format!("--{option}")), "{name} --{option} is not explained");
            }
        }
    }

    #[test]
    fn what_follows_two_dashes_is_the_command() {
        let cli = Cli::try_parse_from(["leasehold", "run", "a", "--ttl", "2s", "--", "ls", "--ttl"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not a run") };
        assert_eq!(run.command, ["ls", "--ttl"]);
        assert_eq!(run.names.len(), 1);
        assert_eq!(run.acquire.ttl, Duration::from_secs(2));
    }
}
