//! Sessions: their machines, what the application waits for, and what is published to its leases.

mod giving_up;

use std::collections::HashMap;
use std::sync::Arc;

use leasehold_core::client::{
    ClientSession, Frame, Incoming, Input, Outcome, Output, Profile, SessionEnd, WaitOver,
};
use leasehold_core::holder::{Reading, Strictness};
use leasehold_core::protocol::{Failure, Request, RequestId, Response, ToClient};
use leasehold_core::{
    Acquire, Answer, AttachNumber, CommandNumber, Grant, Nonce, Op, Refusal, Reply as TableReply, Sequence,
    SessionId, Token,
};
use tokio::sync::broadcast;

use super::{Driver, EVENTS_KEPT, Key, Reply, SessionRef};
use crate::error::Error;
use crate::lease::{Lease, ReleaseRequest, Shared};
use crate::session::{Session, SessionEvent};

/// Requests of sessions have ids with this bit, so that they are not taken for others.
const SESSION_BIT: u64 = 1 << 63;

/// One session of a driver.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) machine: ClientSession,
    strictness: Strictness,
    opening: Option<Reply<Session>>,
    events: broadcast::Sender<SessionEvent>,
    acquires: HashMap<CommandNumber, Wanted>,
    answers: HashMap<CommandNumber, Option<Reply<Answer>>>,
    tickets: HashMap<u64, CommandNumber>,
    leases: HashMap<Token, Arc<Shared>>,
    /// The deadline that the leases were last told.
    told: Option<Reading>,
    /// What the responses on this connection answer.
    asked: HashMap<RequestId, Asked>,
    /// The last command ever sent: what came after it cannot have had an effect.
    sent: CommandNumber,
    /// Since when the session is being closed.
    closing_since: Option<Reading>,
    ended: Option<SessionEnd>,
}

#[derive(Debug)]
struct Wanted {
    ticket: u64,
    reply: Reply<Vec<Lease>>,
}

/// What a request of a session was.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Open(Nonce),
    Attach(SessionId, AttachNumber),
    Renew(SessionId),
}

impl Driver {
    pub(super) fn open(&mut self, profile: Profile, strictness: Strictness, reply: Reply<Session>) {
        let key = Key(self.next_key);
        self.next_key += 1;
        let mut machine = ClientSession::new(profile, self.nonce());
        if self.connection.is_some() {
            machine.handle(Input::Connected, self.time.now());
        }
        let slot = Slot {
            machine,
            strictness,
            opening: Some(reply),
            events: broadcast::Sender::new(EVENTS_KEPT),
            acquires: HashMap::new(),
            answers: HashMap::new(),
            tickets: HashMap::new(),
            leases: HashMap::new(),
            told: None,
            asked: HashMap::new(),
            sent: CommandNumber::NONE,
            closing_since: None,
            ended: None,
        };
        self.slots.insert(key, slot);
    }

    pub(super) fn acquire(&mut self, key: Key, ticket: u64, acquire: Acquire, reply: Reply<Vec<Lease>>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            return;
        };
        match slot.machine.submit(Op::Acquire(acquire)) {
            Ok(number) => {
                slot.tickets.insert(ticket, number);
                slot.acquires.insert(number, Wanted { ticket, reply });
            }
            Err(error) => {
                let _ = reply.send(Err(slot.ended.clone().map_or(Error::Submit(error), Error::SessionEnded)));
            }
        }
    }

    pub(super) fn give_up(&mut self, key: Key, ticket: u64) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        if let Some(number) = slot.tickets.remove(&ticket) {
            slot.acquires.remove(&number);
            // If the session is over, there is nothing left to give up.
            if let Ok(cancel) = slot.machine.submit(Op::Cancel { acquire: number }) {
                slot.answers.insert(cancel, None);
            }
        }
    }

    pub(super) fn submit(&mut self, key: Key, op: Op, reply: Option<Reply<Answer>>) {
        let now = self.time.now();
        let Some(slot) = self.slots.get_mut(&key) else {
            if let Some(reply) = reply {
                let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            }
            return;
        };
        if matches!(op, Op::Close) {
            slot.closing_since.get_or_insert(now);
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
        for slot in self.slots.values_mut() {
            slot.asked.clear();
            slot.machine.handle(Input::Connected, now);
        }
    }

    pub(super) fn tell_sessions_disconnected(&mut self) {
        let now = self.time.now();
        for slot in self.slots.values_mut() {
            slot.asked.clear();
            slot.machine.handle(Input::Disconnected, now);
        }
    }

    /// Polls every machine until it has nothing more to say.
    pub(super) fn poll_sessions(&mut self) {
        let keys: Vec<Key> = self.slots.keys().copied().collect();
        for key in keys {
            let now = self.time.now();
            let (jitter, fresh) = (self.jitter(), self.nonce());
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            if slot.opening.as_ref().is_some_and(Reply::is_closed) {
                // Nobody waits for this session any more.
                self.slots.remove(&key);
                continue;
            }
            let outputs = slot.machine.poll(now, jitter);
            // Known before anything else is told: whoever waits learns why the session is over, not only that it is.
            slot.ended = outputs.iter().find_map(|output| match output {
                Output::Event(SessionEvent::SessionEnded { why }) => Some(why.clone()),
                _ => None,
            });
            for output in outputs {
                match output {
                    Output::Send(frame) => self.send_frame(key, frame),
                    Output::NeedNonce => {
                        if let Some(slot) = self.slots.get_mut(&key) {
                            slot.machine.handle(Input::Nonce(fresh), now);
                        }
                    }
                    Output::Reconnect => {
                        let _ = self.reconnect.send(());
                    }
                    Output::Event(event) => self.event(key, event),
                }
            }
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            slot.tell_leases();
            if slot.ended.is_some() {
                self.slots.remove(&key);
            }
        }
    }

    fn send_frame(&mut self, key: Key, frame: Frame) {
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
                (Request::Renew { session, number, seen }, Some(Asked::Renew(session)))
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
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.asked.insert(id, asked);
                }
                id
            }
            // Commands are answered by items; only their refusals come back, and need no more than the session.
            None => RequestId(SESSION_BIT | COMMAND_BIT | key.0),
        };
        self.outgoing.push((id, request));
    }

    pub(super) fn receive(&mut self, message: ToClient) {
        let now = self.time.now();
        match message {
            ToClient::Items { session, items } => {
                let slot = self.slots.values_mut().find(|slot| slot.machine.session() == Some(session));
                if let Some(slot) = slot {
                    for item in items {
                        slot.machine.handle(Input::Received(Incoming::Item { session, item }), now);
                    }
                }
            }
            ToClient::Response { id, response } => {
                let Some(response) = self.requests.receive(id, response) else { return };
                for (key, slot) in &mut self.slots {
                    let incoming = if id.0 == SESSION_BIT | COMMAND_BIT | key.0 {
                        slot.machine.session().and_then(|session| command_response(session, &response))
                    } else {
                        slot.asked.remove(&id).and_then(|asked| asked.answer(&response))
                    };
                    if let Some(incoming) = incoming {
                        slot.machine.handle(Input::Received(incoming), now);
                        return;
                    }
                }
            }
            ToClient::Hint { session, length } => {
                let slot = self.slots.values_mut().find(|slot| slot.machine.session() == Some(session));
                if let Some(slot) = slot {
                    slot.machine.handle(Input::Hint(length.duration()), now);
                }
            }
            // Watches have connections of their own.
            ToClient::Watched { .. } => {}
        }
    }

    fn event(&mut self, key: Key, event: SessionEvent) {
        let to_driver = self.to_driver.upgrade();
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let session = to_driver.map(|to_driver| SessionRef {
            key,
            pid: std::process::id(),
            to_driver,
            events: slot.events.clone(),
        });
        match &event {
            SessionEvent::Opened { session: id } => {
                if let (Some(reply), Some(session)) = (slot.opening.take(), session) {
                    let _ = reply.send(Ok(Session::new(session, *id)));
                }
            }
            SessionEvent::Resolved { command, outcome } => {
                slot.resolved(*command, outcome.clone(), session, &self.time);
            }
            SessionEvent::WaitOver { command, how } => {
                slot.wait_over(*command, how.clone(), session, &self.time);
            }
            SessionEvent::LeaseEnded { token, why, confirmed_until, .. } => {
                if let Some(lease) = slot.leases.remove(token) {
                    lease.end(why.clone().into(), *confirmed_until);
                }
            }
            SessionEvent::ReleaseRequested { token, successor, by, .. } => {
                if let Some(lease) = slot.leases.get(token) {
                    lease.ask_release(ReleaseRequest { by: by.clone(), successor: successor.clone() });
                }
            }
            SessionEvent::Standing(_) => slot.publish_all(),
            SessionEvent::SessionEnded { why } => {
                slot.ended = Some(why.clone());
                if let Some(reply) = slot.opening.take() {
                    let error = match why {
                        SessionEnd::OpenRefused(refusal) => refusal.clone().into(),
                        other => Error::SessionEnded(other.clone()),
                    };
                    let _ = reply.send(Err(error));
                }
            }
            SessionEvent::Offered { .. } | SessionEvent::OfferEnded { .. } => {}
        }
        // Nobody may be listening.
        let _ = slot.events.send(event);
    }
}

/// Marks the one id that all commands of a session share.
const COMMAND_BIT: u64 = 1 << 62;

impl Asked {
    fn answer(self, response: &Response) -> Option<Incoming> {
        let reply = match response {
            Response::Reply(reply) => reply.clone(),
            // The service does not know the session, or not as ours: it was set back, and the session is lost to us.
            Response::Failed(Failure::NotYourSession { session }) if matches!(self, Self::Attach(..)) => {
                TableReply::Refused(Refusal::SessionEnded { session: *session })
            }
            // Not taken in: the machine asks again by itself.
            Response::Failed(_) | Response::Read { .. } | Response::Cluster(_) => return None,
        };
        match (self, reply) {
            (Self::Open(nonce), TableReply::Opened(opened)) => Some(Incoming::Opened { nonce, opened }),
            (Self::Open(nonce), TableReply::Refused(refusal)) => {
                Some(Incoming::OpenRefused { nonce, refusal })
            }
            (Self::Attach(session, attach), TableReply::Attached { last_command, last_item }) => {
                Some(Incoming::Attached { session, attach, last_command, last_item })
            }
            (Self::Renew(session), TableReply::Renewed(renewed)) => {
                Some(Incoming::Renewed { session, renewed })
            }
            (Self::Renew(session), TableReply::StaleRenewal { number, highest }) => {
                Some(Incoming::StaleRenewal { session, number, highest })
            }
            (Self::Attach(session, _) | Self::Renew(session), TableReply::Refused(refusal)) => {
                Some(Incoming::Refused { session, refusal })
            }
            _ => None,
        }
    }
}

fn command_response(session: SessionId, response: &Response) -> Option<Incoming> {
    match response {
        Response::Reply(TableReply::Closed) => Some(Incoming::Closed { session }),
        Response::Reply(TableReply::Refused(refusal)) => {
            Some(Incoming::Refused { session, refusal: refusal.clone() })
        }
        _ => None,
    }
}

impl Slot {
    /// Tells the leases when their common deadline has moved.
    fn tell_leases(&mut self) {
        let until = self.machine.leases().next().map(|lease| lease.until());
        if until != self.told {
            self.told = until;
            self.publish_all();
        }
    }

    /// Tells every lease what the session believes now.
    fn publish_all(&self) {
        for (token, lease) in &self.leases {
            if let Some(handle) = self.machine.lease(*token) {
                lease.publish(handle);
            }
        }
    }

    fn resolved(
        &mut self,
        command: CommandNumber,
        outcome: Outcome,
        session: Option<SessionRef>,
        time: &crate::time::Time,
    ) {
        if let Some(wanted) = self.acquires.remove(&command) {
            match outcome {
                Outcome::Answered(Answer::Granted(grants)) => self.granted(wanted, &grants, session, time),
                Outcome::Answered(Answer::Queued { .. }) => {
                    self.acquires.insert(command, wanted);
                }
                other => self.not_granted(wanted, self.error(other)),
            }
            return;
        }
        let Some(Some(reply)) = self.answers.remove(&command) else { return };
        let _ = reply.send(match outcome {
            Outcome::Answered(Answer::Refused(refusal)) => Err(refusal.into()),
            Outcome::Answered(answer) => Ok(answer),
            // A close has no other answer than that it is done.
            Outcome::Closed => Ok(Answer::Released),
            other => Err(self.error(other)),
        });
    }

    fn error(&self, outcome: Outcome) -> Error {
        match outcome {
            Outcome::Answered(Answer::Refused(refusal)) => refusal.into(),
            Outcome::Cancelled | Outcome::Closed => Error::Cancelled,
            Outcome::NotSent => Error::SessionEnded(self.ended.clone().unwrap_or(SessionEnd::Closed)),
            Outcome::Unknown | Outcome::Answered(_) => Error::OutcomeUnknown,
        }
    }

    fn wait_over(
        &mut self,
        command: CommandNumber,
        how: WaitOver,
        session: Option<SessionRef>,
        time: &crate::time::Time,
    ) {
        let Some(wanted) = self.acquires.remove(&command) else { return };
        match how {
            WaitOver::Granted(grants) => self.granted(wanted, &grants, session, time),
            WaitOver::Ended(why) => self.not_granted(wanted, Error::WaitEnded(why)),
            WaitOver::Cancelled => self.not_granted(wanted, Error::Cancelled),
            WaitOver::SessionEnded => {
                let why = self.ended.clone().unwrap_or(SessionEnd::Closed);
                self.not_granted(wanted, Error::SessionEnded(why));
            }
        }
    }

    fn granted(
        &mut self,
        wanted: Wanted,
        grants: &[Grant],
        session: Option<SessionRef>,
        time: &crate::time::Time,
    ) {
        self.tickets.remove(&wanted.ticket);
        let Some(session) = session else { return };
        let mut leases = Vec::with_capacity(grants.len());
        for grant in grants {
            let Some(handle) = self.machine.lease(grant.token) else {
                // Ended again before the application could be told: nothing acts under it, so the ending is acknowledged here.
                let (resource, token) = (grant.resource.clone(), grant.token);
                if let Ok(number) = self.machine.submit(Op::Release { resource, token, drained: false }) {
                    self.answers.insert(number, None);
                }
                continue;
            };
            let shared = Arc::new(Shared::new(handle, time.clone(), self.strictness));
            self.leases.insert(grant.token, Arc::clone(&shared));
            leases.push(Lease::new(shared, session.clone()));
        }
        if leases.len() < grants.len() {
            // Granted and ended again before the application could be told: what is left is given back as it is dropped.
            let _ = wanted.reply.send(Err(Error::OutcomeUnknown));
            return;
        }
        // If nobody waits any more, the leases are dropped here, which gives them back.
        let _ = wanted.reply.send(Ok(leases));
    }

    fn not_granted(&mut self, wanted: Wanted, error: Error) {
        self.tickets.remove(&wanted.ticket);
        let _ = wanted.reply.send(Err(error));
    }
}
