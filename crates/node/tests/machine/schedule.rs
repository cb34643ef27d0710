//! Random schedules of requests, syncs, stalls, suspends, crashes and reboots.
//!
//! Beside what the oracle checks after every turn, the clients here believe in their leases as holders do: from the sending of
//! the last confirmed renewal, for a ttl, by the clock that moved further. Two of them never believe in one resource. Half
//! of the sessions are plain: their acquires are kept waiting, and their callers go away whenever they like. At the end the disk is
//! quick and nothing fails, and the node must serve; or it is told to stop, and must answer everybody.

mod client;

use std::collections::BTreeSet;

use leasehold_core::holder::Reading;
use leasehold_core::protocol::{RequestId, Response, ToClient};
use leasehold_core::{
    Answer, CommandNumber, Config, Millis, Nonce, Op, Policies, Refusal, Reply, SessionKind,
};
use leasehold_node::{ConnectionId, Input, Options, Place};
use proptest::prelude::*;

use client::Client;

use crate::actor::{Actor, name};
use crate::disk::Crash;
use crate::world::{World, embedded, machine, millis};

const CLIENTS: usize = 4;
/// Below what one turn may add to log time.
const HOP_MS: u64 = 40;
const RESOURCES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone)]
enum Step {
    Send(usize, Act),
    Turn,
    Sync,
    /// A quick disk: everything that was sent is synced and answered.
    Settle,
    Pass(u64),
    /// A quick disk and a loop that is not held up: all of the time counts.
    Run(u64),
    Suspend(u64),
    Slew(u64),
    SnapshotSaved,
    Disconnect(usize),
    /// A caller that is kept waiting goes away.
    GiveUp(usize),
    Crash {
        keeps_written: bool,
        down_ms: u64,
        loses_messages: bool,
    },
    Reboot,
}

#[derive(Debug, Clone)]
enum Act {
    Attach,
    Renew,
    Acquire(usize, Option<u64>),
    Release(usize),
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Attach),
        6 => Just(Act::Renew),
        6 => (0..RESOURCES.len(), prop::option::weighted(0.8, 1..5_000_u64)).prop_map(|(r, w)| Act::Acquire(r, w)),
        2 => (0..RESOURCES.len()).prop_map(Act::Release),
        1 => Just(Act::Close),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => (0..CLIENTS, act()).prop_map(|(client, act)| Step::Send(client, act)),
        6 => Just(Step::Turn),
        4 => Just(Step::Sync),
        20 => Just(Step::Settle),
        6 => (0..90_000_000_u64).prop_map(Step::Pass),
        2 => (0..3_000_000_000_u64).prop_map(Step::Pass),
        3 => (0..2_500_u64).prop_map(Step::Run),
        1 => (0..3_000_u64).prop_map(Step::Suspend),
        1 => (0..200_u64).prop_map(Step::Slew),
        1 => Just(Step::SnapshotSaved),
        1 => (0..CLIENTS).prop_map(Step::Disconnect),
        4 => (0..CLIENTS).prop_map(Step::GiveUp),
        1 => (any::<bool>(), 0..2_000_u64, any::<bool>()).prop_map(|(keeps_written, down_ms, loses_messages)| {
            Step::Crash { keeps_written, down_ms, loses_messages }
        }),
        1 => Just(Step::Reboot),
    ]
}

struct Play {
    world: World,
    clients: Vec<Client>,
    nonces: u8,
    connections: u64,
    boots: u8,
    /// Calls that must be answered in the end: of living callers to the present process.
    owed: BTreeSet<(ConnectionId, RequestId)>,
}

impl Play {
    fn new(place: Place) -> Self {
        let config = Config::default();
        let options = Options { snapshot_entries: 12, ..Options::default() };
        let mut play = Self {
            world: World::begin(place, config, options),
            clients: Vec::new(),
            nonces: 0,
            connections: 1_000,
            boots: 1,
            owed: BTreeSet::new(),
        };
        for _ in 0..CLIENTS {
            let client = play.fresh();
            play.clients.push(client);
        }
        play
    }

    /// A client that nobody knows yet, with a ttl and policies of its own.
    fn fresh(&mut self) -> Client {
        self.nonces = self.nonces.checked_add(1).expect("a schedule is shorter");
        let number = u64::from(self.nonces);
        let mut actor = Actor::new(self.nonces, [500, 1_000, 3_000][usize::from(self.nonces) % 3]);
        actor.nonce = Nonce([self.nonces; 16]);
        let grace = Millis::new(number % 2 * 200);
        actor.policies = Policies {
            grace,
            hard: Millis::new(grace.get() + number % 3 * 400),
            delay: Millis::new(number % 5 * 60),
        };
        actor.connection = self.connection();
        if number / 2 % 2 == 1 {
            actor.kind = SessionKind::Plain;
        }
        Client::new(actor)
    }

    fn connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(self.connections)
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(client, act) => self.send(*client, act),
            Step::Turn => self.turn(),
            Step::Sync => {
                self.world.sync();
            }
            Step::Settle => self.settle(),
            Step::Run(length) => {
                for _ in 0..length / HOP_MS {
                    self.world.pass(millis(HOP_MS));
                    self.settle();
                }
            }
            Step::Pass(nanos) => self.world.pass(std::time::Duration::from_nanos(*nanos)),
            Step::Suspend(ms) => self.world.clock.boot += ms * 1_000_000,
            Step::Slew(ms) => self.world.clock.raw += ms * 1_000_000,
            Step::SnapshotSaved => {
                if self.world.disk.saving.is_some() {
                    self.world.save_snapshot();
                }
            }
            Step::Disconnect(client) => {
                let connection = self.clients[*client].actor.connection;
                self.owed.retain(|(owed, _)| *owed != connection);
                self.world.inbox.push(Input::Disconnected(connection));
                self.reconnect(*client);
            }
            Step::GiveUp(client) => {
                let client = &mut self.clients[*client];
                if let Some(id) = client.calls.pop_last() {
                    self.owed.remove(&(client.actor.connection, id));
                    self.world.give_up(client.actor.connection, id);
                }
            }
            Step::Crash { keeps_written, down_ms, loses_messages } => {
                if *loses_messages {
                    self.world.sent.clear();
                }
                self.crash(*keeps_written, *down_ms);
            }
            Step::Reboot => self.reboot(),
        }
    }

    fn settle(&mut self) {
        self.turn();
        while self.world.sync() {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.world.turn();
        for (connection, message) in std::mem::take(&mut self.world.sent) {
            let client = self.clients.iter().position(|client| client.actor.connection == connection);
            if let Some(client) = client {
                self.hear(client, message);
            }
        }
        self.nobody_else_believes();
    }

    fn reconnect(&mut self, client: usize) {
        let connection = self.connection();
        let client = &mut self.clients[client];
        client.actor.connection = connection;
        client.is_attached = client.is_plain();
        client.calls.clear();
    }

    fn crash(&mut self, keeps_written: bool, down_ms: u64) {
        self.world.pass(millis(down_ms));
        let crash = if keeps_written { Crash::KeepsWritten(1) } else { Crash::KeepsAcknowledged };
        self.world.crash(crash);
        self.owed.clear();
        for client in 0..CLIENTS {
            self.reconnect(client);
        }
    }

    /// Embedded only: every process of the machine is gone with it, and the clocks begin anew.
    fn reboot(&mut self) {
        if matches!(self.world.place, Place::Served) {
            return;
        }
        self.boots += 1;
        self.world.place = embedded(machine(self.boots, 7), false);
        // Each time a little earlier: clocks that stand behind the last entry prove no reboot.
        let earlier = u64::from(self.boots) * 15_000_000_000;
        self.world.clock = Reading { boot: 4_001_000_000_000 - earlier, raw: 4_000_900_000_000 - earlier };
        self.world.oracle.forget_readings();
        self.world.sent.clear();
        for client in 0..CLIENTS {
            self.clients[client] = self.fresh();
        }
        self.owed.clear();
        self.world.crash(Crash::KeepsAcknowledged);
    }

    fn send(&mut self, client_number: usize, act: &Act) {
        let now = self.world.clock;
        let client = &mut self.clients[client_number];
        let request = match act {
            // A repeated open counts from its first sending.
            _ if !client.is_open => {
                client.sent.entry(0).or_insert(now);
                client.actor.open()
            }
            _ if client.is_plain() => return self.send_plain(client_number, act),
            // Once too often is no harm.
            Act::Attach => client.actor.attach(),
            _ if !client.is_attached => client.actor.attach(),
            Act::Renew => {
                let renew = client.actor.renew();
                client.sent.insert(client.actor.renewal.get(), now);
                renew
            }
            Act::Acquire(resource, wait) => client.actor.acquire(RESOURCES[*resource], *wait),
            Act::Release(resource) => {
                let resource = RESOURCES[*resource];
                let Some(token) = client.gives_back(resource) else { return };
                client.actor.release(resource, token)
            }
            Act::Close => {
                client.closes();
                client.actor.close()
            }
        };
        self.world.ask(client.actor.connection, request);
    }

    fn send_plain(&mut self, client: usize, act: &Act) {
        let now = self.world.clock;
        let client = &mut self.clients[client];
        let connection = client.actor.connection;
        match act {
            Act::Attach | Act::Renew => {
                let id = self.world.ask(connection, client.actor.plain_renew());
                client.unnumbered.insert(id, now);
            }
            Act::Acquire(resource, wait) => {
                let acquire = client.actor.held_acquire(RESOURCES[*resource], wait.unwrap_or(1));
                let id = self.world.ask(connection, acquire);
                client.calls.insert(id);
                self.owed.insert((connection, id));
            }
            Act::Release(resource) => {
                let resource = RESOURCES[*resource];
                let Some(token) = client.gives_back(resource) else { return };
                self.world.ask(connection, client.actor.plain_release(resource, token));
            }
            Act::Close => {
                client.closes();
                self.world.ask(connection, client.actor.plain_op(Op::Close));
            }
        }
    }

    fn hear(&mut self, client: usize, message: ToClient) {
        match message {
            ToClient::Items { items, .. } => {
                for item in items {
                    self.clients[client].process(item.number, &item.kind);
                }
            }
            ToClient::Response { id, response } => {
                let caller = &mut self.clients[client];
                // Whoever has given up hears nothing, whatever is said.
                self.owed.remove(&(caller.actor.connection, id));
                let listens = caller.calls.remove(&id);
                if let Response::Reply(reply) = response {
                    self.hear_reply(client, id, &reply, listens);
                }
            }
            ToClient::Hint { .. } | ToClient::Watched { .. } => {}
        }
        self.clients[client].count_kept();
    }

    fn hear_reply(&mut self, client: usize, id: RequestId, reply: &Reply, listens: bool) {
        let heard = &mut self.clients[client];
        match reply {
            Reply::Opened(opened) => {
                heard.actor.session = opened.session;
                heard.is_open = true;
            }
            Reply::Attached { last_command, .. } => {
                heard.actor.command = *last_command;
                heard.is_attached = true;
            }
            Reply::Plain { answer: Answer::Granted(grants), renewal, .. } if listens => {
                heard.plain_granted(grants, *renewal);
            }
            Reply::Renewed(renewed) if heard.is_plain() => heard.plain_renewed(id, renewed),
            Reply::Renewed(renewed) => heard.kept.push((renewed.number.get(), renewed.after)),
            Reply::Closed | Reply::Refused(Refusal::SessionEnded { .. }) => {
                let fresh = self.fresh();
                self.clients[client] = fresh;
            }
            Reply::Refused(Refusal::CommandGap { expected, .. }) => {
                heard.actor.command = CommandNumber::new(expected.get() - 1);
            }
            _ => {}
        }
    }

    /// Whoever believes in a resource is alone.
    fn nobody_else_believes(&self) {
        for resource in RESOURCES {
            let now = self.world.clock;
            let believers: Vec<_> = self
                .clients
                .iter()
                .filter_map(|client| {
                    client.believes_in(resource, now).map(|token| (client.actor.session, token))
                })
                .collect();
            assert!(believers.len() <= 1, "{resource} is believed to be held by {believers:?}");
        }
    }

    /// The service is told to stop: it ends without any time passing, no wait of a caller is left, and everybody was told.
    fn stop(mut self) {
        self.world.inbox.push(Input::Drain);
        self.world.rest();
        assert!(self.world.node.is_drained());
        for (connection, id) in &self.owed {
            assert!(self.world.is_answered(*connection, *id), "call {} was never answered", id.0);
        }
        assert_eq!(self.world.node.stats().held_calls, 0);
    }

    /// Nothing fails any more: the node serves, and everything dead is freed.
    fn heal(mut self) {
        self.world.sent.clear();
        self.world.rest();
        assert!(self.world.node.is_serving());
        self.world.run(millis(8_000));
        assert_eq!(self.world.node.stats().held_calls, 0, "somebody is kept waiting for ever");
        for (connection, id) in &self.owed {
            assert!(self.world.is_answered(*connection, *id), "call {} was never answered", id.0);
        }
        for resource in RESOURCES {
            let lease = self.world.node.table().lease(&name(resource));
            assert!(lease.is_none_or(|lease| lease.holders.is_empty()), "{resource} was never freed");
        }
        let mut late = Actor::new(255, 1_000);
        late.connection = ConnectionId(1);
        let mut late = late.opened(&mut self.world);
        for resource in RESOURCES {
            late.hold(&mut self.world, resource);
        }
        let writes = self.world.disk.writes;
        let close = late.close();
        late.send(&mut self.world, close);
        self.world.run(millis(3_000));
        assert!(self.world.disk.writes <= writes + 4, "a node without sessions goes on writing");
    }
}

fn play(place: Place, steps: &[Step]) -> Play {
    let mut play = Play::new(place);
    for step in steps {
        play.step(step);
    }
    play
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_service_keeps_its_promises(steps in prop::collection::vec(step(), 60..400)) {
        play(Place::Served, &steps).heal();
    }

    #[test]
    fn a_service_that_is_told_to_stop_answers_everybody(steps in prop::collection::vec(step(), 60..300)) {
        play(Place::Served, &steps).stop();
    }

    #[test]
    fn an_embedded_directory_keeps_its_promises(steps in prop::collection::vec(step(), 60..400)) {
        play(embedded(machine(1, 7), false), &steps).heal();
    }
}
