//! The thread that hears the guardian, keeps the terminal, and does the guardian's work if it does not.
//!
//! It is a thread of its own because the process stops itself on it (Ctrl-Z) and must find out from it that it
//! was continued, and because whoever renews the lease must not wait for any of this.

use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, waitid};
use signal_hook::consts::{SIGCHLD, SIGCONT};

use super::terminal::{Next, Terminal};
use super::{Event, Shared};
use crate::guardian::clock::Point;
use crate::guardian::countdown::nap;
use crate::guardian::family::Family;
use crate::guardian::link::Received;
use crate::guardian::message::{Message, Order, Report};
use crate::guardian::tree;
use crate::guardian::watch::{FIRST_SWEEP, LAST_SWEEP, drain, subscribe, timespec};

/// Starts the thread. It ends when everything is gone, and drops `events` then.
pub(super) fn spawn(
    shared: Arc<Shared>,
    guardian: Child,
    command: Pid,
    events: Sender<Event>,
) -> std::io::Result<()> {
    let (continued, first) = subscribe(SIGCONT)?;
    let (children, second) = subscribe(SIGCHLD)?;
    let mut terminal = Terminal::open(command);
    // Before the thread starts: from the caller's point of view a command that was started has the foreground.
    if let Some(terminal) = &mut terminal {
        terminal.begin();
    }
    let watch = Watch { shared, guardian, command, events, continued, children, terminal, exited: false };
    std::thread::Builder::new().name("supervise".into()).spawn(move || {
        watch.run();
        signal_hook::low_level::unregister(first);
        signal_hook::low_level::unregister(second);
    })?;
    Ok(())
}

/// Reaps a guardian that ended, or is about to, before it had anything to guard.
pub(super) fn bury(mut guardian: Child) {
    // It has reported or closed its end, so it is on its way out; nothing is lost if it was reaped already.
    let _ = guardian.wait();
}

/// Ends a guardian whose first report did not come, and everything that it may have started already: what it leaves behind falls
/// to this process, which has no other children.
pub(super) fn end_all(mut guardian: Child) {
    kill(&mut guardian);
    loop {
        tree::signal_descendants(getpid(), Signal::KILL, |_, _| true);
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(FIRST_SWEEP),
            Err(_) => return,
        }
    }
}

/// Ends a guardian. While it lives its descendants are its own; what it leaves behind falls to us when it goes.
fn kill(guardian: &mut Child) {
    tree::signal_descendants(Pid::from_child(guardian), Signal::KILL, |_, _| true);
    let _ = guardian.kill();
    // Its children are ours only after its end, of which the closed link is no proof.
    let _ = guardian.wait();
}

struct Watch {
    shared: Arc<Shared>,
    guardian: Child,
    command: Pid,
    events: Sender<Event>,
    /// Something to read means that a shell continued this process.
    continued: UnixStream,
    /// Something to read means that something happened to the guardian, or to what fell to us from it.
    children: UnixStream,
    terminal: Option<Terminal>,
    exited: bool,
}

impl Watch {
    fn run(mut self) {
        let gone = loop {
            match self.shared.link.receive() {
                Received::Packet(packet, _) => match Report::decode(&packet) {
                    Some(Report::AllGone) => break true,
                    Some(report) => self.heard(report),
                    None => break false,
                },
                Received::End => break false,
                Received::Nothing => {
                    if self.is_overdue() {
                        break false;
                    }
                    self.sleep();
                }
            }
        };
        if !gone {
            self.kill_in_its_place();
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        bury(self.guardian);
        tell(&self.events, Event::AllGone);
    }

    fn heard(&mut self, report: Report) {
        let event = match report {
            Report::Stopped(signal) => Event::Stopped(signal),
            Report::Continued => Event::Continued,
            Report::Frozen => Event::Frozen,
            Report::Thawed => Event::Thawed,
            Report::Terminating(cause) => Event::Terminating(cause),
            Report::Killing(cause) => Event::Killing(cause),
            Report::Exited(ending) => Event::Exited(ending),
            // The first was heard at the start, and the end is handled where it is heard.
            Report::Started(_) | Report::FailedToStart(_) | Report::AllGone => return,
        };
        self.exited |= matches!(event, Event::Exited(_));
        // Told before the process stops itself, so that it is not heard only after it is continued.
        tell(&self.events, event);
        let next = match (&mut self.terminal, report) {
            (Some(terminal), Report::Stopped(signal)) => terminal.command_stopped(signal),
            (Some(terminal), Report::Continued) => terminal.command_continued(),
            (Some(terminal), Report::Exited(_)) => terminal.command_exited(),
            _ => Next::Leave,
        };
        self.follow(next);
    }

    /// The guardian continues the command only if it is not being killed.
    fn follow(&self, next: Next) {
        if next == Next::Continue {
            self.shared.order(Order::Signal(Signal::CONT.as_raw()));
        }
    }

    /// Half of the kill lead before the deadline everything should long be gone.
    fn is_overdue(&self) -> bool {
        self.overdue_at().remaining(Point::now()).is_zero()
    }

    fn overdue_at(&self) -> Point {
        self.shared.countdown().deadline().minus(self.shared.leads.kill() / 2)
    }

    fn sleep(&mut self) {
        let timeout = timespec(nap(self.overdue_at().remaining(Point::now())));
        let mut fds = [
            PollFd::new(&self.shared.link, PollFlags::IN),
            PollFd::new(&self.continued, PollFlags::IN),
            PollFd::new(&self.children, PollFlags::IN),
        ];
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, Some(&timeout));
        if drain(&mut self.children) {
            self.wake_guardian();
        }
        if drain(&mut self.continued) {
            let next = self.terminal.as_mut().map_or(Next::Leave, Terminal::process_continued);
            self.follow(next);
        }
    }

    /// A stopped guardian guards nothing; nobody has a reason to stop it.
    fn wake_guardian(&self) {
        let guardian = Pid::from_child(&self.guardian);
        let stopped = waitid(WaitId::Pid(guardian), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        if matches!(stopped, Ok(Some(_))) {
            // It is our child and not reaped, so the number is its own.
            let _ = kill_process(guardian, Signal::CONT);
        }
    }

    fn kill_in_its_place(&mut self) {
        tell(&self.events, Event::GuardianLost);
        kill(&mut self.guardian);
        let mut family = Family::of(self.command);
        let mut sweep = FIRST_SWEEP;
        loop {
            for report in family.news() {
                if let (Report::Exited(ending), false) = (report, self.exited) {
                    self.exited = true;
                    tell(&self.events, Event::Exited(ending));
                }
            }
            family.kill();
            if family.is_gone() {
                return;
            }
            let _ = poll(&mut [PollFd::new(&self.children, PollFlags::IN)], Some(&timespec(sweep)));
            drain(&mut self.children);
            sweep = (sweep * 2).min(LAST_SWEEP);
        }
    }
}

fn tell(events: &Sender<Event>, event: Event) {
    // Nobody listens any more: what has to be done is done all the same.
    let _ = events.send(event);
}
