//! Random schedules of requests, crashes, cuts, stalls, slow disks, clocks that run differently, handovers and changes of the members.
//!
//! Beside what is checked after every turn, the clients here believe in their leases as holders do: from the sending of the last
//! confirmed renewal, for a ttl, by their own clocks. Two of them never believe in one resource, and what one believes in is
//! in the table. At the end everything heals: whoever waits is answered, and everybody is served. One seed decides all.

mod acts;
mod faults;

#[path = "../machine/schedule/client.rs"]
mod client;

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::protocol::RequestId;
use leasehold_node::{CALLS, Fatal, Options};

use client::Client;

use crate::actor::{Actor, name};
use crate::random::Random;
use crate::world::{World, millis, process_of};

const CLIENTS: usize = 5;
const RESOURCES: [&str; 2] = ["a", "b"];
/// Turns of the loops in one schedule, ten milliseconds apart.
const STEPS: usize = 1_000;
/// Processes at most, blank and removed ones counted.
const MAX_PROCESSES: usize = 6;

pub(crate) struct Play {
    world: World,
    clients: Vec<Client>,
    /// The clocks of the clients, and by how many millionths they run fast.
    clocks: Vec<(Reading, i64)>,
    /// Single requests and whose they are.
    asked: BTreeMap<RequestId, usize>,
    /// Single requests that must be answered, with the processes that they were sent to.
    owed: BTreeMap<RequestId, usize>,
    /// Clients that have sent the close of their session.
    closing: BTreeSet<usize>,
    /// What comes to an end later.
    later: BTreeMap<(u64, u64), faults::Later>,
    /// Members that are being shut down.
    leaving: BTreeSet<usize>,
    random: Random,
    numbers: u64,
}

/// Plays a schedule to its end. Says what was violated.
pub(crate) fn play(seed: u64) -> Result<(), String> {
    let mut play = Play::new(seed);
    for _ in 0..STEPS {
        play.step();
        play.sound()?;
    }
    play.heal()
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = Options { snapshot_entries: 20 + random.below(200), ..Options::default() };
        let mut world = World::founded(3 + 2 * random.index(2), options, seed);
        world.hop = millis(10);
        world.net.delay = (0, [5, 20, 60][random.index(3)] * 1_000_000);
        world.net.loss = [0, 5, 50][random.index(3)];
        world.disk_delay = (0, [0, 10, 40][random.index(3)] * 1_000_000);
        for own in &mut world.processes {
            own.rate = rate(&mut random);
        }
        if planted(Bug::FastClock) {
            world.processes.iter_mut().for_each(|own| own.rate = 500_000);
        }
        let mut play = Self {
            world,
            clients: Vec::new(),
            clocks: Vec::new(),
            asked: BTreeMap::new(),
            owed: BTreeMap::new(),
            closing: BTreeSet::new(),
            later: BTreeMap::new(),
            leaving: BTreeSet::new(),
            random,
            numbers: 0,
        };
        for _ in 0..CLIENTS {
            let client = play.fresh();
            play.clients.push(client);
            let rate = rate(&mut play.random);
            play.clocks.push((Reading { boot: 3_000_000_000, raw: 1_000_000_000 }, rate));
        }
        play
    }

    fn step(&mut self) {
        for _ in 0..self.random.index(3) {
            let client = self.random.index(CLIENTS);
            self.act(client);
        }
        self.fault();
        self.hop();
    }

    /// Time passes for everybody, and clients hear what was said to them.
    fn hop(&mut self) {
        self.world.hop();
        let nanos = i64::try_from(self.world.hop.as_nanos()).expect("a hop is short");
        for (clock, rate) in &mut self.clocks {
            let passed = nanos + nanos * *rate / 1_000_000;
            *clock = clock.plus(std::time::Duration::from_nanos(passed.unsigned_abs()));
        }
        self.end_faults();
        for (process, connection, message) in std::mem::take(&mut self.world.sent) {
            let client = match &message {
                leasehold_core::protocol::ToClient::Response { id, .. } if connection == CALLS => {
                    self.owed.remove(id);
                    self.asked.remove(id)
                }
                _ => self.clients.iter().position(|client| client.actor.connection == connection),
            };
            if let Some(client) = client {
                debug_assert!(connection == CALLS || self.clients[client].actor.at == process);
                self.hear(client, message);
            }
        }
        for (_, connection) in std::mem::take(&mut self.world.closed) {
            let closed = self.clients.iter().position(|client| client.actor.connection == connection);
            if let Some(client) = closed {
                self.reconnect(client);
            }
        }
        self.believers();
    }

    /// Whoever believes in a resource is alone, and the table knows it.
    fn believers(&mut self) {
        for resource in RESOURCES {
            let clients = self.clients.iter().zip(&self.clocks);
            let believers: Vec<_> = clients
                .filter_map(|(client, (now, _))| {
                    client.believes_in(resource, *now).map(|token| (client.actor.session, token))
                })
                .collect();
            if believers.len() > 1 {
                self.world.checks.violated(format!("{resource} is believed to be held by {believers:?}"));
            }
            let lease = self.world.checks.table.lease(&name(resource));
            for (session, token) in believers {
                let known = lease.as_ref().is_some_and(|lease| {
                    lease.holders.iter().any(|holder| (holder.session, holder.token) == (session, token))
                });
                if !known {
                    let what =
                        format!("{session} believes in {resource} with {token}, which is not in the table");
                    self.world.checks.violated(what);
                }
            }
        }
    }

    fn sound(&mut self) -> Result<(), String> {
        for (process, own) in self.world.processes.iter().enumerate() {
            if let Some(fatal) = own.fatal.as_ref().filter(|fatal| **fatal != Fatal::Removed) {
                return Err(format!("process {process} stopped: {fatal}"));
            }
        }
        match self.world.checks.violations.first() {
            Some(_) => Err(self.world.checks.violations.join("\n")),
            None => Ok(()),
        }
    }

    /// Nothing fails any more: whoever waits is answered, everything dead is freed, and every member serves.
    fn heal(mut self) -> Result<(), String> {
        self.heal_faults();
        for _ in 0..1_200 {
            self.hop();
        }
        self.sound()?;
        let Some(leader) = self.world.leader() else {
            return Err(format!("nobody leads though nothing fails: {}", self.world.standing()));
        };
        if let Some((id, process)) = self.owed.first_key_value() {
            let standing = self.world.standing();
            return Err(format!("request {} to process {process} was never answered: {standing}", id.0));
        }
        let members = self.world.node(leader).membership().members;
        let members: Vec<usize> = members.iter().map(|(member, _)| process_of(member.id)).collect();
        for (round, at) in members.into_iter().enumerate() {
            self.serve(round, at)?;
        }
        self.sound()
    }

    /// A client that comes new to this process gets what it asks for, and gives it back.
    fn serve(&mut self, round: usize, at: usize) -> Result<(), String> {
        if !self.world.is_up(at) {
            return Err(format!("member {at} does not run"));
        }
        let late = Actor::plain(&mut self.world, at, 1_000_000 + round as u64, 5_000);
        for resource in RESOURCES {
            let token = late.take(&mut self.world, resource);
            self.world.call(at, late.plain_release(resource, token));
        }
        self.world.call(at, late.plain_op(leasehold_core::Op::Close));
        self.world.run(200);
        if self.world.node(at).applied() != self.world.checks.applied() {
            return Err(format!("member {at} has not come as far as the others"));
        }
        let node = self.world.processes[at].node.as_ref().expect("it runs");
        self.world.checks.compare_changes(node);
        self.sound()
    }
}

fn rate(random: &mut Random) -> i64 {
    // Within the drift that is trusted to be kept.
    i64::try_from(random.below(1_801)).expect("it is small") - 900
}

fn plays(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        eprintln!("seed {seed}");
        if let Err(why) = play(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

#[test]
fn a_cluster_keeps_its_promises() {
    // One seed to look at, or a range to search.
    let from_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = from_environment("SEED").map(|seed| seed..seed + from_environment("SEEDS").unwrap_or(1));
    plays(seeds.unwrap_or(0..8));
}

#[test]
fn a_cluster_keeps_its_promises_once_more() {
    plays(8..16);
}
