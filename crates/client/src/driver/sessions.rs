//! Sessions: their machines, what the application waits for, and what is published to its leases.

mod asked;
mod giving_up;
mod offers;
mod outcomes;
mod renewing;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::client::{ClientSession, Frame, Incoming, Input, Output, Profile, SessionEnd};
use leasehold_core::holder::{Reading, Strictness};
use leasehold_core::numbers::Numbers;
use leasehold_core::protocol::{Request, RequestId, Response, ToClient};
use leasehold_core::{
    Acquire, Answer, CommandNumber, Op, RenewalNumber, Reply as TableReply, ResourceName, Sequence,
    SessionId, Token,
};

pub(super) use asked::Asked;
use asked::command_response;

use super::chance::nonce;
use super::counted::CountedMap;
use super::feed::Feed;
use super::meter::{Sent, Stood};
use super::{Driver, Key, LONGEST_NAP, Reply};
use crate::error::Error;
use crate::lease::{Lease, ReleaseRequest, Shared, Terms};
use crate::session::{Session, SessionEvent};
use offers::Wish;
use outcomes::Handles;

/// Requests of sessions have ids with this bit, so that they are not taken for others.
const SESSION_BIT: u64 = 1 << 63;

/// Clocks that come apart slowly are noticed over this long, those that jump at once.
const COMPARED_OVER: Duration = Duration::from_secs(10);

/// Sessions that are polled with one reading of the clocks.
const ONE_READING: usize = 64;

/// One session of a driver.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) machine: ClientSession,
    /// Its id, once it has one.
    session: Option<SessionId>,
    terms: Arc<Terms>,
    opening: Option<Reply<Session>>,
    events: Feed,
    acquires: CountedMap<CommandNumber, Wanted>,
    answers: CountedMap<CommandNumber, Option<Reply<Answer>>>,
    tickets: CountedMap<u64, CommandNumber>,
    /// Who waits for a renewal.
    renewals: Vec<(RenewalNumber, Reply<()>)>,
    leases: CountedMap<Token, Arc<Shared>>,
    /// Handovers that wait for their successor to be ready.
    wishes: CountedMap<Token, Wish>,
    /// How it stood last, for the figures.
    stood: Option<Stood>,
    numbers: Numbers,
    /// The deadline that the leases were last told.
    told: Option<Reading>,
    /// The last command ever sent: what came after it cannot have had an effect.
    sent: CommandNumber,
    is_closing: bool,
    ended: Option<SessionEnd>,
}

#[derive(Debug)]
struct Wanted {
    ticket: u64,
    /// The resource, if it is one alone: an offer of it is taken up.
    alone: Option<ResourceName>,
    /// Whether an offer of it was taken up and stands.
    handed_over: bool,
    reply: Reply<Vec<Lease>>,
}

impl Driver {
    pub(super) fn open(&mut self, profile: Profile, strictness: Strictness, reply: Reply<Session>) {
        let key = Key(self.next_key);
        self.next_key += 1;
        let numbers = profile.numbers;
        let terms = Terms {
            label: profile.label.clone(),
            strictness,
            clock_bound: numbers.clock_bound().duration(),
            usable: numbers.usable().duration(),
        };
        self.meter.opened(&numbers);
        let mut machine = ClientSession::new(profile, nonce());
        if self.connection.is_some() {
            machine.handle(Input::Connected, self.time.now());
        }
        let slot = Slot {
            machine,
            session: None,
            terms: Arc::new(terms),
            opening: Some(reply),
            events: Feed::default(),
            acquires: CountedMap::default(),
            answers: CountedMap::default(),
            tickets: CountedMap::default(),
            renewals: Vec::new(),
            leases: CountedMap::default(),
            wishes: CountedMap::default(),
            stood: None,
            numbers,
            told: None,
            sent: CommandNumber::NONE,
            is_closing: false,
            ended: None,
        };
        self.slots.insert(key, slot);
        self.due.touch(key);
    }

    /// A session is over, or given up.
    fn remove(&mut self, key: Key) {
        self.due.forget(key);
        let Some(slot) = self.slots.remove(&key) else { return };
        self.meter.closed(&slot.numbers, slot.stood, self.time.now());
        if let Some(session) = slot.session {
            self.sessions.remove(&session);
        }
    }

    pub(super) fn acquire(&mut self, key: Key, ticket: u64, acquire: Acquire, reply: Reply<Vec<Lease>>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            return;
        };
        self.due.touch(key);
        let alone = match acquire.requests.as_slice() {
            [request] => Some(request.resource.clone()),
            _ => None,
        };
        match slot.machine.submit(Op::Acquire(acquire)) {
            Ok(number) => {
                slot.tickets.insert(ticket, number);
                slot.acquires.insert(number, Wanted { ticket, alone, handed_over: false, reply });
            }
            Err(error) => {
                let _ = reply.send(Err(slot.ended.clone().map_or(Error::Submit(error), Error::SessionEnded)));
            }
        }
    }

    pub(super) fn give_up(&mut self, key: Key, ticket: u64) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        self.due.touch(key);
        if let Some(number) = slot.tickets.remove(&ticket) {
            slot.acquires.remove(&number);
            // If the session is over, there is nothing left to give up.
            if let Ok(cancel) = slot.machine.submit(Op::Cancel { acquire: number }) {
                slot.answers.insert(cancel, None);
            }
        }
    }

    pub(super) fn submit(&mut self, key: Key, op: Op, reply: Option<Reply<Answer>>, now: Reading) {
        let Some(slot) = self.slots.get_mut(&key) else {
            if let Some(reply) = reply {
                let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            }
            return;
        };
        self.due.touch(key);
        if matches!(op, Op::Close) && !slot.is_closing {
            slot.is_closing = true;
            self.closing_sessions.push_back((now, key));
        }
        match slot.machine.submit(op) {
            Ok(number) => {
                slot.answers.insert(number, reply);
            }
            Err(error) => {
                if let Some(reply) = reply {
                    let _ =
                        reply.send(Err(slot.ended.clone().map_or(Error::Submit(error), Error::SessionEnded)));
                }
            }
        }
    }

    pub(super) fn tell_sessions_connected(&mut self) {
        let now = self.time.now();
        self.forget_asked();
        for (key, slot) in &mut self.slots {
            slot.machine.handle(Input::Connected, now);
            self.due.touch(*key);
        }
    }

    pub(super) fn tell_sessions_disconnected(&mut self) {
        let now = self.time.now();
        self.forget_asked();
        for (key, slot) in &mut self.slots {
            slot.machine.handle(Input::Disconnected, now);
            self.due.touch(*key);
        }
    }

    /// What was asked on a connection that is gone will not be answered.
    fn forget_asked(&mut self) {
        let renewals = self.asked.values().filter(|(_, asked)| matches!(asked, Asked::Renew(..)));
        self.meter.lost(renewals.count());
        self.asked.clear();
    }

    /// Polls every machine that has something to do, until it has nothing more to say.
    pub(super) fn poll_sessions(&mut self, mut now: Reading) {
        self.watch_clocks(now);
        for (polled, key) in self.due.take(now).into_iter().enumerate() {
            // A reading that is a little old errs to the safe side, because sendings count from it; but it is not to be very old.
            if polled % ONE_READING == ONE_READING - 1 {
                now = self.time.now();
            }
            self.poll_session(key, now);
        }
    }

    /// If the clocks have come apart every machine must see it: what they were to be woken for is not what has happened.
    fn watch_clocks(&mut self, now: Reading) {
        let passed = now.since(self.compared);
        if passed.disagrees() {
            self.slots.keys().for_each(|key| self.due.touch(*key));
        }
        if passed.disagrees() || passed.greater() >= COMPARED_OVER {
            self.compared = now;
        }
    }

    fn poll_session(&mut self, key: Key, now: Reading) {
        let Some(slot) = self.slots.get_mut(&key) else { return self.due.forget(key) };
        if slot.opening.as_ref().is_some_and(Reply::is_closed) {
            // Nobody waits for this session any more.
            return self.remove(key);
        }
        // One connection carries all sessions of a driver: what one of them hears says to all that it is not silent, and how slow it is.
        if let Some(heard) = self.heard {
            slot.machine.handle(Input::HeardOnConnection(heard), now);
        }
        slot.machine.round_trips_take(self.round_trips);
        let outputs = slot.machine.poll(now, self.jitter.draw());
        // Known before anything else is told: whoever waits learns why the session is over, not only that it is.
        slot.ended = outputs.iter().find_map(|output| match output {
            Output::Event(SessionEvent::SessionEnded { why }) => Some(why.clone()),
            _ => None,
        });
        for output in outputs {
            match output {
                Output::Send(frame) => self.send_frame(key, frame, now),
                Output::NeedNonce => {
                    if let Some(slot) = self.slots.get_mut(&key) {
                        slot.machine.handle(Input::Nonce(nonce()), now);
                    }
                }
                Output::Reconnect => {
                    let _ = self.reconnect.send(());
                }
                Output::Event(event) => self.event(key, event, now),
            }
        }
        let Some(slot) = self.slots.get_mut(&key) else { return };
        slot.tell_leases();
        slot.tell_renewed();
        if slot.ended.is_some() {
            return self.remove(key);
        }
        let wake = slot.machine.next_wake(now);
        // Whether anybody still waits for an opening is not told, only seen.
        let wake = slot.opening.as_ref().map(|_| LONGEST_NAP).into_iter().chain(wake).min();
        self.due.set(key, wake.map(|wake| now.plus(wake)));
    }

    fn send_frame(&mut self, key: Key, frame: Frame, now: Reading) {
        let (request, asked) = match frame {
            Frame::Open(open) => {
                let asked = Asked::Open(open.nonce);
                (Request::Open(open), Some(asked))
            }
            Frame::Attach { attach, nonce } => {
                let asked = Asked::Attach(attach.session, attach.attach);
                (Request::Attach { attach, nonce }, Some(asked))
            }
            Frame::Renew { session, number, seen } => {
                let sent = self.meter.sent(now);
                (Request::Renew { session, number, seen }, Some(Asked::Renew(session, sent)))
            }
            Frame::Command(command) => {
                if let (Sequence::Streamed { number, .. }, Some(slot)) =
                    (&command.sequence, self.slots.get_mut(&key))
                {
                    slot.sent = slot.sent.max(*number);
                }
                (Request::Command(command), None)
            }
        };
        let id = match asked {
            Some(asked) => {
                let id = RequestId(SESSION_BIT | self.requests.next_id().0);
                self.asked.insert(id, (key, asked));
                id
            }
            // Commands are answered by items; only their refusals come back, and need no more than the session.
            None => RequestId(SESSION_BIT | COMMAND_BIT | key.0),
        };
        self.outgoing.push((id, request));
    }

    pub(super) fn receive(&mut self, message: ToClient, now: Reading) {
        match message {
            ToClient::Items { session, items } => {
                for item in items {
                    self.tell_session(session, Input::Received(Incoming::Item { session, item }), now);
                }
            }
            ToClient::Response { id, response } => {
                let Some(response) = self.requests.receive(id, response) else { return };
                let heard = if let Some((key, asked)) = self.asked.remove(&id) {
                    if let Asked::Renew(_, sent) = asked {
                        self.measure_renewal(sent, &response, now);
                        self.measure_round_trip(sent, now);
                    }
                    asked.answer(&response).map(|incoming| (key, incoming))
                } else if id.0 & (SESSION_BIT | COMMAND_BIT) == SESSION_BIT | COMMAND_BIT {
                    let key = Key(id.0 & !(SESSION_BIT | COMMAND_BIT));
                    let session = self.slots.get(&key).and_then(|slot| slot.machine.session());
                    session.and_then(|session| command_response(session, &response)).map(|heard| (key, heard))
                } else {
                    None
                };
                let Some((key, incoming)) = heard else { return };
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.machine.handle(Input::Received(incoming), now);
                    self.due.touch(key);
                }
            }
            ToClient::Hint { session, length } => {
                self.tell_session(session, Input::Hint(length.duration()), now);
            }
            // Watches have connections of their own.
            ToClient::Watched { .. } => {}
        }
    }

    fn measure_renewal(&self, sent: Sent, response: &Response, now: Reading) {
        match response {
            Response::Reply(TableReply::Renewed(_)) => self.meter.confirmed(sent, now),
            // It was not taken in, and is sent again.
            Response::Failed(_) => self.meter.lost(1),
            _ => self.meter.answered(sent, now),
        }
    }

    fn tell_session(&mut self, session: SessionId, input: Input, now: Reading) {
        let Some(key) = self.sessions.get(&session) else { return };
        if let Some(slot) = self.slots.get_mut(key) {
            slot.machine.handle(input, now);
            self.due.touch(*key);
        }
    }

    fn event(&mut self, key: Key, event: SessionEvent, now: Reading) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let handles = Handles { key, pid: self.pid, to_driver: &self.to_driver, time: &self.time };
        // Told last: whoever hears it finds everything as it is said.
        let told = slot.events.is_heard().then(|| event.clone());
        match event {
            SessionEvent::Opened { session: id } => {
                slot.session = Some(id);
                self.sessions.insert(id, key);
                if let (Some(reply), Some(session)) = (slot.opening.take(), handles.session(&slot.events)) {
                    let _ = reply.send(Ok(Session::new(session, id)));
                }
            }
            SessionEvent::Resolved { command, outcome } => slot.resolved(command, outcome, &handles),
            SessionEvent::WaitOver { command, how } => slot.wait_over(command, how, &handles),
            SessionEvent::LeaseEnded { token, why, confirmed_until, .. } => {
                slot.wishes.remove(&token);
                if let Some(lease) = slot.leases.remove(&token) {
                    lease.end(why.into(), confirmed_until);
                }
            }
            SessionEvent::ReleaseRequested { resource, token, successor, by } => {
                slot.release_requested(&resource, token, ReleaseRequest { by, successor }, now);
            }
            SessionEvent::OfferAccepted { token, by, .. } => slot.offer_accepted(token, by, now),
            SessionEvent::Standing(standing) => {
                slot.stood = Some(self.meter.stands(slot.stood, &standing, now));
                slot.publish_all();
            }
            SessionEvent::SessionEnded { why } => {
                slot.ended = Some(why.clone());
                slot.fail_renewals(&why);
                if let Some(reply) = slot.opening.take() {
                    let error = match why {
                        SessionEnd::OpenRefused(refusal) => refusal.into(),
                        other => Error::SessionEnded(other),
                    };
                    let _ = reply.send(Err(error));
                }
            }
            SessionEvent::Offered { resource, token, .. } => slot.offered(&resource, token),
            SessionEvent::OfferEnded { resource, .. } => slot.offer_ended(&resource),
        }
        if let Some(event) = told {
            slot.events.send(event);
        }
    }
}

/// Marks the one id that all commands of a session share.
const COMMAND_BIT: u64 = 1 << 62;

impl Slot {
    /// Tells the leases when their common deadline has moved.
    fn tell_leases(&mut self) {
        if self.machine.deadline() != self.told {
            self.publish_all();
        }
    }

    /// Tells every lease what the session believes now.
    fn publish_all(&mut self) {
        self.told = self.machine.deadline();
        for (token, lease) in &self.leases {
            if let Some(handle) = self.machine.lease(*token) {
                lease.publish(handle);
            }
        }
    }
}
