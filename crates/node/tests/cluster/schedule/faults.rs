//! What goes wrong in a schedule, and when it is over.

use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::{ClusterCommand, Request};
use leasehold_node::{CALLS, Fatal, Input};

use super::{MAX_PROCESSES, Play, rate};
use crate::disk::Disk;
use crate::world::member;

/// The end of something.
pub(super) enum Later {
    Restart(usize),
    Heal(usize, usize),
    Wake(usize),
    Unstick(usize),
    Space(usize),
}

impl Play {
    fn later(&mut self, within_ms: u64, what: Later) {
        let at = self.world.now + self.random.below(within_ms * 1_000_000);
        self.numbers += 1;
        self.later.insert((at, self.numbers), what);
    }

    pub(super) fn fault(&mut self) {
        let process = self.random.index(self.world.processes.len());
        let other = self.random.index(self.world.processes.len());
        match self.random.below(1_000) {
            0..8 => self.crash(process),
            8..12 => {
                if let Some(leader) = self.world.leader() {
                    self.crash(leader);
                }
            }
            12..22 if process != other => self.cut(process, other),
            22..25 => {
                for other in (0..self.world.processes.len()).filter(|other| *other != process) {
                    self.cut(process, other);
                    self.cut(other, process);
                }
            }
            25..32 => {
                self.world.processes[process].stalled = true;
                self.later(3_000, Later::Wake(process));
            }
            32..36 => {
                self.world.processes[process].disk.stuck = true;
                self.later(2_000, Later::Unstick(process));
            }
            36..38 => {
                // A suspend, which one of its clocks does not see.
                self.world.processes[process].clock.boot += self.random.below(2_000) * 1_000_000;
            }
            38..40 => {
                let client = self.random.index(self.clocks.len());
                self.clocks[client].0.raw += self.random.below(300) * 1_000_000;
            }
            40..44 => self.order(ClusterCommand::Transfer { to: None }),
            44..48 => self.order(ClusterCommand::Transfer { to: Some(member(other).name) }),
            48..50 => self.order(ClusterCommand::Remove { name: member(other).name }),
            50..56 => self.order(ClusterCommand::Promote { name: member(other).name }),
            56..59 => self.add(),
            59..62 if self.world.is_up(process) => {
                self.leaving.insert(process);
                self.world.processes[process].inbox.push(Input::Drain);
            }
            62..63 if self.world.is_up(process) => {
                self.world.processes[process].inbox.push(Input::Space { enough: false });
                self.later(1_000, Later::Space(process));
            }
            _ => {}
        }
    }

    fn crash(&mut self, process: usize) {
        if !self.world.is_up(process) {
            return;
        }
        let kept = self.random.index(4);
        self.world.crash_keeping(process, kept);
        if planted(Bug::WipedKeepsId) {
            // As it was when it was founded: it has forgotten what it said.
            let founding = leasehold_node::founding_snapshot(
                self.world.checks.table.config(),
                (0..self.world.founders).map(member).collect(),
            );
            self.world.processes[process].disk = Disk::with(Some(founding));
        }
        self.leave(process);
        self.later(1_500, Later::Restart(process));
    }

    fn cut(&mut self, from: usize, to: usize) {
        let noticed = (self.random.below(1_500_000_000), self.random.below(1_500_000_000));
        self.world.net.cut(from, to, self.world.now, noticed);
        self.later(2_500, Later::Heal(from, to));
    }

    fn order(&mut self, command: ClusterCommand) {
        let at = self.random.index(self.world.processes.len());
        if self.world.is_up(at) {
            let id = self.world.ask(at, CALLS, Request::Cluster(command));
            self.owed.insert(id, at);
        }
    }

    /// A blank node comes, or one that came is asked for.
    fn add(&mut self) {
        if self.world.processes.len() < MAX_PROCESSES {
            let process = self.world.add_process(None);
            self.world.processes[process].rate = rate(&mut self.random);
        }
        self.order(ClusterCommand::Add(member(self.world.processes.len() - 1)));
    }

    /// What is over by now.
    pub(super) fn end_faults(&mut self) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= self.world.now) {
            let what = entry.remove();
            self.end(&what);
        }
        // Whoever has stopped is started again.
        for process in 0..self.world.processes.len() {
            if let Some(fatal) = &self.world.processes[process].fatal {
                // A node that notices by itself comes back, so that the checks are tried as well.
                let is_forgetful = planted(Bug::AckBeforeSync) || planted(Bug::WipedKeepsId);
                if is_forgetful && *fatal != Fatal::Removed {
                    self.world.processes[process].fatal = None;
                    self.later(1_000, Later::Restart(process));
                }
                self.leave(process);
            }
            let stopped = self.leaving.contains(&process)
                && (!self.world.is_up(process) || self.world.node(process).is_drained());
            if stopped {
                self.leaving.remove(&process);
                if self.world.is_up(process) {
                    let owed = self.owed.iter().find(|(_, at)| **at == process);
                    if let Some((id, _)) = owed.filter(|(id, _)| !self.is_on_its_way(process, id.0)) {
                        let what = format!("request {} was not answered by a node that stopped", id.0);
                        self.world.checks.violated(what);
                    }
                    self.world.crash_keeping(process, usize::MAX);
                    self.leave(process);
                    self.later(500, Later::Restart(process));
                }
            }
        }
    }

    /// Whether a request has not been taken in yet, or its answer not been heard.
    fn is_on_its_way(&self, process: usize, request: u64) -> bool {
        let inbox = &self.world.processes[process].inbox;
        let taken = inbox.iter().any(|input| matches!(input, Input::Request { id, .. } if id.0 == request));
        taken || self.world.checks.is_answered(leasehold_core::protocol::RequestId(request))
    }

    fn end(&mut self, what: &Later) {
        match *what {
            Later::Restart(process) => {
                let own = &self.world.processes[process];
                if own.node.is_none() && own.fatal.is_none() {
                    self.leaving.remove(&process);
                    if let Err(fatal) = self.world.try_start(process) {
                        self.world.processes[process].fatal = Some(fatal);
                    }
                }
            }
            Later::Heal(from, to) => self.world.net.heal(from, to),
            Later::Wake(process) => self.world.processes[process].stalled = false,
            Later::Unstick(process) => self.world.processes[process].disk.stuck = false,
            Later::Space(process) => {
                self.world.processes[process].inbox.push(Input::Space { enough: true });
            }
        }
    }

    /// Everything ends, and nothing new comes.
    pub(super) fn heal_faults(&mut self) {
        for what in std::mem::take(&mut self.later).into_values() {
            self.end(&what);
        }
        self.world.net.heal_all();
        self.world.net.loss = 0;
        self.world.net.delay = (0, 2_000_000);
        for process in 0..self.world.processes.len() {
            if self.leaving.remove(&process) && self.world.is_up(process) {
                self.world.crash(process);
                self.leave(process);
            }
            let own = &mut self.world.processes[process];
            own.stalled = false;
            own.disk.stuck = false;
            let removed = own.fatal == Some(Fatal::Removed);
            if own.node.is_none() && !removed && own.fatal.is_none() {
                self.end(&Later::Restart(process));
            }
        }
    }
}
