//! The command and its descendants, as the process that reaps them sees them.
//!
//! Promises: the command's own number, which is also its group's, stays taken until nothing else is left, so
//! a signal to the group never reaches strangers; and [`Family::is_gone`] says yes only after the kernel said
//! that there is no child left, which for a subreaper means that there is no descendant left.
//!
//! Used by the guardian, and by the wrapper when the guardian died and everything fell to the wrapper. Both
//! are subreapers and have no other children at that time.

use std::collections::HashSet;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process_group, waitid};

use super::message::{Ending, Report};
use super::tree;

/// How often to look for somebody new before it is given up on a tree that grows faster than it is told. SIGKILL does
/// not give up.
const MOST_LOOKS: u32 = 10;

/// The command and everything that came from it.
#[derive(Debug)]
pub struct Family {
    root: Pid,
    command: Pid,
    ended: bool,
    reaped: bool,
    /// While it is frozen: those that somebody else had stopped before.
    frozen: Option<HashSet<Pid>>,
}

impl Family {
    /// The family of `command`, which is or was a child of this process and leads its own group.
    pub fn of(command: Pid) -> Self {
        Self { root: getpid(), command, ended: false, reaped: false, frozen: None }
    }

    /// The command, whose number is also its group's.
    pub fn command(&self) -> Pid {
        self.command
    }

    /// What happened to the command since the last look.
    pub fn news(&mut self) -> Vec<Report> {
        let mut news = Vec::new();
        if self.ended {
            return news;
        }
        let stops = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        while let Ok(Some(status)) = wait(&WaitId::Pid(self.command), stops) {
            match status.stopping_signal() {
                // Our own doing, and no news to anybody: others would take it for a person's.
                Some(signal) if self.frozen.is_some() && signal == Signal::STOP.as_raw() => {}
                Some(signal) => news.push(Report::Stopped(signal)),
                None => news.push(Report::Continued),
            }
        }
        let end = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match wait(&WaitId::Pid(self.command), end) {
            Ok(Some(status)) => {
                self.ended = true;
                news.extend(ending(&status).map(Report::Exited));
            }
            Ok(None) => {}
            // Not our child: whoever had it before reaped it.
            Err(_) => (self.ended, self.reaped) = (true, true),
        }
        news
    }

    /// Reaps what fell to this process, the command last, and says whether nothing is left.
    ///
    /// A process hands its children to the subreaper before its own end can be seen. So once the command has
    /// ended, every living descendant is a child of this process or below one, and no child means none at all.
    pub fn is_gone(&mut self) -> bool {
        let mut others = false;
        for child in tree::children(self.root) {
            if child != self.command || self.reaped {
                others |= !reap(child);
            }
        }
        if others || !self.ended {
            return false;
        }
        if !self.reaped {
            self.reaped = reap(self.command);
        }
        // The list may have missed one; this answer cannot.
        let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(wait(&WaitId::All, any), Err(Errno::CHILD))
    }

    /// Passes a signal to the command's group, as a terminal would.
    pub fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            // It fails when nobody in the group is left to hear it.
            let _ = kill_process_group(self.command, signal);
        }
    }

    /// Sends `signal` to every descendant once, in whatever group it is, and wakes those that are stopped so
    /// that they can act on it.
    ///
    /// Those outside the group first: when the command ends, its children move to this process, and a
    /// look at the tree that begins with this process can miss one that moves at the wrong moment. For the
    /// same reason it looks again until it finds nobody new.
    pub fn terminate(&mut self, signal: Signal) {
        let mut told = HashSet::new();
        let mut tell_others = || {
            tree::signal_descendants(self.root, signal, |pid, stat| {
                (self.reaped || stat.group != Some(self.command)) && told.insert(pid)
            })
        };
        tell_others();
        self.signal_group(signal);
        let mut looks = 0;
        while tell_others() > 0 && looks < MOST_LOOKS {
            looks += 1;
        }
        // What was frozen may still be about to stop.
        let all = self.frozen.take().is_some();
        tree::signal_descendants(self.root, Signal::CONT, |_, stat| all || stat.is_stopped());
    }

    /// Stops every descendant until [`Family::thaw`]. To be called again and again meanwhile, for those that appear or are
    /// continued by others.
    ///
    /// Parents first: a shell that runs would take a child that it sees stopped for a stopped job.
    pub fn freeze(&mut self) {
        if self.frozen.is_none() {
            let mut before = HashSet::new();
            tree::signal_descendants(self.root, Signal::STOP, |pid, stat| {
                if stat.is_stopped() {
                    before.insert(pid);
                }
                false
            });
            self.frozen = Some(before);
        }
        let stop_all = || {
            tree::signal_descendants(self.root, Signal::STOP, |_, stat| {
                !stat.is_stopped() && !stat.is_traced()
            })
        };
        if stop_all() == 0 {
            return;
        }
        // One step in the kernel, against which no member can fork.
        self.signal_group(Signal::STOP);
        let mut looks = 0;
        while stop_all() > 0 && looks < MOST_LOOKS {
            looks += 1;
        }
    }

    /// Continues what [`Family::freeze`] stopped, and leaves alone what was stopped before it. Children first.
    pub fn thaw(&mut self) {
        let Some(before) = self.frozen.take() else { return };
        // Also to those that do not look stopped: one in uninterruptible sleep still has the signal before it, and this takes
        // it back.
        tree::signal_from_below(self.root, Signal::CONT, |pid, _| !before.contains(&pid));
    }

    /// The command's group is to run after the thaw, whoever had stopped it before.
    pub fn wake_group_with_thaw(&mut self) {
        let command = self.command;
        if let Some(before) = &mut self.frozen {
            before.retain(|pid| tree::Stat::read(*pid).is_some_and(|stat| stat.group != Some(command)));
        }
    }

    /// Kills every descendant that can be found now. To be called until [`Family::is_gone`].
    ///
    /// The group first: the kernel does that in one step against which no member can fork.
    pub fn kill(&self) {
        self.signal_group(Signal::KILL);
        tree::signal_descendants(self.root, Signal::KILL, |_, _| true);
    }
}

/// Reaps `child` if it is dead. Says whether it is no child any more.
fn reap(child: Pid) -> bool {
    match wait(&WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(_)) | Err(_) => true,
        Ok(None) => false,
    }
}

fn wait(id: &WaitId<'_>, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
    loop {
        match waitid(id.clone(), options) {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

fn ending(status: &WaitIdStatus) -> Option<Ending> {
    let code = status.exit_status().map(Ending::Code);
    code.or_else(|| status.terminating_signal().map(Ending::Signal))
}
