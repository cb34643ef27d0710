//! The wrapper's side of `leasehold run`: starts the guardian, tells it deadlines, hears what happens.
//!
//! Promises: the command is started under a guardian or not at all; a deadline is handed on only while the
//! present one is not over; when the guardian dies, or is not doing its work, everything that came from the
//! command is killed from here; on a terminal the command has the foreground while it runs, and job control
//! works as it does for any command.
//!
//! Deliberately knows nothing of leases: whoever uses it holds the lease, feeds [`Supervised::deadline`] from
//! confirmed renewals, and releases after [`Event::AllGone`].
//!
//! The process that uses this becomes a child subreaper, must have no other children, and must leave SIGTSTP,
//! SIGTTIN and SIGTTOU at their defaults, because it stops itself with them when the command stops.

mod terminal;
mod watch;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, set_child_subreaper};

use crate::guardian::clock::Point;
use crate::guardian::countdown::{Countdown, nap};
use crate::guardian::link::{Link, Received, Sent};
use crate::guardian::message::{Message, Order, Report};
use crate::guardian::watch::timespec;
use crate::guardian::{self, COMMAND_WORD};

pub use crate::guardian::countdown::{Leads, OnLoss, Rules};
pub use crate::guardian::message::{Cause, Ending};

/// This binary, even if the file was replaced or removed since it was started.
const SELF: &str = "/proc/self/exe";

/// What to run, and under which first deadline.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Variables set for it, in addition to those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// When and how it is ended.
    pub rules: Rules,
    /// Up to when the lease is confirmed now.
    pub deadline: Point,
}

/// Why the command was not started. None of these leaves a process behind that runs past the deadline.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No command was given.
    #[error("no command to run was given")]
    NoCommand,
    /// There is no such program. A shell would exit with 127.
    #[error("command {0:?} was not found")]
    NotFound(OsString),
    /// The program may not be executed, or is not in a format that can be. A shell would exit with 126.
    #[error("command {0:?} cannot be executed: {1}")]
    NotExecutable(OsString, Errno),
    /// Too little of the lease was left to start anything under it.
    #[error("the lease ran out before the command could be started")]
    TooLate,
    /// The guardian could not be started or died at once; the command was not run or was killed.
    #[error("the guardian process could not be started: {0}")]
    Guardian(#[source] std::io::Error),
}

/// What happens to the command, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This signal stopped the command.
    Stopped(i32),
    /// The command runs again.
    Continued,
    /// Every descendant was stopped, because the lease is in doubt.
    Frozen,
    /// They run again.
    Thawed,
    /// Every descendant was asked to end.
    Terminating(Cause),
    /// Every descendant is being killed.
    Killing(Cause),
    /// The guardian died, or missed the deadline; this process kills every descendant itself.
    GuardianLost,
    /// The command ended; descendants of it may still run, and the lease must be kept.
    Exited(Ending),
    /// The command and every descendant are gone: the lease may be released. Nothing comes after this.
    AllGone,
}

/// A command that runs under a guardian.
#[derive(Debug)]
pub struct Supervised {
    shared: Arc<Shared>,
    command: Pid,
    guardian: Pid,
    events: Receiver<Event>,
}

impl Supervised {
    /// Starts the guardian and under it the command; returns once the command runs.
    pub fn start(launch: &Launch) -> Result<Self, StartError> {
        let program = launch.command.first().ok_or(StartError::NoCommand)?;
        // If the guardian is killed, its descendants fall to this process and can be killed from here.
        set_child_subreaper(Some(getpid())).map_err(|error| StartError::Guardian(error.into()))?;
        let (link, guardian) = start_guardian(launch).map_err(StartError::Guardian)?;
        let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        let sent = link.send(&Order::Start(launch.deadline).encode(), Some(streams));
        let first = if sent == Sent::Yes { first_report(&link, launch.deadline) } else { Err(died()) };
        let command = match first {
            Ok(Report::Started(pid)) => Pid::from_raw(pid).ok_or(Errno::INVAL),
            Ok(Report::FailedToStart(errno)) => Err(Errno::from_raw_os_error(errno)),
            Ok(_) => Err(Errno::PROTO),
            Err(error) => {
                watch::end_all(guardian);
                return Err(error);
            }
        };
        let command = match command {
            Ok(command) => command,
            Err(error) => {
                watch::bury(guardian);
                return Err(start_error(program, error));
            }
        };
        let shared = Arc::new(Shared {
            link,
            countdown: Mutex::new(Countdown::new(launch.deadline, launch.rules)),
            leads: launch.rules.leads,
        });
        let (sender, events) = channel();
        let guardian_pid = Pid::from_child(&guardian);
        watch::spawn(Arc::clone(&shared), guardian, command, sender).map_err(StartError::Guardian)?;
        Ok(Self { shared, command, guardian: guardian_pid, events })
    }

    /// The lease is confirmed up to `deadline`. Says whether that was taken: not when the deadline before it
    /// is over already, not when it is no later, and not when the guardian does not listen.
    pub fn deadline(&self, deadline: Point) -> bool {
        let mut countdown = self.shared.countdown();
        let mut extended = countdown.clone();
        let taken = extended.extend(deadline, Point::now())
            && self.shared.link.send(&Order::Deadline(deadline).encode(), None) == Sent::Yes;
        if taken {
            *countdown = extended;
        }
        taken
    }

    /// Passes a signal to the command's process group.
    pub fn signal(&self, signal: Signal) {
        self.shared.order(Order::Signal(signal.as_raw()));
    }

    /// Asks every descendant to end, with SIGTERM, and wakes those that are stopped. The deadline still counts.
    pub fn terminate(&self) {
        self.shared.order(Order::Terminate(Signal::TERM.as_raw()));
    }

    /// Whether the lease is held cannot be said until a later deadline comes: what is to be frozen is.
    pub fn doubt(&self) {
        self.shared.order(Order::Doubt);
    }

    /// Kills every descendant now.
    pub fn kill(&self) {
        self.shared.order(Order::Kill);
    }

    /// What happens. It ends after [`Event::AllGone`].
    pub fn events(&self) -> &Receiver<Event> {
        &self.events
    }

    /// The command's process, which is also its group.
    pub fn command(&self) -> Pid {
        self.command
    }

    /// The guardian's process.
    pub fn guardian(&self) -> Pid {
        self.guardian
    }
}

impl Drop for Supervised {
    /// To the guardian this is the same as the end of the wrapper: SIGTERM now, SIGKILL by the deadline.
    fn drop(&mut self) {
        self.shared.link.finish();
    }
}

/// What the caller's thread and the watching thread both use.
#[derive(Debug)]
struct Shared {
    link: Link,
    countdown: Mutex<Countdown>,
    leads: Leads,
}

impl Shared {
    fn countdown(&self) -> MutexGuard<'_, Countdown> {
        // Nothing is left half done in it by a panic: it is replaced whole.
        self.countdown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: Order) {
        // A guardian that is gone or does not read is noticed by the watching thread, which then kills.
        let _ = self.link.send(&order.encode(), None);
    }
}

fn start_guardian(launch: &Launch) -> std::io::Result<(Link, Child)> {
    let (ours, theirs) = Link::pair()?;
    let guardian = Command::new(SELF)
        .arg0("leasehold")
        .arg(COMMAND_WORD)
        .args(guardian::arguments(&launch.rules, &launch.command))
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        // The link is its standard input; the command's three streams travel over the link.
        .stdin(Stdio::from(theirs.into_fd()))
        .stdout(Stdio::null())
        .spawn()?;
    Ok((ours, guardian))
}

/// What is said of a guardian that is gone before its first report.
fn died() -> StartError {
    StartError::Guardian(Errno::PIPE.into())
}

fn first_report(link: &Link, deadline: Point) -> Result<Report, StartError> {
    loop {
        match link.receive() {
            Received::Packet(packet, _) => return Report::decode(&packet).ok_or_else(died),
            Received::End => return Err(died()),
            Received::Nothing => {}
        }
        let remaining = deadline.remaining(Point::now());
        if remaining.is_zero() {
            return Err(StartError::TooLate);
        }
        // An interrupted wait only looks again.
        let _ = poll(&mut [PollFd::new(link, PollFlags::IN)], Some(&timespec(nap(remaining))));
    }
}

fn start_error(program: &OsString, error: Errno) -> StartError {
    match error {
        Errno::NOENT | Errno::NOTDIR => StartError::NotFound(program.clone()),
        Errno::ACCESS | Errno::NOEXEC | Errno::ISDIR | Errno::TXTBSY => {
            StartError::NotExecutable(program.clone(), error)
        }
        Errno::TIMEDOUT => StartError::TooLate,
        other => StartError::Guardian(other.into()),
    }
}
