//! The guardian: the process that stands between `leasehold run` and the command it runs.
//!
//! The wrapper (`leasehold run`) holds the lease and renews it. The guardian is the same binary, started by the
//! wrapper as a hidden command, and is parent and child subreaper of the command. The wrapper tells it up to
//! which moment the lease is confirmed; the guardian ends the command and everything that came from it before
//! that moment, whatever happens to the wrapper: killed, stopped, starved of network, or gone with its terminal.
//!
//! Promises: SIGTERM to every descendant at the term lead before the deadline, at once when the wrapper is gone;
//! SIGSTOP in the place of that SIGTERM if it is to freeze, and SIGCONT as soon as a later deadline is known;
//! SIGKILL at the kill lead before the deadline, or when a command that was asked to end takes too long, repeated until the kernel says that none is left; a deadline
//! that is over is never extended; "all gone" is reported only when it is true.
//!
//! Deliberately knows nothing of leases, stores or tokens. Does not reach: descendants that changed to another
//! user (no right to kill them), processes in uninterruptible sleep or a frozen cgroup, and nothing at all on a
//! machine too starved to run it. There the fence has to hold.

pub mod clock;
pub mod countdown;
pub mod family;
pub mod link;
pub mod message;
pub mod tree;

mod watch;

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, getpid, getpriority_process, set_child_subreaper, setpgid, setpriority_process, setsid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};

use self::clock::Point;
use self::countdown::{Countdown, Leads, OnLoss, Rules};
use self::family::Family;
use self::link::{Link, Received};
use self::message::{Order, Report};

/// The hidden command that makes the binary a guardian.
pub const COMMAND_WORD: &str = "__guardian";

/// The words for the rules in its arguments.
const STOP: &str = "stop";
const FREEZE: &str = "freeze";
const NEVER: &str = "-";

/// What must not end or stop the guardian: only the end of the command does.
const UNMOVED_BY: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU];

/// How much nicer than the command the scheduler shall be to the guardian, where that is permitted.
const PRIORITY_GAIN: i32 = 5;

/// The arguments, behind [`COMMAND_WORD`], that make a guardian with these rules for this command.
pub fn arguments(rules: &Rules, command: &[OsString]) -> Vec<OsString> {
    let length = |length: Duration| OsString::from(length.as_nanos().to_string());
    let on_loss = match rules.on_loss {
        OnLoss::Stop => STOP,
        OnLoss::Freeze => FREEZE,
    };
    let kill_after = rules.kill_after.map_or_else(|| OsString::from(NEVER), length);
    let mut arguments =
        vec![length(rules.leads.term()), length(rules.leads.kill()), on_loss.into(), kill_after];
    arguments.extend(command.iter().cloned());
    arguments
}

/// Runs as the guardian; `arguments` are those behind [`COMMAND_WORD`], made by [`arguments`].
///
/// Standard input is the link to the wrapper. The exit code means nothing: all that matters was reported.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some((rules, command)) = parse(arguments) else {
        eprintln!("leasehold: {COMMAND_WORD} is for the use of leasehold run alone");
        return ExitCode::FAILURE;
    };
    let Ok(link) = Link::from_inherited(rustix::stdio::stdin()) else { return ExitCode::FAILURE };
    if let Err(error) = prepare() {
        refuse(&link, error);
        return ExitCode::FAILURE;
    }
    let Some((deadline, streams)) = first_order(&link) else { return ExitCode::FAILURE };
    // Before the start, so that no end of a child can be missed.
    let ends = match watch::Ends::subscribe() {
        Ok(ends) => ends,
        Err(error) => {
            refuse(&link, error);
            return ExitCode::FAILURE;
        }
    };
    if deadline.remaining(Point::now()) <= rules.leads.term() {
        refuse(&link, Errno::TIMEDOUT);
        return ExitCode::FAILURE;
    }
    match start(&command, streams) {
        Ok(pid) => {
            prefer_this_process();
            watch::watch(link, ends, Countdown::new(deadline, rules), Family::of(pid));
            ExitCode::SUCCESS
        }
        Err(error) => {
            refuse(&link, error);
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<(Rules, Vec<OsString>)> {
    let mut arguments = arguments.into_iter();
    let length = |word: OsString| Some(Duration::from_nanos(word.to_str()?.parse().ok()?));
    let leads = Leads::new(length(arguments.next()?)?, length(arguments.next()?)?);
    let on_loss = match arguments.next()?.to_str()? {
        STOP => OnLoss::Stop,
        FREEZE => OnLoss::Freeze,
        _ => return None,
    };
    let kill_after = match arguments.next()? {
        word if word == NEVER => None,
        word => Some(length(word)?),
    };
    let command: Vec<OsString> = arguments.collect();
    (!command.is_empty()).then_some((Rules { leads, on_loss, kill_after }, command))
}

/// Takes this process out of the reach of the terminal and of whoever signals the wrapper's group, and makes it
/// the one to whom orphans fall.
fn prepare() -> Result<(), Errno> {
    let ignored = ignored_signals();
    for signal in UNMOVED_BY {
        // One that is ignored already must stay so: the command inherits that (nohup), and a handler would
        // turn it into the default at exec.
        if ignored & (1 << (signal - 1)) == 0 {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
                .map_err(|error| errno(&error))?;
        }
    }
    // The command inherits this session. With a controlling terminal it must be the terminal's, or the command
    // has no job control and no /dev/tty; an own group is enough to keep the terminal's signals away.
    if fs::File::open("/dev/tty").is_ok() {
        setpgid(None, None)?;
    } else {
        setsid()?;
    }
    set_child_subreaper(Some(getpid()))?;
    // Without /proc descendants could be neither found nor counted: better not to start at all.
    tree::Stat::read(getpid()).map(drop).ok_or(Errno::NOSYS)
}

/// One bit per signal, the lowest for signal 1. Nothing when /proc does not say, which is checked elsewhere.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Waits for the order to start. `None` when the wrapper is gone or says something else.
fn first_order(link: &Link) -> Option<(Point, [OwnedFd; link::STANDARD_STREAMS])> {
    loop {
        match link.receive() {
            Received::Packet(packet, streams) => match Order::decode(&packet) {
                Some(Order::Start(deadline)) => return Some((deadline, streams.try_into().ok()?)),
                _ => return None,
            },
            Received::Nothing => {
                // An interrupted wait only looks again.
                let _ = poll(&mut [PollFd::new(link, PollFlags::IN)], None);
            }
            Received::End => return None,
        }
    }
}

fn start(command: &[OsString], streams: [OwnedFd; link::STANDARD_STREAMS]) -> Result<Pid, Errno> {
    let (program, arguments) = command.split_first().expect("an empty command was refused when parsing");
    let [stdin, stdout, stderr] = streams.map(Stdio::from);
    let child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(|error| errno(&error))?;
    // Dropping the handle neither kills nor reaps: both are the family's.
    Ok(Pid::from_child(&child))
}

/// After the start, so that the command does not inherit it. Not permitted to most users, and not needed on
/// a machine that is not overloaded: failure is no news.
fn prefer_this_process() {
    if let Ok(priority) = getpriority_process(None) {
        let _ = setpriority_process(None, priority - PRIORITY_GAIN);
    }
    let _ = fs::write("/proc/self/oom_score_adj", "-900");
}

fn refuse(link: &Link, error: Errno) {
    // When the wrapper is gone there is nobody to tell.
    let _ = link.send(&Report::FailedToStart(error.raw_os_error()).encode(), None);
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_read_back_as_written() {
        let leads = Leads::new(Duration::from_millis(200), Duration::from_millis(50));
        let command: Vec<OsString> = ["sh", "-c", "--", ""].map(OsString::from).to_vec();
        let plain = Rules::from(leads);
        let other = Rules { on_loss: OnLoss::Freeze, kill_after: Some(Duration::from_secs(3)), ..plain };
        for rules in [plain, other] {
            assert_eq!(parse(arguments(&rules, &command)), Some((rules, command.clone())));
            assert_eq!(parse(arguments(&rules, &[])), None);
        }
    }
}
