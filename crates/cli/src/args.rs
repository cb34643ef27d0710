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
  leasehold run backup -- ./backup.sh      run it while nobody else does
  leasehold get backup                     who holds it, since when
  leasehold gaps backup                    when nobody did, and why
  leasehold release backup                 ask the holder to let go
  leasehold revoke backup --reason stuck   end the lease of a dead holder
  leasehold plan --ttl 10s                 whether these numbers fit together
  leasehold serve                          serve leases to many machines

Exit codes:
  0    done, or the answer is yes
  1    failed, or the answer is no
  2    the command line makes no sense
  3    a history shows that a promise was not kept
  4    a history cannot be judged
  119  a receiver could not be sealed
  120  held by another
  121  lost while it was needed
  122  the store cannot be reached or used
  123  nobody can say whether it was done
  126  the command to run cannot be executed
  127  the command to run was not found
  Otherwise the code of the command that was run.";

const HANDOVER_EXAMPLES: &str = "\
Examples:
  leasehold handover leader                to whoever waits first
  leasehold handover leader --to web-2     to web-2, wherever it stands in the queue

Exit codes: 0 handed over, 1 nobody to hand it to or another than was
named holds it now, 120 the holder did not let go in time.";

const WATCH_EXAMPLES: &str = "\
Examples:
  leasehold watch                  everything, from now on
  leasehold watch jobs/            only names that begin with jobs/
  leasehold watch --after 17       go on after revision 17";

/// Leases with fencing tokens: run a command, or hold a name, on exactly one of many.
///
/// A lease is exclusive authority over a name, for a time that is renewed while the holder lives. Every grant has a token greater
/// than all before it: whatever the holder writes to can refuse writes with a smaller one.
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
    /// Where the leases live: dir:PATH, just a path, or leasehold://HOST:PORT
    ///
    /// A directory that all processes of this machine share, or a service that many machines share (`leasehold serve`). Default:
    /// the directory leasehold in $XDG_STATE_HOME, or in ~/.local/state.
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
    /// Give up when the store is out of reach for so long
    #[arg(long, global = true, help_heading = "Global options", value_name = "LENGTH", default_value = "10s", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) timeout: Duration,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command while holding NAME, or several names at once
    ///
    /// Waits until every NAME is free, runs the command, and lets go when the command and everything it started are gone. If a lease
    /// cannot be kept, the command is ended before another may hold its NAME. The command's exit code is passed through; a command
    /// that a signal N ended gives 128 + N.
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),
    /// Hold NAME until told otherwise
    ///
    /// Prints one line when it is granted and one whenever it stands differently. Ends, and lets go, on SIGTERM, SIGINT or SIGHUP,
    /// when somebody asks with `leasehold release`, and at the end of standard input if that is a pipe.
    Hold(HoldArgs),
    /// Ask the holder of NAME to finish and let go
    ///
    /// The holder decides when: `leasehold run` sends its command SIGTERM and waits for it. To take NAME away from a holder that
    /// does not answer, see `leasehold revoke`.
    Release(ReleaseArgs),
    /// Ask the holder of NAME to finish and hand it to somebody who waits
    ///
    /// As `release`, but nothing happens unless somebody is there to take NAME over: the holder goes on holding it until its successor is
    /// ready, and only then finishes and lets go. Says who holds NAME then.
    #[command(after_help = HANDOVER_EXAMPLES)]
    Handover(HandoverArgs),
    /// Show who holds NAME, since when, and who waits
    ///
    /// Exit code 0 if somebody holds it, 1 if nobody does.
    Get(NameArgs),
    /// List what is held or waited for
    List(ListArgs),
    /// Print what happens to leases, as it happens
    ///
    /// Prints one line for every change: a lease is granted or ends, a holder shows another value, a register is written. Each line
    /// begins with the revision of its change. Goes on until SIGINT, SIGTERM or SIGHUP.
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// List who is alive, whether they hold anything or not
    Sessions,
    /// Show who holds NAME and who held it, newest first, and how each lease ended
    History(NameArgs),
    /// Show for how long nobody acted on NAME, or on any name, and why
    ///
    /// A gap goes from the last sign of life of one holder to the moment at which the next is ready. Each is split into its causes: the silence
    /// until it was noticed, grace, cool-down, the wait until somebody asked, the warm-up of the next holder, outages of the service.
    #[command(after_help = gaps::EXAMPLES)]
    Gaps(GapsArgs),
    /// Say whether TOKEN is that of a present lease of NAME
    ///
    /// Exit code 0 if it is current, 1 if not.
    Check(CheckArgs),
    /// List the names that an alarm keeps from everybody, or answer one
    ///
    /// Somebody gave back or wrote with a token that was never granted here: the state may have been set back, and receivers that
    /// know that token would refuse every new holder. The name goes to nobody until somebody has looked.
    #[command(after_help = alarms::EXAMPLES)]
    Alarms(AlarmsArgs),
    /// Ask receivers which token they have seen under a fence name
    ///
    /// Shows the highest token that each receiver knows beside the one with which the present holder writes, the last writes that were
    /// refused with their holders, and the smallest token that another store may begin with. Changes nothing.
    #[command(after_help = fence_check::EXAMPLES, override_usage = fence_check::USAGE)]
    FenceCheck(FenceCheckArgs),
    /// End the lease of a holder that does not answer
    ///
    /// Shows the token first and asks. The holder may not know yet: until it does, or cannot believe in its lease any more, NAME
    /// goes to nobody, and the answer says how long that is at most.
    Revoke(RevokeArgs),
    /// Say what numbers come to before anybody uses them
    ///
    /// Judges ttl, renewal interval, margin and bounds as every session is judged, and shows both sides of each inequality, gaps, traffic, and
    /// what a pause does. Numbers that do not fit are refused, with the nearest that do. Needs no store. Exit code 0 if they are accepted, 1 if not.
    #[command(after_help = plan::EXAMPLES)]
    Plan(Box<PlanArgs>),
    /// Measure round trips, pauses and clocks, and say whether the numbers of a lease hold
    ///
    /// Renews a session of its own at the store, about a hundred times a second, and leaves nothing behind. Ctrl-C ends it early and shows
    /// what was measured.
    #[command(after_help = probe::EXAMPLES)]
    Probe(ProbeArgs),
    /// Put load on a store and say how fast it answers
    ///
    /// Acquires and releases, then renews, with sessions and names of its own, and leaves no lease behind. Refuses a store in which others hold
    /// leases, unless told otherwise. Ctrl-C ends it early and shows what was measured.
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Serve leases to many machines
    ///
    /// Runs until SIGTERM or SIGINT. Then it closes its port, answers what is under way, and ends with exit code 0; a second signal
    /// ends it at once. That loses nothing, and neither does a crash: what was answered is on disk. Other commands use it with
    /// --store leasehold://HOST:PORT; other programs speak HTTP with JSON, or gRPC, on the same port.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Fence a service that cannot be changed: refuse writes with a stale token before they reach it
    ///
    /// A reverse proxy that keeps the highest token of every fence name. Requests with a smaller one are refused, and one with a greater one is
    /// forwarded when those with smaller ones are answered. Runs until SIGTERM or SIGINT; then it answers what is under way and ends. Needs no
    /// store.
    #[command(after_help = fence_proxy::EXAMPLES)]
    FenceProxy(Box<FenceProxyArgs>),
    /// Look at the nodes of a service, and change who they are
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(ClusterCommand),
    /// Write the state of a running service to a file
    ///
    /// The file is there whole or not at all. It holds what sessions prove themselves with: keep it as you keep the service's own
    /// directory.
    #[command(after_help = files::BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Make a directory for a service from a backup
    ///
    /// Begins another life of the state: a new node, a greater epoch, so that every token is greater than all before, and no sessions and
    /// leases. Nothing is granted until no holder from before can believe in its lease any more. Start the service with `leasehold serve`
    /// afterwards; stop the old one first.
    #[command(after_help = files::RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Let the last node of a cluster that has lost its majority go on alone
    ///
    /// As restore, from the node's own log and in its own directory; that log is kept beside the new one. What other nodes had
    /// acknowledged and this one never got is lost.
    #[command(after_help = files::RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
    /// Check a directory or a backup that nobody uses now
    ///
    /// Reads everything, replays the log, and names damage by file and byte. Exit code 0 if all is good, 1 if anything is damaged.
    #[command(after_help = files::VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Judge what clients saw in a run: exclusion, token order, renewals
    ///
    /// Reads a history of JSON lines, which any program can write, and `leasehold run --history` does. Exit code 0 if everything that
    /// could be judged held, 3 if anything was violated, 4 if the history cannot be judged.
    #[command(after_help = check_history::EXAMPLES)]
    CheckHistory(CheckHistoryArgs),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// A command about one resource.
#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
}

/// `release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Only the lease with this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Wait so long for the holder
    #[arg(long, value_name = "LENGTH", default_value = "10s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) wait: Duration,
    /// Only if the holder is called so; exit code 0 if it is not
    ///
    /// For the hook of one replica of many: without it, whoever holds NAME is asked, also the one that is to stay.
    #[arg(long, value_name = "LABEL", value_parser = values::label, allow_hyphen_values = true, conflicts_with = "token")]
    pub(crate) holder: Option<Label>,
    /// Then wait so long until somebody else holds NAME, and say who
    ///
    /// For the preStop hook of an orchestrator, together with --holder: exit code 0 when somebody else holds NAME, 1 when the time ran out.
    #[arg(long, value_name = "LENGTH", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) await_successor: Option<Duration>,
}

/// `handover`.
#[derive(Debug, Args)]
pub(crate) struct HandoverArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// To the first waiter with this label, past the others [default: to whoever waits first]
    #[arg(long, value_name = "HOLDER", value_parser = values::label, allow_hyphen_values = true)]
    pub(crate) to: Option<Label>,
    /// Only the lease with this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Wait so long until the successor holds NAME
    #[arg(long, value_name = "LENGTH", default_value = "30s", value_parser = values::wait, allow_hyphen_values = true)]
    pub(crate) wait: Duration,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only names that begin with this
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Also names that nobody holds now
    #[arg(long)]
    pub(crate) all: bool,
}

/// `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Watch only names that begin with this [default: all]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: String,
    /// Begin after this revision and not with the next change; a store keeps only the latest changes
    #[arg(long, value_name = "REVISION", value_parser = values::revision, allow_hyphen_values = true)]
    pub(crate) after: Option<Revision>,
}

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// The token
    #[arg(value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Token,
}

/// `revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Why, for the history and for the holder
    #[arg(long, value_name = "TEXT", value_parser = values::reason, allow_hyphen_values = true)]
    pub(crate) reason: Reason,
    /// Only the lease with this token; needed when there are several holders
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Grant NAME to the next at once: from then on only tokens protect against the old holder
    #[arg(long)]
    pub(crate) now: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
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
