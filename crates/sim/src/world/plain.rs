//! Plain sessions, as callers over HTTP have them: no connection belongs to them, every call may go to another node, nothing is pushed,
//! and what a session holds is read from the answers to its renewals. One lives beside each client, in its process and on its clocks.
//!
//! A changing call has a number, and is sent again with it until its outcome is known; an acquire is given up now and then, by a cancel of
//! its number. Only then is the number settled. A call may be held up on its way and arrive long after that.

mod calls;

use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_core::numbers::Numbers;
use leasehold_core::protocol::{Failure, Plain as Ask, Request as Asking, RequestId, Response};
use leasehold_core::{
    Grant, Label, Nonce, Numbered, Op, Open, Policies, Refusal, RenewalNumber, Reply, ResourceName,
    SessionId, SessionKind, Token,
};
use leasehold_node::{CALLS, Input};

use super::app::Held;
use super::clients::client_number;
use super::{Event, Phase, World};
use crate::plan::Fault;
use crate::random::Random;
use crate::record::{ClientId, Event as Noted, Place, RequestKey, TrueTime, hash};
use crate::trace::{MILLI, SECOND};

/// Ids of calls from here on are those of plain sessions: client, then a number.
const FIRST_ID: u64 = 1 << 60;
const CLIENT_SHIFT: u64 = 32;
/// A call that nobody answers is given up.
const PATIENCE: u64 = SECOND;
/// A call that is held up on its way, one in so many, arrives up to so much later.
const HELD_UP: (u64, u64) = (12, 4 * SECOND);
/// An acquire that waits does so for up to so many milliseconds.
const LONGEST_WAIT: u64 = 3_000;
/// How long a caller goes without numbers that heard that they are not in use yet.
const UNNUMBERED: u64 = 2 * SECOND;
/// How often a caller looks at what it has.
const LOOK: u64 = 50 * MILLI;

/// What was asked.
#[derive(Debug, Clone, Copy)]
enum What {
    Open,
    Renew,
    Other(u64),
    Close,
}

/// A changing call whose outcome is not known yet.
#[derive(Debug, Clone)]
struct Call {
    numbered: Numbered,
    op: Op,
    /// It is an acquire that is given up, by a cancel with this number.
    cancel: Option<Numbered>,
    /// Not asked again before.
    rests_until: u64,
}

#[derive(Debug, Clone)]
struct Asked {
    id: u64,
    what: What,
    sent: u64,
    reading: Reading,
}

/// A caller with at most one session.
pub(super) struct Plain {
    random: Random,
    life: u32,
    next_id: u64,
    nonce: Option<(Nonce, u64, Reading)>,
    session: Option<SessionId>,
    numbers: Option<Numbers>,
    /// When the renewals that counted were sent, the latest last.
    sent: Vec<(RenewalNumber, Reading)>,
    renewed: u64,
    /// With the sending that each counts from.
    held: Vec<(Held, Option<Reading>)>,
    /// Given back lately, answered or not, or not listed any more.
    released: Vec<Token>,
    /// The number of the last call.
    number: u64,
    call: Option<Call>,
    /// Until then calls go without numbers: a member does not know them yet.
    unnumbered_until: u64,
    /// Given back, and still listed: nobody heard of it, so it is said again.
    again: Vec<(ResourceName, Token)>,
    /// A close was sent: nothing else is, until it is answered.
    closing: bool,
    asked: Option<Asked>,
}

/// So many of those are remembered.
const MAX_RELEASED: usize = 16;

impl Plain {
    fn let_go(&self, token: Token) -> bool {
        self.released.contains(&token)
    }

    fn note_let_go(&mut self, token: Token) {
        if self.released.len() >= MAX_RELEASED {
            self.released.remove(0);
        }
        self.released.push(token);
    }

    /// When the renewal was sent that a grant counts from, if its answer has come.
    fn sent(&self, renewal: RenewalNumber) -> Option<Reading> {
        self.sent.iter().find(|(number, _)| *number == renewal).map(|(_, reading)| *reading)
    }

    fn note_sent(&mut self, renewal: RenewalNumber, reading: Reading) {
        if self.sent.len() >= MAX_RELEASED {
            self.sent.remove(0);
        }
        self.sent.push((renewal, reading));
    }

    pub(super) const fn new(random: Random) -> Self {
        Self {
            random,
            life: 0,
            next_id: 0,
            nonce: None,
            session: None,
            numbers: None,
            sent: Vec::new(),
            renewed: 0,
            held: Vec::new(),
            released: Vec::new(),
            number: 0,
            call: None,
            unnumbered_until: 0,
            again: Vec::new(),
            closing: false,
            asked: None,
        }
    }
}

/// Whether a call is one of a plain session.
pub(super) const fn is_plain(id: RequestId) -> bool {
    id.0 >= FIRST_ID
}

impl World {
    pub(super) fn make_plain(&mut self, random: &mut Random) {
        for client in 0..self.clients.len() {
            self.plain.push(Plain::new(random.fork(client as u64)));
            if self.plan.faults.has(Fault::Plain) {
                let begins = random.below(3 * SECOND);
                self.queue.push(begins, Event::PlainActs { client, life: 0 });
            }
        }
    }

    pub(super) fn plain_acts(&mut self, client: usize, life: u32) {
        if self.plain[client].life != life {
            return;
        }
        let pause = self.plain[client].random.around(LOOK);
        self.queue.push(self.now + pause, Event::PlainActs { client, life });
        if self.clients[client].paused {
            return;
        }
        let own = &mut self.plain[client];
        let patience = own.numbers.map_or(PATIENCE, |numbers| numbers.request_timeout().get() * MILLI);
        if own.asked.as_ref().is_some_and(|asked| self.now - asked.sent < patience) {
            return;
        }
        // Whatever was asked before may or may not have happened.
        own.asked = None;
        let Some(session) = own.session else { return self.plain_opens(client) };
        let every = own.numbers.map_or(SECOND, |numbers| numbers.renew_every().get() * MILLI);
        if self.now - own.renewed >= every {
            own.renewed = self.now;
            return self.plain_asks(client, What::Renew, None);
        }
        if own.call.is_some() {
            return self.plain_goes_on(client, session);
        }
        if own.closing {
            return self.plain_asks(client, What::Close, Some((Op::Close, None)));
        }
        if let Some((resource, token)) = own.again.pop() {
            return self.plain_command(client, Op::Release { resource, token, drained: true });
        }
        self.plain_writes(client, session);
        let own = &mut self.plain[client];
        let acts = own.random.below(100);
        let idle = own.held.iter().position(|(held, _)| held.busy_until < self.now);
        match (acts, idle) {
            (0..8, _) if own.held.len() < 3 => self.plain_acquires(client),
            (8..14, Some(place)) => self.plain_releases(client, session, place),
            (14, _) if own.held.iter().all(|(held, _)| held.busy_until < self.now) => {
                for (held, _) in std::mem::take(&mut self.plain[client].held) {
                    self.plain_lets_go(session, &held);
                    self.plain[client].note_let_go(held.token);
                }
                self.plain[client].closing = true;
                self.plain_asks(client, What::Close, Some((Op::Close, None)));
            }
            _ => {}
        }
    }

    fn plain_opens(&mut self, client: usize) {
        let reading = self.clients[client].clock.read(self.now);
        let ttl = self.plan.ttl.1;
        let numbers = self.numbers(ttl);
        let own = &mut self.plain[client];
        // A nonce that is old by now would give a session that is over.
        if own.nonce.is_none_or(|(_, sent, _)| self.now - sent > ttl * MILLI / 2) {
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&own.random.bits().to_le_bytes());
            nonce[8..].copy_from_slice(&own.random.bits().to_le_bytes());
            own.nonce = Some((Nonce(nonce), self.now, reading));
        }
        own.numbers = Some(numbers);
        self.plain_asks(client, What::Open, None);
    }

    /// One call, to any node.
    fn plain_asks(&mut self, client: usize, what: What, op: Option<(Op, Option<Numbered>)>) {
        let (reading, running) = (self.clients[client].clock.read(self.now), self.running());
        let own = &mut self.plain[client];
        own.next_id += 1;
        let id = FIRST_ID | (client as u64) << CLIENT_SHIFT | own.next_id;
        own.asked = Some(Asked { id, what, sent: self.now, reading });
        // An address that nobody listens at is known at once, and the next one is tried.
        let Some(at) = (!running.is_empty()).then(|| *own.random.pick(&running)) else { return };
        let (Some((nonce, ..)), Some(numbers)) = (own.nonce, own.numbers) else { return };
        let request = match (what, own.session) {
            (What::Open, _) => {
                let label = Label::new(&format!("p{client}")).expect("a good label");
                let (ttl, policies, kind) = (numbers.ttl(), Policies::default(), SessionKind::Plain);
                Asking::Open(Open { nonce, label, ttl, policies, kind })
            }
            (What::Renew, Some(session)) => Asking::Plain { session, nonce, plain: Ask::Renew },
            (_, Some(session)) => {
                let Some((op, numbered)) = op else { return };
                let hold = numbered.is_some() && own.random.below(2) == 0;
                Asking::Plain { session, nonce, plain: Ask::Command { op, hold, numbered } }
            }
            (_, None) => return,
        };
        if let Some(key) = self.plain_key(client, what) {
            self.notes.record.push(TrueTime(self.now), Noted::RequestSent { key });
        }
        let lost = self.phase == Phase::Faults && self.net.millionths(self.plan.client_loss);
        if lost || self.faults.client_to_node(client, at) {
            return;
        }
        let mut takes = self.client_delay();
        if self.phase == Phase::Faults && self.net.below(HELD_UP.0) == 0 {
            takes += self.net.below(HELD_UP.1);
        }
        self.queue.push(self.now + takes, Event::PlainArrives { at, id, request: Box::new(request) });
    }

    fn plain_key(&self, client: usize, what: What) -> Option<RequestKey> {
        let own = &self.plain[client];
        Some(match (what, own.session) {
            (What::Open, _) => RequestKey::Open(own.nonce?.0.0),
            (What::Renew, session) => RequestKey::PlainRenew(session?),
            (What::Other(words), session) => RequestKey::Plain(session?, words),
            (What::Close, session) => {
                RequestKey::Plain(session?, hash(format!("{:?}", Op::Close).as_bytes()))
            }
        })
    }

    pub(super) fn plain_arrives(&mut self, at: usize, id: u64, request: Asking) {
        let soon = self.soon();
        self.processes[at].push(Input::Request { connection: CALLS, id: RequestId(id), request }, soon);
    }

    /// A node answers a call; the answer may be lost.
    pub(super) fn plain_leaves(&mut self, at: usize, id: RequestId, response: Response) {
        let client = usize::try_from((id.0 - FIRST_ID) >> CLIENT_SHIFT).expect("there are few clients");
        let lost = self.phase == Phase::Faults && self.net.millionths(self.plan.client_loss);
        if lost || self.faults.node_to_client(at, client) {
            return;
        }
        let takes = self.client_delay();
        let response = Box::new(response);
        self.queue.push(self.now + takes, Event::PlainAnswered { client, id: id.0, response });
    }

    pub(super) fn plain_answered(&mut self, client: usize, id: u64, response: Box<Response>) {
        if self.clients[client].paused {
            return self.queue.push(self.now + LOOK, Event::PlainAnswered { client, id, response });
        }
        let Some(asked) = self.plain[client].asked.take_if(|asked| asked.id == id) else { return };
        let (at, key) = (TrueTime(self.now), self.plain_key(client, asked.what));
        let reply = match (*response, key) {
            (Response::Reply(reply), Some(key)) => {
                self.notes.record.replied(at, key, reply.clone());
                reply
            }
            (Response::Failed(failure), Some(key)) => {
                let definite = !matches!(failure, Failure::OutcomeUnknown);
                self.notes.record.push(at, Noted::RequestFailed { key, definite });
                if matches!(failure, Failure::NotYourSession { .. }) {
                    if let Some(session) = self.plain[client].session {
                        self.notes.record.push(at, Noted::SessionRefused { session });
                    }
                    self.plain_over(client);
                }
                return;
            }
            _ => return,
        };
        match (asked.what, reply) {
            (What::Open, Reply::Opened(opened)) => self.plain_opened(client, opened.session),
            (What::Renew, Reply::Renewed(renewed)) => {
                self.plain[client].note_sent(renewed.number, asked.reading);
                if let Some(session) = self.plain[client].session {
                    let (number, sent) = (renewed.number.get(), TrueTime(asked.sent));
                    self.notes.record.push(at, Noted::PlainRenewed { session, number, sent });
                }
                let held = renewed.holdings.unwrap_or_default().leases;
                self.plain_holds(client, held.into_iter().map(|held| held.grant).collect(), asked.reading);
            }
            (
                What::Other(_),
                Reply::Plain { answer, renewal, .. } | Reply::PlainRepeated { answer, renewal, .. },
            ) => {
                self.plain_heard(client, answer, renewal);
            }
            (What::Other(_), Reply::PlainWaitEnded { .. } | Reply::NumberSettled { .. }) => {
                self.plain[client].call = None;
            }
            (What::Other(_), Reply::Refused(Refusal::NotYetInUse)) => {
                self.plain[client].call = None;
                self.plain[client].unnumbered_until = self.now + UNNUMBERED;
            }
            (What::Close, _) | (_, Reply::Refused(Refusal::SessionEnded { .. })) => self.plain_over(client),
            _ => {}
        }
        self.note_plain_beliefs(client);
    }

    fn plain_opened(&mut self, client: usize, session: SessionId) {
        let own = &mut self.plain[client];
        let (Some((_, sent, reading)), Some(numbers)) = (own.nonce, own.numbers) else { return };
        own.session = Some(session);
        own.sent = vec![(RenewalNumber::NONE, reading)];
        own.renewed = sent;
        let (ttl_ms, usable_ms) = (numbers.ttl().get(), numbers.usable().get());
        let (client, first_sent) = (ClientId(client_number(client)), TrueTime(sent));
        let opened = Noted::SessionOpened { client, session, ttl_ms, usable_ms, first_sent };
        self.notes.record.push(TrueTime(self.now), opened);
    }

    /// The renewal counts for these and no others. What is not known yet is the answer of a call that was lost.
    fn plain_holds(&mut self, client: usize, grants: Vec<Grant>, sent: Reading) {
        let Some(session) = self.plain[client].session else { return };
        let is_held = |token: Token| grants.iter().any(|grant| grant.token == token);
        let (kept, gone) = std::mem::take(&mut self.plain[client].held)
            .into_iter()
            .partition(|(held, _): &(Held, _)| is_held(held.token));
        self.plain[client].held = kept;
        for (held, _) in gone {
            self.notes.record.belief(TrueTime(self.now), session, held.place, held.token, None);
            self.plain[client].note_let_go(held.token);
        }
        for (_, base) in &mut self.plain[client].held {
            *base = Some(sent);
        }
        for grant in grants {
            self.plain_has(client, grant, Some(sent));
        }
    }

    /// A lease that counts from this sending, or from that of the next renewal that lists it.
    fn plain_has(&mut self, client: usize, grant: Grant, base: Option<Reading>) {
        if let Some(session) = self.plain[client].session {
            let token = grant.token;
            self.notes.record.push(TrueTime(self.now), Noted::PlainKnows { session, token });
        }
        let place = Place { resource: self.notes.record.resource(&grant.resource), slot: grant.slot };
        let own = &mut self.plain[client];
        // A close that was sent may take effect at any time, so nothing is believed in any more.
        if own.closing {
            return;
        }
        if own.let_go(grant.token) {
            own.again.push((grant.resource, grant.token));
        } else if own.held.iter().all(|(held, _)| held.token != grant.token) {
            own.held.push((Held::of(grant, place), base));
        }
    }

    /// The session is over for the caller.
    pub(super) fn plain_over(&mut self, client: usize) {
        let at = TrueTime(self.now);
        let own = &mut self.plain[client];
        own.nonce = None;
        own.sent.clear();
        own.number = 0;
        own.call = None;
        own.closing = false;
        own.again.clear();
        own.asked = None;
        let held = std::mem::take(&mut own.held);
        if let Some(session) = own.session.take() {
            for (held, _) in held {
                self.notes.record.belief(at, session, held.place, held.token, None);
            }
            self.notes.record.push(at, Noted::SessionOver { session });
        }
    }

    /// The process is gone with what it knew, and another begins.
    pub(super) fn plain_dies(&mut self, client: usize) {
        self.plain_over(client);
        let own = &mut self.plain[client];
        own.life += 1;
        own.released.clear();
        if self.plan.faults.has(Fault::Plain) {
            let life = own.life;
            self.queue.push(self.now + SECOND, Event::PlainActs { client, life });
        }
    }

    pub(super) fn note_plain_beliefs(&mut self, client: usize) {
        let Some(session) = self.plain.get(client).and_then(|own| own.session) else { return };
        for place in 0..self.plain[client].held.len() {
            let until = self.plain_until(client, place).map(TrueTime);
            let held = &self.plain[client].held[place].0;
            self.notes.record.belief(TrueTime(self.now), session, held.place, held.token, until);
        }
    }

    /// Up to when a lease held may be believed in, by the clock that is ahead; nothing if that is over.
    fn plain_until(&self, client: usize, place: usize) -> Option<u64> {
        let own = &self.plain[client];
        let usable = Duration::from_millis(own.numbers?.usable().get());
        let until = self.clients[client].clock.when(self.now, own.held[place].1?.plus(usable));
        (until > self.now).then_some(until)
    }

    fn plain_writes(&mut self, client: usize, session: SessionId) {
        for place in 0..self.plain[client].held.len() {
            let Some(until) = self.plain_until(client, place) else { continue };
            let held = &self.plain[client].held[place].0;
            let (at, fence) = (held.place, held.fence);
            let sent = self.now + self.net.below((until - self.now).min(20 * MILLI));
            let arrives = self.send_write(at, fence, session, sent);
            let held = &mut self.plain[client].held[place].0;
            held.busy_until = held.busy_until.max(arrives);
        }
    }
}
