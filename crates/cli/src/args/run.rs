//! `run` and `hold`: how a lease is asked for, and what becomes of a command under it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use leasehold::core::limits::MAX_UNIT;
use leasehold::core::{Mode, Value};
use leasehold::{Label, ResourceName};

use super::values;
use crate::supervise::OnLoss;
use crate::words;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold run backup ./backup.sh --full        options of the command follow it
  leasehold run -n backup ./backup.sh            exit 120 at once if held
  leasehold run -n -E 0 backup ./backup.sh       exit 0 if held, as cron likes it
  leasehold run --slots 4 builds make            at most four at a time
  leasehold run db --also disk ./move.sh         both at once, or neither
  leasehold run --drain 30s app ./server         on SIGTERM, end within 30s
  leasehold run --ready notify app ./server      the server reports when it is ready
  leasehold run backup sh -c 'echo token $LEASEHOLD_TOKEN'

Environment of the command:
  LEASEHOLD_TOKEN     the fencing token: send it with every write
  LEASEHOLD_RESOURCE  the name to fence under: NAME, or NAME#SLOT
  LEASEHOLD_TOKENS    one line per lease: token, space, name to fence under
  LEASEHOLD_SESSION   the session of the lease
  LEASEHOLD_STORE     the store
  NOTIFY_SOCKET       with --ready notify: send READY=1 to it
  With several names, LEASEHOLD_TOKEN and LEASEHOLD_RESOURCE are those of the first.";

pub(super) const HOLD_EXAMPLES: &str = "\
Examples:
  leasehold hold leader --value 10.0.0.5:8080     until Ctrl-C, or leasehold release leader
  leasehold hold maintenance --no-wait            exit 120 if held
  leasehold hold leader --json                    one JSON object a line";

/// Names receivers to seal, if no option does.
pub(super) const SEAL_AT: &str = "LEASEHOLD_SEAL_AT";

/// What is kept of a drain's budget to let go in, if nobody says how long the command may take.
const TO_LET_GO: Duration = Duration::from_secs(1);

/// How a lease is asked for.
#[derive(Debug, Args)]
pub(crate) struct AcquireArgs {
    /// How long the lease outlives its last renewal, at least 500ms
    #[arg(long, value_name = "LENGTH", default_value = "10s", value_parser = values::ttl, allow_hyphen_values = true)]
    pub(crate) ttl: Duration,
    /// Wait up to LENGTH, then exit 120 [default and maximum: 24h]
    #[arg(long, short, value_name = "LENGTH", value_parser = values::wait, conflicts_with = "no_wait", allow_hyphen_values = true)]
    pub(crate) wait: Option<Duration>,
    /// Exit 120 at once if NAME is held
    #[arg(long, short)]
    pub(crate) no_wait: bool,
    /// Exit N instead of 120 if NAME is held
    #[arg(long, short = 'E', value_name = "N", value_parser = values::exit_code, allow_hyphen_values = true)]
    pub(crate) held_exit: Option<u8>,
    /// Print nothing if NAME is held; exit 120 tells
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Share NAME with other holders that use --shared
    #[arg(long, conflicts_with = "slots")]
    pub(crate) shared: bool,
    /// Take one of N slots; every user of NAME gives the same N
    #[arg(long, value_name = "N", value_parser = values::slots, allow_hyphen_values = true)]
    pub(crate) slots: Option<u32>,
    /// Publish this with the lease, for example an address; up to 64 KiB
    #[arg(long, value_parser = OsStringValueParser::new().try_map(values::value), allow_hyphen_values = true)]
    pub(crate) value: Option<Value>,
    /// Make the receiver at URL refuse older tokens first; repeatable
    ///
    /// A URL as for `leasehold fence check`: postgres://, mysql://, sqlite:PATH, redis://, s3://BUCKET/PATH, file:PATH, http:// (`leasehold
    /// fence proxy`). If the receiver cannot be sealed, NAME is released and the exit code is 119.
    #[arg(
        long,
        value_name = "URL",
        env = SEAL_AT,
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub(crate) seal_at: Vec<String>,
    /// The variable that these receivers come from, if it is one.
    #[arg(skip)]
    pub(crate) variable: Option<&'static str>,
    /// Name shown to others [default: user, host, pid and command]
    #[arg(long, value_parser = values::label, allow_hyphen_values = true)]
    pub(crate) label: Option<Label>,
    /// Renew every LENGTH [default: a third of the ttl]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) renew_every: Option<Duration>,
    /// Reserve NAME for this holder for LENGTH after the ttl
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) grace: Option<Duration>,
    /// Let this holder return for LENGTH after the ttl, unless NAME was taken
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) hard: Option<Duration>,
    /// After a crash, leave NAME free for LENGTH (for receivers without a fence)
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true, hide_short_help = true)]
    pub(crate) delay: Option<Duration>,
}

impl AcquireArgs {
    /// How the name is to be held.
    pub(crate) fn mode(&self) -> Mode {
        match self.slots {
            Some(of) => Mode::Slot { of },
            None if self.shared => Mode::Shared,
            None => Mode::Exclusive,
        }
    }
}

/// `hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// The name of the lease: up to 512 bytes, no control characters, no '#'
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    #[command(flatten)]
    pub(crate) acquire: AcquireArgs,
}

/// `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The name of the lease: up to 512 bytes, no control characters, no '#'
    #[arg(value_parser = values::name)]
    name: ResourceName,
    /// Hold this name too, all at once or none; repeatable, 64 names at most
    #[arg(long, value_name = "NAME", value_parser = values::name, allow_hyphen_values = true)]
    also: Vec<ResourceName>,
    #[command(flatten)]
    pub(crate) acquire: AcquireArgs,
    /// SIGKILL this long after SIGTERM
    ///
    /// The command gets SIGTERM when this program gets SIGTERM or is killed, on `leasehold release NAME`, and when the lease is lost.
    /// Without this option it may take as long as the lease is renewed.
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true)]
    pub(crate) kill_after: Option<Duration>,
    /// What to do with the command if the lease is not renewed in time
    ///
    /// In both cases SIGKILL comes before another process may hold NAME. A frozen command cannot clean up before that.
    #[arg(long, value_enum, value_name = "WHAT", default_value = "stop")]
    pub(crate) on_loss: OnLoss,
    /// On SIGTERM: stop, release and await the successor within BUDGET (min 2s)
    ///
    /// BUDGET is the time that an orchestrator allows between SIGTERM and SIGKILL. The command gets SIGTERM, and SIGKILL after --kill-after,
    /// or one second before BUDGET is over. Then NAME is released as drained, and this program waits for the rest of BUDGET for the next
    /// holder and shows it.
    #[arg(long, value_name = "BUDGET", value_parser = values::drain, allow_hyphen_values = true)]
    pub(crate) drain: Option<Duration>,
    /// When the command counts as ready
    ///
    /// With notify the command is warming up until it sends READY=1 to the socket in NOTIFY_SOCKET, as services of systemd do
    /// (`systemd-notify --ready`). `leasehold gaps` counts the warm-up as part of the gap. It does not change who holds NAME.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "granted")]
    pub(crate) ready: ReadyWord,
    /// Append what this holder observes to FILE, for `leasehold check-history`
    #[arg(long, value_name = "FILE", hide_short_help = true, value_parser = values::history_file)]
    pub(crate) history: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What `--ready` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadyWord {
    /// At the grant
    Granted,
    /// When it reports READY=1
    Notify,
}

impl RunArgs {
    /// Looks at what the parser cannot see: what fits together only by itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let names = self.names();
        let count = names.len();
        if count > MAX_UNIT {
            return Err(format!(
                "{count} names are above the maximum of {MAX_UNIT} that are had at once; agree on one name that stands for several"
            ));
        }
        if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            return Err(format!("{} is named twice; name each resource once", twice.1));
        }
        match (self.kill_after, self.drain) {
            (Some(kill_after), Some(budget)) if kill_after >= budget => Err(format!(
                "--kill-after {} leaves nothing of --drain {} to let go in; choose a shorter --kill-after or a longer --drain",
                words::length(kill_after),
                words::length(budget)
            )),
            _ => Ok(()),
        }
    }

    /// All names, in the order in which they were given.
    pub(crate) fn names(&self) -> Vec<ResourceName> {
        std::iter::once(&self.name).chain(&self.also).cloned().collect()
    }

    /// How long after SIGTERM what still runs is killed.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.kill_after.or_else(|| self.drain.map(|budget| budget.saturating_sub(TO_LET_GO)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn run(options: &[&str]) -> RunArgs {
        let words = [&["leasehold", "run"], options, &["true"]].concat();
        let Command::Run(run) = Cli::try_parse_from(words).unwrap().command else { panic!("not a run") };
        *run
    }

    #[test]
    fn names_are_had_together_each_once_and_not_too_many() {
        let three = run(&["a", "--also", "b", "--ttl", "2s", "--also", "c"]).names();
        assert_eq!(three.iter().map(ResourceName::as_str).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(run(&["a", "--also", "b"]).check(), Ok(()));
        let twice = run(&["a", "--also", "b", "--also", "a"]).check().unwrap_err();
        assert_eq!(twice, "a is named twice; name each resource once");
        let many: Vec<String> = (1..=MAX_UNIT).map(|number| format!("--also=n{number}")).collect();
        let many: Vec<&str> = std::iter::once("a").chain(many.iter().map(String::as_str)).collect();
        assert_eq!(run(&many[..MAX_UNIT]).check(), Ok(()));
        let refused = run(&many).check().unwrap_err();
        assert!(refused.starts_with("65 names are above the maximum of 64 "), "{refused}");
    }

    #[test]
    fn a_mode_is_for_all_names() {
        assert_eq!(run(&["a", "--slots", "2"]).check(), Ok(()));
        assert_eq!(run(&["a", "--also", "b", "--slots", "2"]).check(), Ok(()));
    }

    #[test]
    fn the_first_word_behind_the_name_begins_the_command_with_or_without_two_dashes() {
        let command = |words: &[&str]| {
            let words = [&["leasehold", "run"], words].concat();
            let Command::Run(run) = Cli::try_parse_from(words).unwrap().command else { panic!("not a run") };
            (run.acquire.ttl.as_secs(), run.command)
        };
        let own = |ttl: u64, words: &[&str]| (ttl, words.iter().map(Into::into).collect::<Vec<OsString>>());
        assert_eq!(command(&["a", "ls", "--ttl", "3s"]), own(10, &["ls", "--ttl", "3s"]));
        assert_eq!(command(&["a", "--ttl", "2s", "ls", "-n", "--", "x"]), own(2, &["ls", "-n", "--", "x"]));
        assert_eq!(command(&["--ttl", "2s", "a", "--", "ls", "--ttl"]), own(2, &["ls", "--ttl"]));
        assert_eq!(command(&["a", "--", "--odd"]), own(10, &["--odd"]));
        // A mistyped option is no command.
        assert!(Cli::try_parse_from(["leasehold", "run", "a", "--tll", "2s", "ls"]).is_err());
    }

    #[test]
    fn short_flags_are_those_of_flock() {
        let short = run(&["-n", "-E", "7", "a"]).acquire;
        assert_eq!((short.no_wait, short.held_exit), (true, Some(7)));
        assert_eq!(run(&["-w", "3s", "a"]).acquire.wait, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_drain_leaves_time_to_let_go() {
        let seconds = Duration::from_secs;
        assert_eq!(run(&["a"]).patience(), None);
        assert_eq!(run(&["a", "--kill-after", "5s"]).patience(), Some(seconds(5)));
        assert_eq!(run(&["a", "--drain", "30s"]).patience(), Some(seconds(29)));
        let both = run(&["a", "--drain", "30s", "--kill-after", "10s"]);
        assert_eq!((both.patience(), both.check()), (Some(seconds(10)), Ok(())));
        let refused = run(&["a", "--drain", "5s", "--kill-after", "5s"]).check().unwrap_err();
        assert!(
            refused.starts_with("--kill-after 5s leaves nothing of --drain 5s to let go in"),
            "{refused}"
        );
    }
}
