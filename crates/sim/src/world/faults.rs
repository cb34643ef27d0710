//! Faults: when, to whom, for how long, and how they end.

mod healing;
pub(super) mod rollback;

use super::nodes::End;
use super::process::Death;
use super::{Event, Phase, World};
use crate::plan::Fault;
use crate::record::{ClientId, Fault as What, Machine};
use crate::trace::{MILLI, SECOND};

/// How a fault ends: `Lives` is the end of a process's life, and `Noted` of what was noted as begun.
#[derive(Debug, Clone, Copy)]
pub(super) enum Undo {
    Cut { from: usize, to: usize },
    ClientCut { client: usize, at: usize },
    Slow { at: usize },
    Stuck { at: usize },
    Full { at: usize },
    PausedNode { at: usize },
    PausedClient { client: usize },
    SleptNode { at: usize },
    SleptClient { client: usize },
    Rates,
    Lives { at: usize, life: u32 },
    Noted { machine: Machine, what: What },
}

/// Who does not reach whom.
pub(super) struct State {
    slots: usize,
    to_node: Vec<bool>,
    to_client: Vec<bool>,
    /// Noted as begun and not as over.
    open: Vec<(Machine, What)>,
    /// The files of some node were put back to an earlier copy.
    pub(super) set_back: bool,
}

impl State {
    pub(super) fn new(slots: usize, clients: usize) -> Self {
        Self {
            slots,
            to_node: vec![false; slots * clients],
            to_client: vec![false; slots * clients],
            open: Vec::new(),
            set_back: false,
        }
    }

    /// Whether what a client sends to a node is held back.
    pub(super) fn client_to_node(&self, client: usize, at: usize) -> bool {
        self.to_node[client * self.slots + at]
    }

    /// Whether what a node sends to a client is held back.
    pub(super) fn node_to_client(&self, at: usize, client: usize) -> bool {
        self.to_client[client * self.slots + at]
    }
}

/// Faults that happen at moments. Others are properties of the whole run.
const AT_MOMENTS: &[Fault] = &[
    Fault::Cut,
    Fault::IsolateLeader,
    Fault::ClientCut,
    Fault::DiskSlow,
    Fault::DiskStuck,
    Fault::DiskError,
    Fault::DiskFull,
    Fault::Kill,
    Fault::PowerLoss,
    Fault::PowerLossOfAll,
    Fault::BitFlip,
    Fault::PauseNode,
    Fault::Drain,
    Fault::PauseClient,
    Fault::CrashClient,
    Fault::Suspend,
    Fault::Rates,
    Fault::RatesBeyond,
    Fault::Freeze,
    Fault::Transfer,
    Fault::Members,
    Fault::Restore,
    Fault::Storm,
    Fault::Revoke,
    Fault::Upgrade,
    Fault::CrashAtDisk,
    Fault::RolledBack,
    Fault::CrashClients,
];

impl World {
    pub(super) fn plan_next_fault(&mut self) {
        let pause = self.chance.around(self.plan.fault_pause);
        let near = if self.chance.one_in(3) { self.near_a_deadline() } else { None };
        self.queue.push(near.unwrap_or(self.now + pause).max(self.now + 1), Event::Fault);
    }

    pub(super) fn next_fault(&mut self) {
        if self.phase == Phase::Faults {
            self.fault_now();
            self.plan_next_fault();
        }
    }

    pub(super) fn fault_now(&mut self) {
        let on: Vec<Fault> =
            AT_MOMENTS.iter().copied().filter(|fault| self.plan.faults.has(*fault)).collect();
        if self.phase == Phase::Faults && self.plan.tight && self.chance.one_in(2) {
            return self.cut_holder();
        }
        if self.phase == Phase::Healing || on.is_empty() {
            return;
        }
        let fault = *self.chance.pick(&on);
        // Restores are rare: nothing is granted for long afterwards.
        let rare = if self.plan.faults.has(Fault::RestoreWrong) { 2 } else { 4 };
        if matches!(fault, Fault::Restore | Fault::PowerLossOfAll) && !self.chance.one_in(rare) {
            return;
        }
        self.totals.faults += 1;
        self.trace.note(self.now, 11, fault as u64);
        self.trace.say(self.now, || format!("fault: {}", fault.word()));
        self.make(fault);
    }

    fn make(&mut self, fault: Fault) {
        match fault {
            Fault::Cut => self.cut_some(),
            Fault::IsolateLeader => self.isolate_leader(),
            Fault::ClientCut => self.cut_holder(),
            Fault::DiskSlow | Fault::DiskStuck | Fault::DiskFull | Fault::DiskError => self.hurt_disk(fault),
            Fault::Kill | Fault::PowerLoss => {
                let Some(at) = self.some_node() else { return };
                self.kill(at, if fault == Fault::Kill { End::Killed } else { End::PowerLost });
            }
            Fault::PowerLossOfAll => {
                for at in self.running() {
                    self.kill(at, End::PowerLost);
                }
            }
            Fault::CrashAtDisk => {
                let Some(at) = self.some_node() else { return };
                // Snapshots are rare among what a disk does, and more is at stake there.
                let at_snapshot = self.chance.one_in(2);
                let jobs = if at_snapshot { 0 } else { self.chance.below(4) };
                let after = self.chance.one_in(2);
                self.processes[at].disk.dies = Some(Death { jobs, after, at_snapshot });
                self.trace.say(self.now, || format!("fault: n{} dies at its disk soon", at + 1));
            }
            Fault::BitFlip => self.flip_bit(),
            Fault::RolledBack => self.roll_back(),
            Fault::PauseNode => self.pause_some_node(),
            Fault::Drain => {
                if let Some(at) = self.some_node() {
                    self.trace.say(self.now, || format!("fault: n{} is asked to drain", at + 1));
                    self.ask_to_drain(at);
                }
            }
            Fault::PauseClient => self.pause_some_client(),
            Fault::CrashClient => {
                let client = self.some_client();
                self.crash_client(client);
            }
            Fault::CrashClients => {
                for client in 0..self.clients.len() {
                    if self.chance.one_in(2) {
                        self.crash_client(client);
                    }
                }
            }
            Fault::Suspend | Fault::Freeze => self.sleep_some(fault),
            Fault::Rates | Fault::RatesBeyond => self.change_rates(fault),
            Fault::Transfer => self.transfer(),
            Fault::Members => self.change_members(),
            Fault::Restore => self.restore(),
            Fault::Storm => self.storm(),
            Fault::Revoke => self.revoke(),
            Fault::Upgrade => self.upgrade(),
            _ => unreachable!("only faults of moments are drawn"),
        }
    }

    /// A node that runs: often the leader.
    fn some_node(&mut self) -> Option<usize> {
        let any = self.some_running()?;
        Some(self.leader().filter(|_| self.chance.one_in(2)).unwrap_or(any))
    }

    /// Any node that runs.
    pub(super) fn some_running(&mut self) -> Option<usize> {
        let running = self.running();
        (!running.is_empty()).then(|| *self.chance.pick(&running))
    }

    fn some_client(&mut self) -> usize {
        self.chance.index(self.clients.len())
    }

    /// A client that holds something, if there is one.
    fn some_holder(&mut self) -> usize {
        let holders: Vec<usize> =
            (0..self.clients.len()).filter(|client| !self.clients[*client].app.held.is_empty()).collect();
        if holders.is_empty() { self.some_client() } else { *self.chance.pick(&holders) }
    }

    /// A client that waits for something, if there is one.
    fn some_waiter(&mut self) -> usize {
        let waiters: Vec<usize> =
            (0..self.clients.len()).filter(|client| self.clients[*client].app.is_waiting()).collect();
        if waiters.is_empty() { self.some_client() } else { *self.chance.pick(&waiters) }
    }

    /// Lengths that matter: moments, about an election, about a ttl.
    pub(super) fn some_length(&mut self) -> u64 {
        let ttl = self.plan.ttl.0 * MILLI;
        match self.chance.below(4) {
            0 => self.chance.around(30 * MILLI),
            1 => self.chance.around(600 * MILLI),
            _ => self.chance.between(ttl * 7 / 10, ttl * 13 / 10),
        }
    }

    /// Notes a fault that begins now and is over after so long.
    pub(super) fn note_for(&mut self, machine: Machine, what: What, within: bool, length: u64) {
        self.note_fault(machine, what, within, true);
        self.faults.open.push((machine, what));
        self.undo_after(length, Undo::Noted { machine, what });
    }

    fn note_over(&mut self, machine: Machine, what: What) {
        if let Some(place) = self.faults.open.iter().position(|known| *known == (machine, what)) {
            self.faults.open.swap_remove(place);
            self.note_fault(machine, what, true, false);
        }
    }

    /// Losses and disorder between nodes are there as long as there are faults.
    pub(super) fn note_lasting_faults(&mut self) {
        if self.plan.peer_loss > 0 || self.plan.disorder > 0 {
            self.note_for(Machine::World, What::Network, true, self.plan.fault_length);
        }
        if self.plan.client_loss > 0 {
            for client in 0..self.clients.len() {
                self.note_for(client_machine(client), What::Network, true, self.plan.fault_length);
            }
        }
    }

    fn undo_after(&mut self, length: u64, undo: Undo) {
        self.queue.push(self.now + length, Event::Undo(undo));
    }

    pub(super) fn cut_one(&mut self, from: usize, to: usize, length: u64) {
        if from != to {
            self.set_cut(from, to, true);
            self.undo_after(length, Undo::Cut { from, to });
        }
    }

    /// One way, both ways, or a bridge: two halves that meet in one node only.
    fn cut_some(&mut self) {
        let length = self.some_length() * 2;
        let running = self.running();
        if running.len() < 2 {
            return;
        }
        self.note_for(Machine::World, What::Network, true, length);
        let (one, two) = (*self.chance.pick(&running), *self.chance.pick(&running));
        match self.chance.below(3) {
            0 => self.cut_one(one, two, length),
            1 => {
                self.cut_one(one, two, length);
                self.cut_one(two, one, length);
            }
            _ => {
                for (place, from) in running.iter().enumerate() {
                    for (other, to) in running.iter().enumerate() {
                        if place % 2 != other % 2 && *from != one && *to != one {
                            self.cut_one(*from, *to, length);
                        }
                    }
                }
            }
        }
    }

    fn isolate_leader(&mut self) {
        let length = self.some_length() * 2;
        let Some(leader) = self.leader() else { return };
        self.note_for(Machine::World, What::Network, true, length);
        let ways = self.chance.below(3);
        for other in 0..self.processes.len() {
            if ways != 1 {
                self.cut_one(leader, other, length);
            }
            if ways != 2 {
                self.cut_one(other, leader, length);
            }
        }
    }

    /// A holder does not reach anybody for about a ttl, one way or both.
    fn cut_holder(&mut self) {
        let (client, length) = match self.chance.below(6) {
            0 | 1 => (self.some_client(), self.some_length()),
            // Somebody who waits, for so long that it is overdue and with luck not over.
            2 => {
                let ttl = self.plan.ttl.1 * MILLI;
                (self.some_waiter(), self.chance.between(ttl, 2 * ttl))
            }
            _ => (self.some_holder(), self.some_length()),
        };
        let ways = self.chance.below(4);
        let nodes = if self.chance.one_in(4) { 1 } else { self.processes.len() };
        self.note_for(client_machine(client), What::Network, true, length);
        for at in 0..nodes {
            let place = client * self.faults.slots + at;
            self.faults.to_node[place] |= ways != 1;
            self.faults.to_client[place] |= ways != 2;
            self.undo_after(length, Undo::ClientCut { client, at });
        }
    }

    fn hurt_disk(&mut self, fault: Fault) {
        let Some(at) = self.some_node() else { return };
        let length = self.some_length() * 2;
        let machine = self.node_machine(at);
        match fault {
            Fault::DiskSlow => {
                self.processes[at].disk.slow = *self.chance.pick(&[5, 50, 500]) * MILLI;
                self.note_for(machine, What::SlowDisk, true, length);
                self.undo_after(length, Undo::Slow { at });
            }
            Fault::DiskStuck => {
                self.processes[at].disk.stuck = true;
                self.note_for(machine, What::SlowDisk, true, length);
                self.undo_after(length, Undo::Stuck { at });
            }
            Fault::DiskFull => {
                self.processes[at].disk.full = true;
                self.processes[at].disk_mut().set_full(true);
                self.note_for(machine, What::FullDisk, true, length * 4);
                self.undo_after(length * 4, Undo::Full { at });
            }
            _ => {
                let after = usize::try_from(self.chance.below(6)).expect("a few");
                let rare = self.chance.one_in(2);
                let disk = self.processes[at].disk_mut();
                if rare {
                    disk.fail_rare_after(after, leasehold_wal::mem::Fault::Io);
                } else {
                    disk.fail_after(after, leasehold_wal::mem::Fault::Io);
                }
                self.trace.say(self.now, || format!("fault: the disk of n{} fails soon", at + 1));
            }
        }
    }

    fn pause_some_node(&mut self) {
        let Some(at) = self.some_node() else { return };
        let length = self.some_length() * if self.chance.one_in(4) { 3 } else { 1 };
        self.note_for(self.node_machine(at), What::Paused, true, length);
        self.pause_node(at, true);
        self.undo_after(length, Undo::PausedNode { at });
    }

    fn pause_some_client(&mut self) {
        let client = self.some_holder();
        let length = self.some_length();
        self.note_for(client_machine(client), What::Paused, true, length);
        self.pause_client(client, true);
        self.undo_after(length, Undo::PausedClient { client });
    }

    /// A machine stands still: asleep, with one clock running, or stopped from outside with both.
    fn sleep_some(&mut self, fault: Fault) {
        let freezes = fault == Fault::Freeze;
        let ttl = self.plan.ttl.1 * MILLI;
        // Long enough for the next holder to begin.
        let length = if freezes { self.chance.between(ttl, 4 * ttl) } else { self.some_length() };
        if self.chance.one_in(3) {
            let Some(at) = self.some_node() else { return };
            // A node whose clocks stand still or disagree counts less: nobody loses anything.
            self.note_for(self.node_machine(at), What::Clock, true, length);
            self.note_for(self.node_machine(at), What::Paused, true, length);
            self.processes[at].clock.stop(self.now, freezes);
            self.pause_node(at, true);
            return self.undo_after(length, Undo::SleptNode { at });
        }
        let client = self.some_holder();
        self.note_for(client_machine(client), What::Clock, !freezes, length);
        self.note_for(client_machine(client), What::Paused, true, length);
        self.clients[client].clock.stop(self.now, freezes);
        self.pause_client(client, true);
        self.note_beliefs(client);
        self.undo_after(length, Undo::SleptClient { client });
    }

    /// Every clock runs at another rate, within the bound or beyond.
    fn change_rates(&mut self, fault: Fault) {
        let beyond = fault == Fault::RatesBeyond;
        // No clock is slower than half of true time, which is how far excuses reach.
        let most = u64::from(WORST_PPM / self.plan.drift_ppm).clamp(2, 20);
        let factor = if beyond { i64::try_from(self.chance.between(2, most)).expect("small") } else { 1 };
        self.draw_rates(5, factor);
        if beyond {
            let length = self.some_length();
            self.note_for(Machine::World, What::Clock, false, length);
            self.undo_after(length, Undo::Rates);
        }
    }

    /// Draws the rates of all clocks anew, so many times as wrong as they may be.
    fn draw_rates(&mut self, part: u64, factor: i64) {
        let mut random = self.chance.fork(part);
        for at in 0..self.processes.len() {
            let (boot, raw) = self.draw_errors(&mut random, true);
            self.processes[at].clock.set_errors(self.now, boot * factor, raw * factor);
        }
        for client in 0..self.clients.len() {
            let (boot, raw) = self.draw_errors(&mut random, false);
            self.clients[client].clock.set_errors(self.now, boot * factor, raw * factor);
            self.note_beliefs(client);
        }
    }

    /// Everybody acts at once.
    fn storm(&mut self) {
        let at = self.now + self.chance.below(5 * MILLI) + 1;
        for own in &mut self.clients {
            own.app.act_at = own.app.act_at.min(at);
            own.wakes(at);
        }
    }
}

/// Rate errors beyond the bound go up to this.
const WORST_PPM: u32 = 400_000;

fn client_machine(client: usize) -> Machine {
    Machine::Client(ClientId(super::clients::client_number(client)))
}

/// Faults at interesting instants are so many nanoseconds away from them.
pub(super) const NEAR: u64 = SECOND / 50;
