//! How the process of a node ends, stands still and goes on.

use leasehold_node::Fatal;
use leasehold_wal::mem::MemDisk;

use super::End;
use crate::record::{NodeId, Stopped};
use crate::trace::{MICRO, MILLI};
use crate::world::peers::NEXT_VERSION;
use crate::world::process::{Files, Standing};
use crate::world::{Event, Phase, World};

impl World {
    /// The loop or the disk says that nothing more can be promised.
    pub(in crate::world) fn process_fails(&mut self, at: usize, why: &str) {
        self.trace.say(self.now, || format!("n{} fails: {why}", at + 1));
        self.note_stopped(NodeId(self.processes[at].member.id.0), Stopped::DiskError);
        self.end_process(at, End::Killed);
        self.restart_later(at);
    }

    pub(super) fn process_ends_fatally(&mut self, at: usize, fatal: &Fatal) {
        self.trace.say(self.now, || format!("n{} ends: {fatal}", at + 1));
        let why = match fatal {
            Fatal::Removed => Stopped::Removed,
            Fatal::Diverged { .. } => Stopped::Diverged,
            // It has acknowledged what its files do not hold any more. One that has caught up since then finds what others forgot.
            Fatal::Invariant(_) if !self.processes[at].is_whole() => Stopped::Damaged,
            // It has acknowledged what another leader of the same term took back.
            Fatal::Invariant(_) if self.faults.set_back => Stopped::Diverged,
            // It was set back to an older release while the others went on. Nobody may go on before it knew the next one.
            Fatal::TooOld { .. } if self.processes[at].set_back => Stopped::TooOld,
            _ => Stopped::Failed,
        };
        self.note_stopped(NodeId(self.processes[at].member.id.0), why);
        self.end_process(at, End::Killed);
        match why {
            Stopped::Removed => self.processes[at].standing = Standing::Unused,
            Stopped::TooOld => {
                self.processes[at].knows = NEXT_VERSION;
                self.processes[at].set_back = false;
                self.restart_later(at);
            }
            // The words that it stops with say so: whoever reads them wipes it.
            Stopped::Damaged | Stopped::Diverged if self.faults.set_back => self.replace_damaged(at),
            _ => self.notes.violated(format!("n{} cannot go on: {fatal}", at + 1)),
        }
    }

    /// Raft stops with words where two logs are both committed. A node whose files were put back can make that so.
    pub(super) fn process_panics(&mut self, at: usize, words: &str) {
        self.trace.say(self.now, || format!("n{} panics: {words}", at + 1));
        self.totals.panics += 1;
        self.note_stopped(NodeId(self.processes[at].member.id.0), Stopped::Diverged);
        self.end_process(at, End::Killed);
        self.replace_damaged(at);
    }

    /// A peer says that this node was removed.
    pub(in crate::world) fn was_removed(&mut self, at: usize) {
        self.process_ends_fatally(at, &Fatal::Removed);
    }

    /// A peer says that this node's release is too old, and its log says so: whoever reads that starts it with the next one.
    pub(in crate::world) fn is_too_old(&mut self, at: usize) {
        self.trace.say(self.now, || format!("n{} is too old for its peers", at + 1));
        self.note_stopped(NodeId(self.processes[at].member.id.0), Stopped::TooOld);
        self.end_process(at, End::Killed);
        self.processes[at].knows = NEXT_VERSION;
        self.processes[at].set_back = false;
        self.restart_later(at);
    }

    pub(super) fn drained(&mut self, at: usize) {
        self.trace.say(self.now, || format!("n{} has drained", at + 1));
        self.note_stopped(NodeId(self.processes[at].member.id.0), Stopped::Drained);
        self.end_process(at, End::Killed);
        self.restart_later(at);
    }

    pub(in crate::world) fn kill(&mut self, at: usize, end: End) {
        if !self.processes[at].is_running() {
            return;
        }
        self.trace.say(self.now, || format!("n{} is gone: {end:?}", at + 1));
        self.note_stopped(NodeId(self.processes[at].member.id.0), Stopped::Crashed);
        self.end_process(at, end);
        self.restart_later(at);
    }

    pub(super) fn restart_later(&mut self, at: usize) {
        let length = *self.chance.pick(&[1, 200, 1_000, 4_000]) * MILLI;
        let pause = if self.phase == Phase::Healing { 50 * MILLI } else { self.chance.around(length) };
        let life = self.processes[at].life;
        self.queue.push(self.now + pause, Event::Starts { at, life });
    }

    /// A disk after a loss of power: of what was not synced some is there and some is not.
    pub(in crate::world) fn power_lost(&mut self, disk: &MemDisk) -> MemDisk {
        let choices = disk.crash_choices(8, self.chance.bits()).choices;
        disk.crash(&choices[self.chance.index(choices.len())])
    }

    /// The process is gone, and its files are as that leaves them.
    pub(in crate::world) fn end_process(&mut self, at: usize, end: End) {
        self.interrupt_disk(at);
        self.end_stalls(at);
        let own = &mut self.processes[at];
        let was_running = own.node.take().is_some();
        own.wake_at = u64::MAX;
        own.inbox.clear();
        own.life += 1;
        own.leads = None;
        own.hands_over = false;
        own.disk.busy = None;
        own.disk.jobs.clear();
        let mut disk = own.take_disk();
        if end == End::PowerLost {
            disk = self.power_lost(&disk);
        }
        self.processes[at].files = Files::Disk(Box::new(disk));
        if was_running {
            self.links_of_the_dead(at);
            self.connections_of_the_dead(at, end);
            self.calls_of_the_dead(at);
        }
    }

    pub(in crate::world) fn pause_node(&mut self, at: usize, paused: bool) {
        let now = self.now;
        let own = &mut self.processes[at];
        // On a machine that stands still nothing goes on.
        let paused = paused || own.clock.stands_still();
        if own.paused == paused || !own.is_running() {
            return;
        }
        own.paused = paused;
        own.wake_at = if paused { u64::MAX } else { now };
        if !paused {
            self.disk_goes_on(at);
        }
    }

    /// A disk or process that stood still goes on.
    pub(in crate::world) fn disk_goes_on(&mut self, at: usize) {
        let own = &mut self.processes[at];
        if own.paused || own.disk.stuck {
            return;
        }
        if std::mem::take(&mut own.disk.finished_in_pause)
            && let Some(job) = own.disk.busy
        {
            let life = own.life;
            self.queue.push(self.now + 10 * MICRO, Event::DiskDone { at, life, job });
        }
        self.disk_begins(at);
    }
}
