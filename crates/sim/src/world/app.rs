//! A small application on a client: it opens a session, wants leases, works under them, and gives them back, or not.

mod hearing;

use leasehold_core::client::{ClientSession, Profile};
use leasehold_core::numbers::{Ask, Numbers};
use leasehold_core::protocol::{Query, ReadAnswer, Response};
use leasehold_core::{
    Acquire, CommandNumber, Drift, Grant, Label, Millis, Mode, Offer, Op, Policies, RegisterKey, Request,
    ResourceName, Successor, Token, Value,
};

use super::World;
use super::clients::client_number;
use crate::plan::{Fault, Plan};
use crate::random::Random;
use crate::record::{Asked, ClientId, Event as Noted, LogId, Place, TrueTime};
use crate::trace::{MILLI, SECOND};

/// Names of resources, those with slots last.
pub(crate) struct Names {
    pub(crate) names: Vec<(ResourceName, Kind)>,
}

/// What a name is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Exclusive, and shared now and then.
    Whole { shared: bool },
    /// In slots.
    Slots(u32),
}

impl Kind {
    /// How it is asked for.
    pub(super) fn mode(self, random: &mut Random) -> Mode {
        match self {
            Self::Slots(of) => Mode::Slot { of },
            Self::Whole { shared: true } if random.one_in(2) => Mode::Shared,
            Self::Whole { .. } => Mode::Exclusive,
        }
    }
}

impl Names {
    pub(crate) fn new(plan: &Plan) -> Self {
        let whole =
            (0..plan.resources).map(|number| (format!("r{number}"), Kind::Whole { shared: number % 3 == 2 }));
        let slots = [("slots-2".to_owned(), Kind::Slots(2)), ("slots-3".to_owned(), Kind::Slots(3))];
        let named = |(name, kind): (String, Kind)| (ResourceName::new(&name).expect("a good name"), kind);
        Self { names: whole.chain(slots).map(named).collect() }
    }
}

/// A lease that the application was told of.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) token: Token,
    pub(super) fence: Token,
    pub(super) resource: ResourceName,
    pub(super) place: Place,
    /// Whether the fenced receiver has taken the seal.
    pub(super) sealed: bool,
    /// When the last write under it has arrived.
    pub(super) busy_until: u64,
    /// It is over: the release that acknowledges it is still to be sent.
    pub(super) over: bool,
    /// The application wants to give it back and only waits for its writes to arrive.
    pub(super) leaving: bool,
}

impl Held {
    /// A lease that was just granted.
    pub(super) fn of(grant: Grant, place: Place) -> Self {
        Self {
            token: grant.token,
            fence: grant.fence,
            resource: grant.resource,
            place,
            sealed: false,
            busy_until: 0,
            over: false,
            leaving: false,
        }
    }

    const fn is_ending(&self) -> bool {
        self.over || self.leaving
    }
}

/// The application's own state.
#[derive(Default)]
pub(super) struct App {
    pub(super) act_at: u64,
    pub(super) held: Vec<Held>,
    waits: Vec<CommandNumber>,
    offers: Vec<(ResourceName, Token)>,
    /// Leases that were held once, in any session: whoever forgets that they are over shows their tokens again.
    pub(super) past: Vec<(ResourceName, Token)>,
    /// The session is to be closed.
    leaves: bool,
    in_flight: u64,
    pub(super) numbers: Option<Numbers>,
    pub(super) unsent_reads: Vec<(u64, Query)>,
    pub(super) sent_reads: Vec<(u64, Query)>,
    /// When the oldest of those was sent, about.
    pub(super) read_since: Option<u64>,
}

impl App {
    pub(super) fn new(act_at: u64) -> Self {
        Self { act_at, ..Self::default() }
    }

    /// Whether it waits for a lease.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waits.is_empty()
    }
}

/// Leases that an application remembers.
const MAX_PAST: usize = 6;
/// Reads at once at most.
const MAX_READS: usize = 2;

impl World {
    /// The application does its next thing.
    pub(super) fn app_acts(&mut self, client: usize) {
        let pause = if self.phase == super::Phase::Healing {
            self.plan.act_pause.min(SECOND)
        } else {
            self.plan.act_pause
        };
        let pause = self.clients[client].random.around(pause);
        self.clients[client].app.act_at = self.now + pause.max(MILLI);
        if self.clients[client].machine.is_none() {
            return self.app_opens(client);
        }
        if self.clients[client].session.is_none() || self.clients[client].closing_since.is_some() {
            return;
        }
        self.accept_offers(client);
        if self.clients[client].app.leaves {
            self.drain(client);
        } else {
            self.app_decides(client);
            self.write_under_leases(client);
        }
        self.release_what_is_idle(client);
        let own = &mut self.clients[client];
        let busy = own.app.held.iter().filter(|held| held.is_ending()).map(|held| held.busy_until).min();
        if let Some(idle) = busy {
            // What could not be given back now, because too much is unanswered, is tried again a little later.
            own.app.act_at = own.app.act_at.min(idle.saturating_add(1).max(self.now + MILLI));
        }
    }

    fn app_decides(&mut self, client: usize) {
        let in_faults = self.phase == super::Phase::Faults;
        let abandons = self.plan.faults.has(Fault::Abandon) && in_faults;
        let shows_strange = self.plan.faults.has(Fault::StrangeTokens) && in_faults;
        let own = &mut self.clients[client];
        let (holds, waits) = (own.app.held.iter().any(|held| !held.is_ending()), !own.app.waits.is_empty());
        match own.random.below(100) {
            0..25 if holds => self.app_releases(client),
            25..28 if holds => self.app_offers(client),
            28..32 if holds => self.app_writes_register(client),
            32..36 if waits => self.app_cancels(client),
            36..49 if waits && abandons => self.app_cancels(client),
            49 if !own.app.past.is_empty() => self.app_shows_old_token(client),
            50..51 => self.clients[client].app.leaves = true,
            51..54 if abandons => self.clients[client].app.leaves = true,
            54..58 => self.app_reads(client),
            58..60 if shows_strange => self.app_shows_strange_token(client),
            58.. if own.app.waits.len() < 2 && own.app.held.len() < 4 => self.app_acquires(client),
            // Whoever has nothing else to do looks: stale answers show only where there are many.
            _ => self.app_reads(client),
        }
    }

    fn app_opens(&mut self, client: usize) {
        let (least, most) = self.plan.ttl;
        let random = &mut self.clients[client].random;
        let ttl = random.between(least, most);
        let policies = draw_policies(random, ttl);
        let numbers = self.numbers(ttl);
        let label = Label::new(&format!("c{client}")).expect("a good label");
        let nonce = self.draw_nonce(client);
        let own = &mut self.clients[client];
        own.app.in_flight = self.plan.in_flight;
        own.app.numbers = Some(numbers);
        let mut machine = ClientSession::new(Profile { label, numbers, policies }, nonce);
        if own.way.connection.is_some() {
            machine.handle(leasehold_core::client::Input::Connected, own.clock.read(self.now));
        }
        own.machine = Some(machine);
        own.closing_since = None;
    }

    /// The numbers of a session with this ttl.
    pub(super) fn numbers(&self, ttl: u64) -> Numbers {
        let in_flight = self.plan.in_flight / MILLI;
        let ask = Ask {
            in_flight: (in_flight > 0).then_some(Millis::new(in_flight)),
            drift: Drift::from_ppm(self.plan.drift_ppm).expect("plans have possible bounds"),
            round_trip: Some(Millis::new(20)),
            max_ttl: Millis::new(self.plan.max_ttl),
            ..Ask::for_ttl(Millis::new(ttl))
        };
        Numbers::check(ask).expect("plans have numbers that fit")
    }

    /// Submits a command, and notes what was asked.
    fn app_submits(&mut self, client: usize, op: Op, asked: Asked) -> Option<CommandNumber> {
        let own = &mut self.clients[client];
        let (Some(session), Some(machine)) = (own.session, &mut own.machine) else { return None };
        let command = machine.submit(op).ok()?;
        let (at, number) = (TrueTime(self.now), command.get());
        self.notes.record.push(at, Noted::Asked { session, command: number, what: asked });
        self.totals.operations += 1;
        self.trace.say(self.now, || format!("c{client} asks #{number} {asked:?}"));
        Some(command)
    }

    fn app_acquires(&mut self, client: usize) {
        let random = &mut self.clients[client].random;
        let count = if random.one_in(8) { random.between(2, 3) } else { 1 };
        let mut requests: Vec<Request> = Vec::new();
        for _ in 0..count {
            let (resource, kind) = random.pick(&self.names.names).clone();
            let mode = kind.mode(random);
            if requests.iter().all(|known| known.resource != resource) {
                requests.push(Request { resource, mode });
            }
        }
        let wait = match random.below(4) {
            0 => None,
            1 => Some(Millis::new(random.between(1, 2_000))),
            _ => Some(Millis::new(random.between(1_000, 60_000))),
        };
        let first = self.notes.record.resource(&requests[0].resource);
        let length = wait.map(|wait| u32::try_from(wait.get()).expect("a minute at most"));
        let asked = match requests.as_slice() {
            [Request { mode: Mode::Exclusive, .. }] => Asked::Exclusive { resource: first, wait: length },
            several => {
                let count = u16::try_from(several.len()).expect("a few");
                Asked::Others { resource: first, count, wait: length }
            }
        };
        let value = draw_value(&mut self.clients[client].random);
        let acquire = Acquire { requests, value, wait };
        if let Some(command) = self.app_submits(client, Op::Acquire(acquire), asked) {
            self.clients[client].app.waits.push(command);
        }
    }

    /// Chooses a lease to give back. Its writes arrive first: a holder drains before it releases.
    fn app_releases(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let live: Vec<usize> =
            (0..own.app.held.len()).filter(|place| !own.app.held[*place].is_ending()).collect();
        let place = *own.random.pick(&live);
        own.app.held[place].leaving = true;
    }

    /// Gives a lease back; belief ends here.
    fn release(&mut self, client: usize, place: usize) {
        let drained = self.clients[client].random.one_in(2);
        let held = self.clients[client].app.held[place].clone();
        let what = Asked::Release { resource: held.place.resource, token: held.token };
        let op = Op::Release { resource: held.resource.clone(), token: held.token, drained };
        if let (Some(session), Some(_)) = (self.clients[client].session, self.app_submits(client, op, what)) {
            let at = TrueTime(self.now);
            self.notes.record.push(at, Noted::LetGo { session, token: held.token });
            self.notes.record.belief(at, session, held.place, held.token, None);
            self.clients[client].app.held.swap_remove(place);
            self.remember(client, held.resource, held.token);
        }
    }

    /// Gives back what is to be given back, and acknowledges what others ended, once nothing acts under it any more.
    fn release_what_is_idle(&mut self, client: usize) {
        let ready = |held: &Held, now: u64| held.is_ending() && held.busy_until < now;
        while let Some(place) = self.clients[client].app.held.iter().position(|held| ready(held, self.now)) {
            let before = self.clients[client].app.held.len();
            self.release(client, place);
            if self.clients[client].app.held.len() == before {
                break;
            }
        }
    }

    /// Closes the session once nothing acts under any of its leases.
    fn drain(&mut self, client: usize) {
        let idle = self.clients[client].app.held.iter().map(|held| held.busy_until).max().unwrap_or(0);
        if idle < self.now {
            self.app_closes(client);
        } else {
            self.clients[client].app.act_at = idle.saturating_add(1).max(self.now + MILLI);
        }
    }

    fn app_offers(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let Some(held) = own.app.held.iter().find(|held| !held.is_ending()).cloned() else { return };
        let to = if own.random.one_in(2) {
            Successor::FirstWaiter
        } else {
            let label = format!("c{}", own.random.below(self.plan.clients as u64));
            Successor::Labelled(Label::new(&label).expect("a good label"))
        };
        let length = Millis::new(own.random.between(100, 5_000));
        let offer = Offer { resource: held.resource, token: held.token, to, length };
        self.app_submits(client, Op::Offer(offer), Asked::Other);
    }

    fn accept_offers(&mut self, client: usize) {
        for (resource, token) in std::mem::take(&mut self.clients[client].app.offers) {
            let accept = Op::Accept { resource, token, value: Value::default() };
            if let Some(command) = self.app_submits(client, accept, Asked::Other) {
                self.clients[client].app.waits.push(command);
            }
        }
    }

    /// Writes with a token that is held, or was: then it must be refused.
    fn app_writes_register(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let held = own.random.pick(&own.app.held).clone();
        let value = Value::new(own.random.bits().to_le_bytes().to_vec()).expect("a short value");
        let (resource, token) = (held.resource, held.token);
        let op = if own.random.one_in(3) {
            let within = Millis::new(own.random.between(0, 20_000));
            Op::SetDraining { resource, token, in_flight: u32::from(own.random.one_in(2)), within }
        } else if own.random.one_in(2) {
            Op::SetValue { resource, token, value }
        } else {
            register(resource, token, value, own.random.one_in(2))
        };
        self.app_submits(client, op, Asked::Other);
    }

    /// Remembers a lease that is over.
    pub(super) fn remember(&mut self, client: usize, resource: ResourceName, token: Token) {
        let past = &mut self.clients[client].app.past;
        if past.len() == MAX_PAST {
            past.remove(0);
        }
        past.push((resource, token));
    }

    /// What others hold: an application with a mistake may take it for its own.
    fn leases_of_others(&self, client: usize) -> Vec<(ResourceName, Token)> {
        let others = self.clients.iter().enumerate().filter(|(other, _)| *other != client);
        others
            .flat_map(|(_, other)| other.app.held.iter().map(|held| (held.resource.clone(), held.token)))
            .collect()
    }

    /// Acts with a token of a lease that is over, or of another's, as an application with a mistake does. It must be refused.
    fn app_shows_old_token(&mut self, client: usize) {
        let of_another = self.leases_of_others(client);
        let own = &mut self.clients[client];
        if !of_another.is_empty() && own.random.one_in(3) {
            let (resource, token) = own.random.pick(&of_another).clone();
            let op = if own.random.one_in(2) {
                Op::Release { resource, token, drained: true }
            } else {
                Op::SetValue { resource, token, value: Value::default() }
            };
            self.app_submits(client, op, Asked::Other);
            return;
        }
        let (resource, token) = own.random.pick(&own.app.past).clone();
        let value = Value::new(own.random.bits().to_le_bytes().to_vec()).expect("a short value");
        let op = match own.random.below(4) {
            0 => Op::Release { resource, token, drained: false },
            3 => Op::SetDraining { resource, token, in_flight: 1, within: Millis::new(1_000) },
            1 => Op::SetValue { resource, token, value },
            _ => register(resource, token, value, false),
        };
        self.app_submits(client, op, Asked::Other);
    }

    /// Acts with a token that was never granted here. It must be refused, and nobody gets that resource until an operator has looked.
    fn app_shows_strange_token(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let held = own.app.held.iter().map(|held| held.token);
        let newest = held.chain(own.app.past.iter().map(|(_, token)| *token)).max();
        // Far above all that this run can grant.
        let above = own.random.between(1 << 20, 1 << 30);
        let token = Token::from_u64(newest.map_or(0, Token::get) + above);
        let (resource, _) = own.random.pick(&self.names.names).clone();
        let op = if own.random.one_in(2) {
            Op::Release { resource, token, drained: false }
        } else {
            register(resource, token, Value::default(), false)
        };
        self.app_submits(client, op, Asked::Other);
    }

    fn app_cancels(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let acquire = *own.random.pick(&own.app.waits);
        self.app_submits(client, Op::Cancel { acquire }, Asked::Cancel { acquire: acquire.get() });
    }

    fn app_closes(&mut self, client: usize) {
        if self.app_submits(client, Op::Close, Asked::Close).is_none() {
            return;
        }
        let at = TrueTime(self.now);
        let own = &mut self.clients[client];
        own.closing_since = Some(self.now);
        let Some(session) = own.session else { return };
        for held in &own.app.held {
            self.notes.record.push(at, Noted::LetGo { session, token: held.token });
            self.notes.record.belief(at, session, held.place, held.token, None);
        }
    }

    fn app_reads(&mut self, client: usize) {
        let own = &mut self.clients[client];
        if own.app.unsent_reads.len() + own.app.sent_reads.len() >= MAX_READS {
            return;
        }
        let (resource, _) = own.random.pick(&self.names.names).clone();
        let read = self.notes.next_read();
        let id = self.notes.record.resource(&resource);
        let who = ClientId(client_number(client));
        self.notes.record.push(TrueTime(self.now), Noted::ReadAsked { client: who, read, resource: id });
        self.clients[client].app.unsent_reads.push((read, Query::Lease(resource)));
    }

    pub(super) fn read_answered(&mut self, client: usize, read: u64, log: LogId, response: Response) {
        let app = &mut self.clients[client].app;
        let Some(place) = app.sent_reads.iter().position(|(known, _)| *known == read) else { return };
        let (_, query) = app.sent_reads.swap_remove(place);
        app.read_since = app.read_since.filter(|_| !app.sent_reads.is_empty());
        match response {
            Response::Read { revision, answer: ReadAnswer::Lease(view) } => {
                let holder = view.and_then(|view| view.holders.first().map(|holder| holder.token));
                let told = Noted::ReadTold { read, log, revision: revision.get(), holder };
                self.notes.record.push(TrueTime(self.now), told);
                self.totals.reads += 1;
            }
            // Asked again, with a pause: the service was not able to.
            _ => app.unsent_reads.push((read, query)),
        }
    }
}

fn register(resource: ResourceName, token: Token, value: Value, with_lease: bool) -> Op {
    let key = RegisterKey::new("k").expect("a good key");
    Op::WriteRegister { resource, token, key, value: Some(value), with_lease }
}

/// What is shown with a lease: nothing, or more than a block of the log.
fn draw_value(random: &mut Random) -> Value {
    let length = if random.one_in(8) { random.between(200, 2_000) } else { 0 };
    Value::new(vec![b'v'; usize::try_from(length).expect("short")]).expect("a short value")
}

fn draw_policies(random: &mut Random, ttl: u64) -> Policies {
    if random.one_in(2) {
        return Policies::default();
    }
    let grace = random.below(ttl);
    let hard = if random.one_in(2) { grace } else { grace + random.below(2 * ttl) };
    let delay = if random.one_in(2) { 0 } else { random.below(ttl) };
    Policies { grace: Millis::new(grace), hard: Millis::new(hard), delay: Millis::new(delay) }
}
