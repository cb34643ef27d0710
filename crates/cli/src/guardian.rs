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

pub(crate) mod watch;

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, getpid, getpriority_process, set_child_subreaper, setpgid, setpriority_process, setsid,
};

use self::clock::Point;
use self::countdown::{Countdown, Leads, Rules};
use self::family::Family;
use self::link::{Link, Received};
use self::message::{Message, Order, Report};
use crate::signals::is_ignored;

/// The hidden command that makes the binary a guardian.
pub const COMMAND_WORD: &str = "__guardian";

/// What must not end or stop the guardian: only the end of the command does.
const UNMOVED_BY: [Signal; 7] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// How much nicer than the command the scheduler shall be to the guardian, where that is permitted.
const PRIORITY_GAIN: i32 = 5;

/// The arguments, behind [`COMMAND_WORD`], that make a guardian with these rules for this command.
pub fn arguments(rules: &Rules, command: &[OsString]) -> Vec<OsString> {
    let rules = serde_json::to_string(rules).expect("lengths and words are JSON");
    std::iter::once(rules.into()).chain(command.iter().cloned()).collect()
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
    match begin(&link, &rules, &command) {
        Ok(Some((ends, deadline, command))) => {
            prefer_this_process();
            watch::watch(link, ends, Countdown::new(deadline, rules), Family::of(command));
            return ExitCode::SUCCESS;
        }
        // When the wrapper is gone there is nobody to tell.
        Err(error) => drop(link.send(&Report::FailedToStart(error.raw_os_error()).encode(), None)),
        Ok(None) => {}
    }
    ExitCode::FAILURE
}

/// Starts the command when it is ordered to. Nothing if it is not.
fn begin(
    link: &Link,
    rules: &Rules,
    command: &[OsString],
) -> Result<Option<(watch::Ends, Point, Pid)>, Errno> {
    prepare()?;
    let Some((deadline, streams)) = first_order(link) else { return Ok(None) };
    // Before the start, so that no end of a child can be missed.
    let ends = watch::Ends::subscribe()?;
    if deadline.remaining(Point::now()) <= rules.leads.term() {
        return Err(Errno::TIMEDOUT);
    }
    Ok(Some((ends, deadline, start(command, streams)?)))
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<(Rules, Vec<OsString>)> {
    let mut arguments = arguments.into_iter();
    let mut rules: Rules = serde_json::from_str(arguments.next()?.to_str()?).ok()?;
    // Whoever says so: SIGKILL never goes out before SIGTERM.
    rules.leads = Leads::new(rules.leads.term(), rules.leads.kill());
    let command: Vec<OsString> = arguments.collect();
    (!command.is_empty()).then_some((rules, command))
}

/// Takes this process out of the reach of the terminal and of whoever signals the wrapper's group, and makes it
/// the one to whom orphans fall.
fn prepare() -> Result<(), Errno> {
    for signal in UNMOVED_BY {
        // One that is ignored already must stay so: the command inherits that (nohup), and a handler would
        // turn it into the default at exec.
        if !is_ignored(signal) {
            signal_hook::flag::register(signal.as_raw(), Arc::default()).map_err(|error| errno(&error))?;
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

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::countdown::{Leads, OnLoss};
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
