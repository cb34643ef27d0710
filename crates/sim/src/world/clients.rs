//! A client's process: the session machine under what takes the place of its driver.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::client::{ClientSession, Frame, Incoming, Input, Output};
use leasehold_core::holder::{Fraction, Strictness};
use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{Nonce, Refusal, Reply, Sequence, SessionId};

use super::World;
use super::app::App;
use super::dialling::Way;
use crate::check::sometimes::Situation;
use crate::clock::MachineClock;
use crate::random::Random;
use crate::record::{ClientId, Event as Noted, LogId, Place, RequestKey, TrueTime};
use crate::trace::{MILLI, SECOND};

/// More turns of a driver in one millisecond have no reason.
const MOST_TURNS: u32 = 2_000;
/// The longest nap of a driver.
const LONGEST_NAP: u64 = 500 * MILLI;
/// A session whose close nobody answers is let go after so long, and sooner without a connection.
const PATIENCE: u64 = 10 * SECOND;
const CLOSE_WITHOUT_CONNECTION: u64 = SECOND;

/// Something for the driver, in the order in which it arrived.
enum Arrived {
    /// On which connection, and of which life of the state.
    Frame(u64, LogId, Vec<ToClient>),
    Connection(Input),
}

pub(super) struct Client {
    /// Counts processes.
    pub(super) life: u32,
    pub(super) clock: MachineClock,
    pub(super) wake_at: u64,
    /// The millisecond of its last turn, and its turns in it.
    turns: (u64, u32),
    pub(super) paused: bool,
    arrived: Vec<Arrived>,
    pub(super) way: Way,
    pub(super) machine: Option<ClientSession>,
    /// The session as it is recorded, from its opening to its end.
    pub(super) session: Option<SessionId>,
    /// When the present nonce was first sent.
    pub(super) first_sent: Option<(Nonce, u64)>,
    asked: BTreeMap<RequestId, Asked>,
    next_id: u64,
    pub(super) closing_since: Option<u64>,
    pub(super) app: App,
    pub(super) random: Random,
    /// Whether it was served since faults stopped.
    pub(super) served: bool,
}

/// What a request was.
#[derive(Debug, Clone)]
enum Asked {
    Frame(Frame),
    Read(u64),
}

impl Client {
    pub(super) fn hears(&mut self, (connection, log): (u64, LogId), frame: Vec<ToClient>, soon: u64) {
        self.arrived.push(Arrived::Frame(connection, log, frame));
        self.wakes(soon);
    }

    pub(super) fn connection_is(&mut self, input: Input, soon: u64) {
        self.arrived.push(Arrived::Connection(input));
        self.wakes(soon);
    }

    pub(super) fn wakes(&mut self, at: u64) {
        if !self.paused {
            self.wake_at = self.wake_at.min(at);
        }
    }
}

impl World {
    pub(super) fn make_clients(&mut self, random: &mut Random) {
        for number in 0..self.plan.clients {
            let mut own = random.fork(number as u64);
            let clock = self.draw_clock(&mut own, false);
            let host = own.index(self.plan.nodes);
            self.clients.push(Client {
                life: 0,
                clock,
                wake_at: u64::MAX,
                turns: (0, 0),
                paused: false,
                arrived: Vec::new(),
                way: Way::new(host),
                machine: None,
                session: None,
                first_sent: None,
                asked: BTreeMap::new(),
                next_id: 0,
                closing_since: None,
                app: App::new(own.below(2 * SECOND)),
                random: own,
                served: false,
            });
            let begins = self.clients[number].app.act_at;
            self.clients[number].wake_at = begins;
            self.begin_dialling(number, 1 + begins / 2);
        }
    }

    /// One turn of a client's driver: everything that has arrived, then the application, then the machine.
    pub(super) fn client_turn(&mut self, client: usize) {
        self.trace.note(self.now, 8, client as u64);
        self.totals.client_turns += 1;
        if self.spins(client) {
            return;
        }
        for arrived in std::mem::take(&mut self.clients[client].arrived) {
            match arrived {
                Arrived::Frame(connection, log, messages) => {
                    if self.clients[client].way.connection == Some(connection) {
                        for message in messages {
                            self.client_receives(client, log, message);
                        }
                    }
                }
                Arrived::Connection(input) => {
                    self.clients[client].asked.clear();
                    self.reads_unanswered(client);
                    let now = self.clients[client].clock.read(self.now);
                    if let Some(machine) = &mut self.clients[client].machine {
                        machine.handle(input, now);
                    }
                }
            }
        }
        if self.clients[client].app.act_at <= self.now {
            self.app_acts(client);
        }
        self.poll_machine(client);
        self.note_beliefs(client);
        self.plan_wake(client);
    }

    /// Whether a driver turns and turns without anything to do: it would burn a core and never sleep.
    fn spins(&mut self, client: usize) -> bool {
        let own = &mut self.clients[client];
        let this = self.now / MILLI;
        own.turns = if own.turns.0 == this { (this, own.turns.1 + 1) } else { (this, 1) };
        let spins = own.turns.1 > MOST_TURNS;
        if spins {
            own.wake_at = self.now + SECOND;
            let (act_at, clock) = (own.app.act_at, &own.clock);
            let wake = own.machine.as_ref().and_then(|machine| machine.next_wake(clock.read(self.now)));
            let what = format!("now {}, application {act_at}, machine {wake:?}, {clock:?}", self.now);
            let machine = &self.clients[client].machine;
            self.notes.violated(format!("driver of c{client} spins: {what}, {machine:?}"));
        }
        spins
    }

    fn plan_wake(&mut self, client: usize) {
        let own = &mut self.clients[client];
        if own.paused {
            own.wake_at = u64::MAX;
            return;
        }
        let now = own.clock.read(self.now);
        let nap = own.machine.as_ref().and_then(|machine| machine.next_wake(now));
        let nap = nap.map_or(LONGEST_NAP, |nap| u64::try_from(nap.as_nanos()).unwrap_or(LONGEST_NAP));
        // A timer never ends early.
        let wake = own.clock.after(self.now, nap.min(LONGEST_NAP));
        own.wake_at = wake.min(own.app.act_at.max(self.now + 1));
    }

    fn poll_machine(&mut self, client: usize) {
        let mut frame = Vec::new();
        // A nonce that is asked for is used in the same turn.
        for _ in 0..2 {
            let own = &mut self.clients[client];
            let now = own.clock.read(self.now);
            let jitter = Fraction::from_bits(own.random.word());
            let Some(machine) = &mut own.machine else { break };
            let outputs = machine.poll(now, jitter);
            if outputs.is_empty() {
                break;
            }
            for output in outputs {
                match output {
                    Output::Send(sent) => self.send_frame(client, sent, &mut frame),
                    Output::NeedNonce => {
                        let nonce = self.draw_nonce(client);
                        let now = self.clients[client].clock.read(self.now);
                        if let Some(machine) = &mut self.clients[client].machine {
                            machine.handle(Input::Nonce(nonce), now);
                        }
                    }
                    Output::Reconnect => self.gives_up(client),
                    Output::Event(event) => self.app_hears(client, event),
                }
            }
        }
        self.take_reads(client, &mut frame);
        if let (Some(connection), false) = (self.clients[client].way.connection, frame.is_empty()) {
            self.send_to_node(connection, frame);
        }
        self.abandon_closing(client);
        // A read that is not answered for long: the connection is given up.
        let since = self.clients[client].app.read_since;
        if since.is_some_and(|since| self.now - since >= PATIENCE / 3) {
            self.clients[client].app.read_since = None;
            self.gives_up(client);
        }
    }

    pub(super) fn draw_nonce(&mut self, client: usize) -> Nonce {
        let random = &mut self.clients[client].random;
        let (one, two) = (random.bits().to_le_bytes(), random.bits().to_le_bytes());
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&one);
        nonce[8..].copy_from_slice(&two);
        Nonce(nonce)
    }

    fn send_frame(&mut self, client: usize, sent: Frame, frame: &mut Vec<(RequestId, Request)>) {
        let own = &mut self.clients[client];
        own.next_id += 1;
        let id = RequestId(own.next_id);
        let now = TrueTime(self.now);
        let request = match sent.clone() {
            Frame::Open(open) => {
                if own.first_sent.is_none_or(|(nonce, _)| nonce != open.nonce) {
                    own.first_sent = Some((open.nonce, self.now));
                }
                Request::Open(open)
            }
            Frame::Attach { attach, nonce } => Request::Attach { attach, nonce },
            Frame::Renew { session, number, seen } => {
                self.notes.record.push(now, Noted::RenewalSent { session, number: number.get() });
                self.totals.renewals_sent += 1;
                Request::Renew { session, number, seen }
            }
            Frame::Command(command) => Request::Command(command),
        };
        if own.way.connection.is_some() {
            self.notes.record.push(now, Noted::RequestSent { key: key_of(&sent) });
        }
        own.asked.insert(id, Asked::Frame(sent));
        frame.push((id, request));
    }

    /// Reads that the application wants go out with the rest.
    fn take_reads(&mut self, client: usize, frame: &mut Vec<(RequestId, Request)>) {
        let own = &mut self.clients[client];
        if own.way.connection.is_none() {
            return;
        }
        for (read, query) in std::mem::take(&mut own.app.unsent_reads) {
            own.next_id += 1;
            let id = RequestId(own.next_id);
            own.asked.insert(id, Asked::Read(read));
            own.app.sent_reads.push((read, query.clone()));
            own.app.read_since.get_or_insert(self.now);
            frame.push((id, Request::Read(query)));
        }
    }

    /// Reads are asked again on the next connection.
    fn reads_unanswered(&mut self, client: usize) {
        let app = &mut self.clients[client].app;
        app.read_since = None;
        let sent = std::mem::take(&mut app.sent_reads);
        app.unsent_reads.splice(0..0, sent);
    }

    fn client_receives(&mut self, client: usize, log: LogId, message: ToClient) {
        let at = TrueTime(self.now);
        let own = &mut self.clients[client];
        let now = own.clock.read(self.now);
        match message {
            ToClient::Items { session, items } => {
                for item in items {
                    self.notes.record.received(at, session, item.clone());
                    if let Some(machine) =
                        own.machine.as_mut().filter(|known| known.session() == Some(session))
                    {
                        machine.handle(Input::Received(Incoming::Item { session, item }), now);
                    }
                }
            }
            ToClient::Response { id, response } => {
                let Some(asked) = own.asked.remove(&id) else { return };
                match asked {
                    Asked::Read(read) => self.read_answered(client, read, log, response),
                    Asked::Frame(frame) => self.frame_answered(client, &frame, response),
                }
            }
            ToClient::Hint { session, length } => {
                self.notes.record.reached.reach(Situation::RenewalSpread);
                if let Some(machine) = own.machine.as_mut().filter(|known| known.session() == Some(session)) {
                    machine.handle(Input::Hint(length.duration()), now);
                }
            }
            ToClient::Watched { .. } => {}
        }
    }

    fn frame_answered(&mut self, client: usize, frame: &Frame, response: Response) {
        let at = TrueTime(self.now);
        let key = key_of(frame);
        let reply = match response {
            Response::Reply(reply) => {
                self.notes.record.replied(at, key, reply.clone());
                reply
            }
            Response::Failed(failure) => {
                let definite = !matches!(failure, Failure::OutcomeUnknown);
                self.notes.record.push(at, Noted::RequestFailed { key, definite });
                match (frame, failure) {
                    (Frame::Attach { .. }, Failure::NotYourSession { session }) => {
                        Reply::Refused(Refusal::SessionEnded { session })
                    }
                    _ => return,
                }
            }
            Response::Read { .. } | Response::Cluster(_) => return,
        };
        // A command that was taken in is answered by an item.
        if let (Frame::Command(_), false) = (frame, matches!(reply, Reply::Closed | Reply::Refused(_))) {
            return;
        }
        let own = &mut self.clients[client];
        let now = own.clock.read(self.now);
        if let (Some(machine), Some(incoming)) = (&mut own.machine, frame.answered_with(reply)) {
            machine.handle(Input::Received(incoming), now);
        }
    }

    /// Nothing was heard for long: another connection is made.
    fn gives_up(&mut self, client: usize) {
        if let Some(connection) = self.clients[client].way.connection {
            self.client_closes(connection);
            self.connection_lost(client, connection);
        }
    }

    /// Lets go of a session whose close nobody answers: its ttl ends it.
    fn abandon_closing(&mut self, client: usize) {
        let own = &mut self.clients[client];
        let limit = if own.way.connection.is_some() { PATIENCE } else { CLOSE_WITHOUT_CONNECTION };
        if own.closing_since.is_some_and(|since| self.now - since >= limit) {
            self.session_over(client);
        }
    }

    /// What the machine would say about each lease from now on.
    pub(super) fn note_beliefs(&mut self, client: usize) {
        self.note_plain_beliefs(client);
        let own = &self.clients[client];
        let (Some(session), at) = (own.session, TrueTime(self.now)) else { return };
        for held in &own.app.held {
            let handle = own.machine.as_ref().and_then(|machine| machine.lease(held.token));
            let believes = |when: u64| {
                let reading = own.clock.read(when);
                let guard = |lease: &leasehold_core::client::LeaseHandle| {
                    lease.guard(Duration::ZERO, Strictness::UntilDeadline, reading).is_ok()
                };
                handle.as_ref().is_some_and(guard)
            };
            let until = if believes(self.now) {
                let deadline = own.clock.when(self.now, handle.as_ref().expect("it is believed").until());
                Some(TrueTime(last_moment(self.now, deadline, believes)))
            } else {
                None
            };
            self.notes.record.belief(at, session, held.place, held.token, until);
        }
        // What was given back, and the machine believes in all the same.
        let own = &self.clients[client];
        let Some(machine) = &own.machine else { return };
        for (resource, token) in &own.app.past {
            let Some(handle) = machine.lease(*token) else { continue };
            let reading = own.clock.read(self.now);
            if handle.guard(Duration::ZERO, Strictness::UntilDeadline, reading).is_ok() {
                let place = Place { resource: self.notes.record.resource(resource), slot: None };
                let until = TrueTime(own.clock.when(self.now, handle.until()));
                self.notes.record.belief(at, session, place, *token, Some(until));
            }
        }
    }

    /// The process of a client dies, and another one begins later. Nobody is told.
    pub(super) fn crash_client(&mut self, client: usize) {
        if self.clients[client].clock.stands_still() {
            return;
        }
        self.trace.say(self.now, || format!("c{client} dies"));
        self.totals.client_crashes += 1;
        self.notes.record.push(TrueTime(self.now), Noted::Died { client: ClientId(client_number(client)) });
        let connection = self.clients[client].way.connection;
        let own = &mut self.clients[client];
        own.life += 1;
        own.machine = None;
        own.arrived.clear();
        own.asked.clear();
        own.app.unsent_reads.clear();
        own.app.sent_reads.clear();
        own.app.read_since = None;
        own.way.connection = None;
        own.paused = false;
        if let Some(connection) = connection {
            self.client_closes(connection);
        }
        self.session_over(client);
        self.plain_dies(client);
        let pause = self.chance.around(SECOND);
        let own = &mut self.clients[client];
        let (host, known) = (own.random.index(self.plan.nodes), own.way.life);
        // What a process knows of the state's life it knows no more.
        own.way.life = known.filter(|_| false);
        own.way.connection = None;
        own.app.act_at = self.now + pause;
        own.wake_at = own.app.act_at;
        own.way.set_host(host);
        self.begin_dialling(client, pause);
    }

    pub(super) fn pause_client(&mut self, client: usize, paused: bool) {
        let own = &mut self.clients[client];
        // On a machine that stands still nothing goes on. No boolean is kept and used twice here: rustc 1.94 to 1.97.0 forget such
        // a one when they optimise, and store `false` (`crates/core/compiler.rs`).
        own.wake_at = if paused || own.clock.stands_still() { u64::MAX } else { self.now + 1 };
        own.paused = own.wake_at == u64::MAX;
    }
}

/// A client's number as records have it.
pub(super) fn client_number(client: usize) -> u32 {
    u32::try_from(client).expect("there are few clients")
}

/// The last moment up to `deadline` at which something that is so now, and once it is not stays so, is so.
fn last_moment(now: u64, deadline: u64, is_so: impl Fn(u64) -> bool) -> u64 {
    // A machine whose clocks stand still believes as long as they do.
    let deadline = deadline.min(now + 3_600 * SECOND);
    if deadline <= now + 1 || is_so(deadline - 1) {
        return deadline;
    }
    let (mut yes, mut no) = (now, deadline - 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if is_so(middle) { yes = middle } else { no = middle }
    }
    no
}

/// Names a request that belongs to a streamed session.
pub(super) fn key_of_request(request: &Request) -> Option<RequestKey> {
    match request {
        Request::Open(open) => Some(RequestKey::Open(open.nonce.0)),
        Request::Attach { attach, .. } => Some(RequestKey::Attach(attach.session, attach.attach.get())),
        Request::Renew { session, number, .. } => Some(RequestKey::Renew(*session, number.get())),
        Request::Command(command) => Some(key_of(&Frame::Command(command.clone()))),
        _ => None,
    }
}

fn key_of(frame: &Frame) -> RequestKey {
    match frame {
        Frame::Open(open) => RequestKey::Open(open.nonce.0),
        Frame::Attach { attach, .. } => RequestKey::Attach(attach.session, attach.attach.get()),
        Frame::Renew { session, number, .. } => RequestKey::Renew(*session, number.get()),
        Frame::Command(command) => match command.sequence {
            Sequence::Streamed { attach, number, .. } => {
                RequestKey::Command(command.session, attach.get(), number.get())
            }
            Sequence::Plain | Sequence::Numbered(_) => RequestKey::Plain(command.session, 0),
        },
    }
}
