//! A small world in true time: the lease table, two clients, and a network that loses, delays, cuts and reorders.
//!
//! One seed decides everything. Messages of one connection keep their order; what was sent on a connection that is cut may still
//! arrive behind what was sent on the next one. Faults last for a while, then the world heals and must serve.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::actor::{Actor, Clocks, DRIFT_PPM, TTL, drift};
use super::judge::{Judge, expect};
use super::weather::{MS, Random, Weather};
use crate::answer::{Refusal, Reply};
use crate::client::{Frame, Incoming, Input, LeaseState, Output};
use crate::command::{Command, Entry, Operator, Policies};
use crate::holder::Fraction;
use crate::id::SessionId;
use crate::name::{Label, Reason, ResourceName};
use crate::table::{Config, HoldingState, LeaseTable};
use crate::time::{LogTime, Millis};

const CLIENTS: usize = 2;
/// Faults last this long, and the healed world is watched as long again.
const FAULTS: u64 = 8_000 * MS;
const HEALED: u64 = 8_000 * MS;

/// An ordinary schedule has about ten thousand happenings; a machine that asks to be woken for nothing makes millions.
const MAX_HAPPENINGS: u32 = 50_000;

enum Happening {
    ToService { client: usize, connection: u64, frame: Frame },
    ToClient { client: usize, connection: u64, input: Input },
    Wake { client: usize, wake: u64 },
    Connect { client: usize },
    Disturb,
    Application { client: usize },
    Operator,
    Tick,
}

pub(super) struct World {
    random: Random,
    now: u64,
    sequence: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    weather: Weather,
    table: LeaseTable,
    service_ppm: u64,
    actors: Vec<Actor>,
    machines: Vec<u64>,
    resources: Vec<ResourceName>,
    /// Where the items of a session go.
    attached: BTreeMap<SessionId, (usize, u64)>,
    /// The connections made so far, and when the last message of each direction arrives.
    connections: u64,
    arrivals: BTreeMap<(u64, bool), u64>,
    pub(super) judge: Judge,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let (weather, tight) = Weather::draw(&mut random);
        let (slow, fast) = (1_000_000 - u64::from(DRIFT_PPM), 1_000_000 + u64::from(DRIFT_PPM));
        let extreme = |random: &mut Random| if tight || random.one_in(2) { slow } else { fast };
        let policies = match random.below(if tight { 2 } else { 3 }) {
            0 => Policies::default(),
            1 => Policies { grace: Millis::new(0), hard: Millis::new(2_000), delay: Millis::new(0) },
            _ => Policies { grace: Millis::new(200), hard: Millis::new(1_000), delay: Millis::new(50) },
        };
        let actors: Vec<Actor> = (0..CLIENTS)
            .map(|_| {
                let clocks =
                    Clocks { boot_ppm: extreme(&mut random), raw_ppm: extreme(&mut random), suspended: 0 };
                Actor::new(clocks, policies, random.nonce())
            })
            .collect();
        let service_ppm = if tight || random.one_in(2) { fast } else { slow };
        let config = Config { drift: drift(), ..Config::default() };
        let names = if random.one_in(3) { vec!["a", "b"] } else { vec!["a"] };
        let mut world = Self {
            random,
            now: 0,
            sequence: 0,
            queue: BTreeMap::new(),
            weather,
            table: LeaseTable::new(config),
            service_ppm,
            actors,
            machines: vec![0; CLIENTS],
            resources: names.into_iter().map(|name| ResourceName::new(name).unwrap()).collect(),
            attached: BTreeMap::new(),
            connections: 0,
            arrivals: BTreeMap::new(),
            judge: Judge::default(),
        };
        for client in 0..CLIENTS {
            world.after(0, Happening::Connect { client });
            world.after(5 * MS, Happening::Application { client });
        }
        world.after(200 * MS, Happening::Disturb);
        world.after(700 * MS, Happening::Operator);
        world.after(0, Happening::Tick);
        world
    }

    /// Plays the whole schedule.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let mut polls_left = MAX_HAPPENINGS;
        while let Some(((time, _), happening)) = self.queue.pop_first() {
            if time > FAULTS + HEALED {
                break;
            }
            polls_left -= 1;
            expect(polls_left > 0, || {
                format!("restless: {MAX_HAPPENINGS} happenings by {} us", time / 1_000)
            })?;
            self.now = time;
            if time > FAULTS {
                self.weather = Weather::fair();
            }
            self.happen(happening).map_err(|words| format!("at {} us: {words}", self.now / 1_000))?;
        }
        self.table.check_invariants()?;
        self.judge.check_all_resolved()?;
        self.check_views_agree()
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        if let Some(client) = happening.client()
            && self.actors[client].paused_until > self.now
        {
            let later = self.actors[client].paused_until - self.now;
            self.after(later, happening);
            return Ok(());
        }
        match happening {
            Happening::ToService { client, connection, frame } => self.serve(client, connection, frame),
            Happening::ToClient { client, connection, input } => {
                if self.actors[client].connection != Some(connection) {
                    return Ok(());
                }
                self.input(client, input)
            }
            Happening::Wake { client, wake } if self.actors[client].wakes == wake => self.poll(client),
            Happening::Wake { .. } => Ok(()),
            Happening::Connect { client } => {
                self.connections += 1;
                self.actors[client].connection = Some(self.connections);
                self.input(client, Input::Connected)
            }
            Happening::Disturb => self.disturb(),
            Happening::Application { client } => self.application(client),
            Happening::Operator => self.operator(),
            Happening::Tick => {
                self.after(2 * MS, Happening::Tick);
                let at = self.log_time();
                if self.table.next_due().is_none_or(|due| due >= at) {
                    return Ok(());
                }
                self.apply(Vec::new(), None)
            }
        }
    }

    fn after(&mut self, delay: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), happening);
    }

    fn log_time(&self) -> LogTime {
        let nanos = u128::from(self.now) * u128::from(self.service_ppm) / 1_000_000;
        LogTime::new(u64::try_from(nanos / u128::from(MS)).unwrap())
    }

    /// Applies an entry, tidied first, and sends what comes of it: items before the reply.
    fn apply(&mut self, commands: Vec<Command>, from: Option<(usize, u64, Frame)>) -> Result<(), String> {
        let at = self.log_time();
        let due = self.table.due(at);
        let entries = [vec![Command::Tidy(due)], commands];
        for (entry, from) in entries.into_iter().zip([None, from]) {
            if entry.is_empty() {
                continue;
            }
            let entry = Entry { at, commands: entry };
            let applied = self.table.apply(&entry);
            for (session, item) in &applied.items {
                self.judge.arose(*session, item);
                if let Some(&(client, connection)) = self.attached.get(session) {
                    let incoming = Incoming::Item { session: *session, item: item.clone() };
                    self.send_to_client(client, connection, Input::Received(incoming));
                }
            }
            for (command, reply) in entry.commands.iter().zip(applied.replies) {
                if let (Command::Session(command), Reply::Applied { number }) = (command, &reply) {
                    self.judge.applied(command.session, *number)?;
                }
                if let Some((client, connection, frame)) = &from {
                    self.reply(*client, *connection, frame, reply)?;
                }
            }
        }
        Ok(())
    }

    fn serve(&mut self, client: usize, connection: u64, frame: Frame) -> Result<(), String> {
        let command = match &frame {
            Frame::Open(open) => Command::Open(open.clone()),
            Frame::Attach { attach, nonce } => {
                let known = self.table.nonce(attach.session);
                expect(known.is_none_or(|known| known == *nonce), || {
                    format!("client {client}: a wrong nonce")
                })?;
                Command::Attach(attach.clone())
            }
            Frame::Renew { session, number, seen } => {
                Command::Renew { session: *session, number: *number, seen: *seen }
            }
            Frame::Command(command) => {
                self.judge.received(command)?;
                Command::Session(command.clone())
            }
        };
        self.apply(vec![command], Some((client, connection, frame)))
    }

    fn reply(&mut self, client: usize, connection: u64, frame: &Frame, reply: Reply) -> Result<(), String> {
        let ahead = matches!(reply, Reply::Refused(Refusal::SeenAhead { .. }));
        expect(!ahead, || format!("client {client} has seen what does not exist"))?;
        let Some(incoming) = frame.answered_with(reply) else { return Ok(()) };
        self.send_to_client(client, connection, Input::Received(incoming.clone()));
        if matches!(incoming, Incoming::Renewed { .. }) && self.random.one_in(3) {
            // Any wish, sensible or not.
            let length = Duration::from_millis(self.random.below(2 * TTL.get()));
            self.send_to_client(client, connection, Input::Hint(length));
        }
        if let Incoming::Attached { session, .. } = incoming {
            self.attached.insert(session, (client, connection));
            let unseen: Vec<_> = self.table.unseen(session).cloned().collect();
            for item in unseen {
                self.send_to_client(client, connection, Input::Received(Incoming::Item { session, item }));
            }
        }
        Ok(())
    }

    fn send_to_client(&mut self, client: usize, connection: u64, input: Input) {
        if let Some(delay) = self.travel(connection, false) {
            self.after(delay, Happening::ToClient { client, connection, input });
        }
    }

    /// How long a message takes, unless it is lost. Messages of one connection do not overtake each other.
    fn travel(&mut self, connection: u64, up: bool) -> Option<u64> {
        if self.weather.loss > 0 && self.random.one_in(self.weather.loss) {
            return None;
        }
        let slow = self.weather.slow > 0 && self.random.one_in(self.weather.slow);
        let longest = if slow { TTL.get() / 2 * MS } else { self.weather.delay };
        let arrival = self.now + self.random.below(longest);
        let last = self.arrivals.entry((connection, up)).or_default();
        *last = arrival.max(*last);
        Some(*last - self.now)
    }

    fn input(&mut self, client: usize, input: Input) -> Result<(), String> {
        let actor = &mut self.actors[client];
        actor.machine.handle(input, actor.clocks.read(self.now));
        self.poll(client)
    }

    fn poll(&mut self, client: usize) -> Result<(), String> {
        let jitter = Fraction::from_bits(self.random.next() as u32);
        let now = self.actors[client].clocks.read(self.now);
        for output in self.actors[client].machine.poll(now, jitter) {
            match output {
                Output::Send(frame) => {
                    let connection = self.actors[client].connection;
                    let connection =
                        connection.ok_or_else(|| format!("client {client} sends without a connection"))?;
                    if let Some(delay) = self.travel(connection, true) {
                        self.after(delay, Happening::ToService { client, connection, frame });
                    }
                }
                Output::Event(event) => {
                    self.judge.learned((client, self.machines[client]), &event)?;
                    self.actors[client].learn(&event);
                }
                Output::NeedNonce => {
                    let nonce = self.random.nonce();
                    self.actors[client].machine.handle(Input::Nonce(nonce), now);
                }
                Output::Reconnect => self.cut(client, 10 * MS)?,
            }
        }
        if self.actors[client].over {
            self.machines[client] += 1;
            let nonce = self.random.nonce();
            self.actors[client].begin_anew(nonce);
            if self.actors[client].connection.is_some() {
                return self.input(client, Input::Connected);
            }
        }
        self.check_exclusion()?;
        let actor = &mut self.actors[client];
        actor.wakes += 1;
        let wake = actor.wakes;
        if let Some(length) = actor.machine.next_wake(actor.clocks.read(self.now)) {
            let length = u64::try_from(length.as_nanos()).unwrap();
            self.after(length + 1_000, Happening::Wake { client, wake });
        }
        Ok(())
    }

    /// No two clients believe in one resource at the same true time.
    fn check_exclusion(&mut self) -> Result<(), String> {
        for resource in &self.resources {
            let believers = self.actors.iter().filter(|actor| actor.believes(resource, self.now)).count();
            expect(believers <= 1, || format!("{believers} clients believe in {resource}"))?;
        }
        Ok(())
    }

    fn disturb(&mut self) -> Result<(), String> {
        if self.now > FAULTS {
            return Ok(());
        }
        let sieges = self.weather.sieges;
        let client = self.random.below(CLIENTS as u64) as usize;
        let length = if sieges { 900 + self.random.below(500) } else { self.random.below(1_300) } * MS;
        let pause = (50 + self.random.below(700)) * MS;
        self.after(if sieges { length + pause } else { pause }, Happening::Disturb);
        match self.random.below(if sieges { 8 } else { 4 }) {
            2 => {
                self.actors[client].paused_until = self.now + length;
                Ok(())
            }
            3 => {
                // Suspended: the raw clock stands still, so it is told now what it will have missed.
                self.actors[client].paused_until = self.now + length;
                let reading = self.actors[client].clocks.read(self.now).raw;
                let clocks = &mut self.actors[client].clocks;
                clocks.suspended += length.min(self.now - clocks.suspended);
                expect(clocks.read(self.now + length).raw + 2 >= reading, || "a clock went back".into())
            }
            _ => self.cut(client, length),
        }
    }

    fn cut(&mut self, client: usize, length: u64) -> Result<(), String> {
        if self.actors[client].connection.take().is_none() {
            return Ok(());
        }
        self.after(length, Happening::Connect { client });
        self.input(client, Input::Disconnected)
    }

    fn application(&mut self, client: usize) -> Result<(), String> {
        let pause = (5 + self.random.below(300)) * MS;
        self.after(pause, Happening::Application { client });
        // In the last stretch nothing new is begun, so that everything can be resolved.
        if self.now > FAULTS + HEALED / 2 {
            return Ok(());
        }
        let actor = &mut self.actors[client];
        let Some(op) =
            actor.wish(&mut self.random, &self.resources, self.weather.close, self.weather.release)
        else {
            return Ok(());
        };
        let who = (client, self.machines[client]);
        if let Ok(number) = self.actors[client].machine.submit(op.clone()) {
            self.judge.submitted(who, number, &op)?;
            if matches!(op, crate::command::Op::Acquire(_)) {
                self.actors[client].wanted = Some(number);
                self.actors[client].cancelled = false;
            }
        }
        self.poll(client)
    }

    fn operator(&mut self) -> Result<(), String> {
        let pause = (300 + self.random.below(2_000)) * MS;
        self.after(pause, Happening::Operator);
        let resource = self.resources[0].clone();
        let Some(lease) = self.table.lease(&resource) else { return Ok(()) };
        let Some(holder) = lease.holders.first().filter(|_| self.now < FAULTS) else { return Ok(()) };
        let (by, reason) = (Label::new("operator").unwrap(), Reason::new("").unwrap());
        let revoke = Operator::Revoke { resource, token: holder.token, by, reason, now: false };
        self.apply(vec![Command::Operator(revoke)], None)
    }

    /// At the end of a healed world each machine knows exactly the leases that the table says it holds, and believes in them.
    fn check_views_agree(&self) -> Result<(), String> {
        for (client, actor) in self.actors.iter().enumerate() {
            let Some(session) = actor.machine.session() else {
                return Err(format!("client {client} has no session in a healed world"));
            };
            for resource in &self.resources {
                let view = self.table.lease(resource);
                let holders = view.iter().flat_map(|view| &view.holders);
                let ours =
                    holders.filter(|holder| holder.session == session && holder.state == HoldingState::Held);
                let ours: Vec<_> = ours.map(|holder| holder.token).collect();
                let leases: Vec<_> =
                    actor.machine.leases().filter(|l| l.grant().resource == *resource).collect();
                let known: Vec<_> = leases.iter().map(|lease| lease.grant().token).collect();
                expect(ours == known, || {
                    format!("client {client} holds {ours:?} of {resource} and knows {known:?}")
                })?;
                let reading = actor.clocks.read(self.now);
                for lease in leases {
                    let state = lease.state(reading);
                    expect(matches!(state, LeaseState::Held { .. }), || {
                        format!("client {client}: {state:?}")
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl Happening {
    /// Whose machine must run for this.
    fn client(&self) -> Option<usize> {
        match self {
            Self::ToClient { client, .. }
            | Self::Wake { client, .. }
            | Self::Connect { client }
            | Self::Application { client } => Some(*client),
            Self::ToService { .. } | Self::Disturb | Self::Operator | Self::Tick => None,
        }
    }
}
