//! How faults end, one by one or all together.

use super::Undo;
use crate::plan::Fault;
use crate::record::{Event as Noted, TrueTime};
use crate::trace::MILLI;
use crate::world::nodes::End;
use crate::world::process::Standing;
use crate::world::{Event, Phase, World};

impl World {
    pub(in crate::world) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Cut { from, to } => self.set_cut(from, to, false),
            Undo::ClientCut { client, at } => {
                let place = client * self.faults.slots + at;
                self.faults.to_node[place] = false;
                self.faults.to_client[place] = false;
                self.flush_connections(client, at);
            }
            Undo::Slow { at } => self.processes[at].disk.slow = 0,
            Undo::Stuck { at } => {
                self.processes[at].disk.stuck = false;
                self.disk_goes_on(at);
            }
            Undo::Full { at } => {
                self.processes[at].disk.full = false;
                self.processes[at].disk_mut().set_full(false);
            }
            Undo::PausedNode { at } => self.pause_node(at, false),
            Undo::PausedClient { client } => {
                self.acts_first(client);
                self.pause_client(client, false);
            }
            Undo::SleptNode { at } => {
                self.processes[at].clock.resume(self.now);
                self.pause_node(at, false);
            }
            Undo::SleptClient { client } => {
                self.clients[client].clock.resume(self.now);
                self.note_beliefs(client);
                self.acts_first(client);
                self.pause_client(client, false);
            }
            Undo::Rates => self.usual_rates(),
            Undo::Lives { at, life } => {
                if self.processes[at].life == life {
                    self.kill(at, End::PowerLost);
                }
            }
            Undo::Noted { machine, what } => self.note_over(machine, what),
        }
    }

    /// The application's thread may run before that of its driver when a process goes on: it asks for a guard and acts.
    fn acts_first(&mut self, client: usize) {
        let own = &self.clients[client];
        if own.paused && !own.clock.stands_still() && self.chance.one_in(2) {
            self.write_under_leases(client);
        }
    }

    fn usual_rates(&mut self) {
        self.draw_rates(6, 1);
    }

    /// Every fault ends, and whoever is down comes back.
    pub(in crate::world) fn heal(&mut self) {
        self.trace.say(self.now, || "faults stop".to_owned());
        self.phase = Phase::Healing;
        let slots = self.processes.len();
        for from in 0..slots {
            for to in 0..slots {
                self.set_cut(from, to, false);
            }
        }
        for client in 0..self.clients.len() {
            for at in 0..slots {
                self.undo(Undo::ClientCut { client, at });
            }
            self.clients[client].clock.resume(self.now);
            if self.clients[client].paused {
                self.pause_client(client, false);
            }
            self.clients[client].served = false;
        }
        for at in 0..slots {
            self.processes[at].disk.dies = None;
            for undo in [Undo::Slow { at }, Undo::Stuck { at }, Undo::Full { at }, Undo::SleptNode { at }] {
                self.undo(undo);
            }
            let own = &self.processes[at];
            if own.standing == Standing::Used && !own.is_running() {
                let life = own.life;
                self.queue.push(self.now + 10 * MILLI, Event::Starts { at, life });
            }
        }
        self.usual_rates();
        self.operators.served = self.now;
        // A client that has met one life of the state refuses another that says it is no younger, for as long as its process lives.
        // Whoever has restored under an epoch that was used before has to start the clients anew.
        if self.plan.faults.has(Fault::RestoreWrong) {
            for client in 0..self.clients.len() {
                self.crash_client(client);
            }
        }
        while let Some((machine, what)) = self.faults.open.first().copied() {
            self.note_over(machine, what);
        }
        self.notes.record.bounds.leader += self.slow_votes();
        self.notes.record.push(TrueTime(self.now), Noted::FaultsStopped);
    }
}
