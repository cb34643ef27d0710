//! The foreground of the terminal, lent to the command's group while it runs.
//!
//! A shell knows only the wrapper's group: it gives that the foreground, and watches that for a stop. So the
//! wrapper passes the foreground on, and when the command stops (Ctrl-Z) it takes the foreground back and
//! stops itself with the same signal, so that the shell sees a stopped job; when the shell continues it, it
//! passes the foreground on again and continues the command.
//!
//! The wrapper stops itself with the signal's default action, which the kernel leaves out when nobody could
//! continue it (an orphaned group, as in `docker run -it`). Then the command is continued at once, as it would
//! not have stopped without us.
//!
//! Not covered: Ctrl-Z on a pipeline (`leasehold run ... | less`) stops the wrapper but not the command, since
//! the foreground stays with the pipeline there; unless continued in time the command ends with its lease.

use std::fs::{File, OpenOptions};

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Raised, raise};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, test_kill_process_group};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// What the command needs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// SIGCONT to its group.
    Continue,
    /// Nothing.
    Leave,
}

/// The controlling terminal, and who of us has its foreground.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: File,
    ours: Pid,
    command: Pid,
    /// Whether the command is to have the foreground whenever we have it to give.
    lend: bool,
    /// Whether the command was stopped, as far as was heard, and not yet continued by us.
    stopped: bool,
}

impl Terminal {
    /// The controlling terminal; `None` if there is none.
    pub(super) fn open(command: Pid) -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        // In a pipeline another member of our group may be reading the terminal (a pager): it keeps the
        // foreground until the command shows, by a stop, that it needs it.
        let piped = fstat(rustix::stdio::stdout()).is_ok_and(|stat| {
            matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
        });
        let lend = isatty(rustix::stdio::stdin()) && !piped;
        Some(Self { tty, ours: getpgrp(), command, lend, stopped: false })
    }

    /// The command has started. If it was stopped for reading before it had the foreground, that will be heard
    /// and it will be continued then: a SIGCONT on suspicion could undo a Ctrl-Z.
    pub(super) fn begin(&mut self) {
        if self.lend {
            self.pass_on();
        }
    }

    /// The command was stopped by `signal`. Returns after this process was continued, if it stopped for it.
    pub(super) fn command_stopped(&mut self, signal: i32) -> Next {
        self.stopped = true;
        let wants_terminal = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw).contains(&signal);
        let foreground = self.foreground();
        if wants_terminal && (foreground == Some(self.command) || self.pass_on()) {
            self.lend = true;
            return self.go_on();
        }
        if signal == Signal::STOP.as_raw() && foreground != Some(self.command) {
            // Somebody paused a command that has nothing to do with the terminal now; the lease goes on.
            return Next::Leave;
        }
        self.take_back();
        stop_this_process(signal);
        self.process_continued_in_foreground()
    }

    /// The command runs again.
    pub(super) fn command_continued(&mut self) -> Next {
        self.stopped = false;
        Next::Leave
    }

    /// The command ended. What it left in its group runs in the background from now on.
    pub(super) fn command_exited(&mut self) -> Next {
        self.lend = false;
        self.stopped = false;
        self.take_back();
        Next::Leave
    }

    /// This process was continued, by a shell (`fg`, `bg`) or by anybody.
    pub(super) fn process_continued(&mut self) -> Next {
        if self.lend {
            self.pass_on();
        }
        self.go_on()
    }

    /// The terminal belongs to our group again, if it belonged to the command's or to nobody.
    pub(super) fn take_back(&mut self) {
        if let Some(foreground) = self.foreground() {
            let nobody = test_kill_process_group(foreground) == Err(Errno::SRCH);
            if foreground == self.command || nobody {
                self.set_foreground(self.ours);
            }
        }
    }

    fn process_continued_in_foreground(&mut self) -> Next {
        if self.foreground() == Some(self.ours) {
            self.pass_on();
            return self.go_on();
        }
        // Continued in the background (`bg`), or not stopped at all: SIGCONT itself tells which.
        Next::Leave
    }

    /// One SIGCONT for each stop that was heard of, so that none can arrive late and undo the next stop.
    fn go_on(&mut self) -> Next {
        if std::mem::take(&mut self.stopped) { Next::Continue } else { Next::Leave }
    }

    /// Gives our foreground to the command; says whether we had it and gave it.
    fn pass_on(&mut self) -> bool {
        self.foreground() == Some(self.ours) && self.set_foreground(self.command)
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.tty).ok()
    }

    /// From the background this raises SIGTTOU, which is left out when the calling thread blocks it.
    fn set_foreground(&self, group: Pid) -> bool {
        let mut blocked = SigSet::empty();
        blocked.add(Raised::SIGTTOU);
        let Ok(before) = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return false };
        let done = tcsetpgrp(&self.tty, group).is_ok();
        before.thread_set_mask().expect("a mask that was in force can be put back");
        done
    }
}

/// Stops all threads of this process until it is continued. The signal is sent to the calling thread, so it
/// has stopped and was continued by the time this returns.
fn stop_this_process(signal: i32) {
    let signal = match signal {
        signal if signal == Signal::TTIN.as_raw() => Raised::SIGTTIN,
        signal if signal == Signal::TTOU.as_raw() => Raised::SIGTTOU,
        // For SIGSTOP too: the kernel would obey that one even where nobody could continue us.
        _ => Raised::SIGTSTP,
    };
    raise(signal).expect("a signal of our own may be sent to our own thread");
}
