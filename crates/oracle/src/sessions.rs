//! Opening, attaching, renewing, numbering and ending sessions.

use leasehold_core::limits::MIN_TTL;

use super::*;
use leasehold_core::answer::{BadRequest, LimitedThing};
use leasehold_core::{Attach, Due, HeldLease, Holdings, Op, Open, Sequence, Waited};

impl Naive {
    pub(super) fn open(&mut self, open: &Open) -> Reply {
        let same =
            self.sessions.iter().find(|session| session.nonce == open.nonce && !self.is_over(session.id));
        if let Some(session) = same {
            let opened = (&session.ttl, &session.label, &session.policies, &session.kind);
            if opened != (&open.ttl, &open.label, &open.policies, &open.kind) {
                return Reply::Refused(Refusal::BadRequest { what: BadRequest::NonceTaken });
            }
            let (session, ttl) = (session.id, session.ttl);
            return Reply::Opened(Opened { session, ttl, drift: self.config.drift, repeated: true });
        }
        let (min, max, limit) = (MIN_TTL, self.config.max_ttl, self.config.limits.sessions);
        if open.ttl < min || open.ttl > max {
            return Reply::Refused(Refusal::TtlOutOfRange { ttl: open.ttl, min, max });
        }
        let day = Millis::new(86_400_000);
        let Policies { grace, hard, delay } = open.policies;
        if grace > day || hard > day || delay > day || hard < grace {
            return Reply::Refused(Refusal::BadPolicies);
        }
        if self.sessions.len() >= limit {
            return Reply::Refused(Refusal::LimitReached { what: LimitedThing::Sessions, limit });
        }
        let id = SessionId::from(self.draw());
        self.sessions.push(Session {
            id,
            nonce: open.nonce,
            label: open.label.clone(),
            ttl: open.ttl,
            policies: open.policies,
            kind: open.kind,
            renewed_at: self.now,
            renewal: 0,
            last_command: 0,
            attach: 0,
            last_item: 0,
            unseen: Vec::new(),
            settled: CallNumber::NONE,
            shut: CallNumber::NONE,
            calls: Vec::new(),
        });
        self.out.events.push(Event::SessionOpened { session: id, label: open.label.clone() });
        Reply::Opened(Opened { session: id, ttl: open.ttl, drift: self.config.drift, repeated: false })
    }

    pub(super) fn attach(&mut self, attach: &Attach) -> Reply {
        if self.is_over(attach.session) {
            return Reply::Refused(Refusal::SessionEnded { session: attach.session });
        }
        let session = self.session_mut(attach.session).expect("it is not over");
        if session.kind == SessionKind::Plain {
            return Reply::Refused(Refusal::WrongSessionKind);
        }
        if attach.attach.get() <= session.attach {
            let current = leasehold_core::AttachNumber::new(session.attach);
            return Reply::Refused(Refusal::OlderAttach { attach: attach.attach, current });
        }
        if let Err(refusal) = see(session, attach.seen) {
            return Reply::Refused(refusal);
        }
        session.attach = attach.attach.get();
        let last_command = CommandNumber::new(session.last_command);
        Reply::Attached { last_command, last_item: ItemNumber::new(session.last_item) }
    }

    pub(super) fn renew(
        &mut self,
        revived: &mut Vec<ResourceName>,
        id: SessionId,
        number: RenewalNumber,
        seen: ItemNumber,
    ) -> Result<(), Reply> {
        if self.is_over(id) {
            return Err(Reply::Refused(Refusal::SessionEnded { session: id }));
        }
        let (now, was_live) = (self.now, self.is_live(id));
        let session = self.session_mut(id).expect("it is not over");
        see(session, seen).map_err(Reply::Refused)?;
        if number.get() <= session.renewal {
            return Err(Reply::StaleRenewal { number, highest: RenewalNumber::new(session.renewal) });
        }
        session.renewal = number.get();
        session.renewed_at = now;
        if !was_live {
            let own = self.waits.iter().filter(|wait| wait.session == id);
            revived.extend(own.flat_map(|wait| wait.requests.iter().map(|request| request.resource.clone())));
        }
        Ok(())
    }

    /// The next renewal of a plain session.
    pub(super) fn renew_plain(
        &mut self,
        revived: &mut Vec<ResourceName>,
        id: SessionId,
    ) -> (RenewalNumber, Result<(), Reply>) {
        let none = RenewalNumber::NONE;
        if self.is_over(id) {
            return (none, Err(Reply::Refused(Refusal::SessionEnded { session: id })));
        }
        let session = self.session(id).expect("it is not over");
        if session.kind == SessionKind::Streamed {
            return (none, Err(Reply::Refused(Refusal::WrongSessionKind)));
        }
        let number = RenewalNumber::new(session.renewal + 1);
        (number, self.renew(revived, id, number, ItemNumber::NONE))
    }

    pub(super) fn renewed(&self, id: SessionId, number: RenewalNumber) -> Reply {
        let session = self.session(id).expect("a renewal ends no session");
        let holdings = (session.kind == SessionKind::Plain).then(|| {
            let held = self.leases.iter().filter(|lease| lease.session == id && lease.revoked.is_none());
            let mut leases: Vec<_> = held
                .map(|lease| {
                    let Lease { resource, token, fence, slot, asks, .. } = lease.clone();
                    HeldLease { grant: Grant { resource, token, fence, slot }, release_requested: asks > 0 }
                })
                .collect();
            leases.sort_by_key(|held| (held.grant.resource.clone(), held.grant.token));
            let waits = self.waits.iter().filter(|wait| wait.session == id);
            let mut waits: Vec<_> = waits
                .map(|wait| {
                    let resources = wait.requests.iter().map(|request| request.resource.clone()).collect();
                    Waited { acquire: wait.command, resources }
                })
                .collect();
            waits.sort_by_key(|wait| wait.acquire);
            Holdings { leases, waits }
        });
        Reply::Renewed(Renewed { number, after: ItemNumber::new(session.last_item), holdings })
    }

    /// A command of a session; nothing stands for one that there was no room for.
    pub(super) fn session_command(&mut self, id: SessionId, sequence: Sequence, op: Option<&Op>) -> Reply {
        if self.is_over(id) {
            return Reply::Refused(Refusal::SessionEnded { session: id });
        }
        if let (Sequence::Numbered(numbered), Some(op)) = (sequence, op) {
            return self.numbered_command(id, numbered, op);
        }
        if let Some(settled) = op.and_then(|op| self.cancels_settled(id, op, CallNumber::NONE)) {
            return settled;
        }
        self.admitted_command(id, sequence, op)
    }

    pub(super) fn admitted_command(&mut self, id: SessionId, sequence: Sequence, op: Option<&Op>) -> Reply {
        let limit = self.config.limits.unseen * 2;
        let gives_up = match op {
            Some(Op::Release { resource, token, .. }) => {
                self.lease(resource, *token).is_some_and(|lease| lease.session == id)
            }
            Some(Op::Cancel { acquire }) => {
                self.waits.iter().any(|wait| (wait.session, wait.command) == (id, *acquire))
            }
            Some(Op::Close) => true,
            _ => false,
        };
        let session = self.session_mut(id).expect("it is not over");
        let expected = CommandNumber::new(session.last_command + 1);
        match (sequence, session.kind) {
            (Sequence::Plain, SessionKind::Plain) => {}
            (Sequence::Streamed { attach, number, seen }, SessionKind::Streamed) => {
                if attach.get() != session.attach {
                    let current = leasehold_core::AttachNumber::new(session.attach);
                    return Reply::Refused(Refusal::OlderAttach { attach, current });
                }
                if let Err(refusal) = see(session, seen) {
                    return Reply::Refused(refusal);
                }
                if number < expected {
                    return Reply::Repeated { number };
                }
                if number > expected {
                    return Reply::Refused(Refusal::CommandGap { number, expected });
                }
                if session.unseen.len() >= limit && !gives_up {
                    return Reply::Refused(Refusal::TooManyUnseen { limit });
                }
            }
            _ => return Reply::Refused(Refusal::WrongSessionKind),
        }
        session.last_command = expected.get();
        if matches!(op, Some(Op::Close)) {
            self.end_session(id, &Ending::SessionClosed, &mut usize::MAX.clone());
            return Reply::Closed;
        }
        let answer = match op {
            Some(op) => self.op(id, expected, op),
            None => Answer::Refused(Refusal::NoRoom),
        };
        let session = self.session(id).expect("only a close ends the own session");
        if session.kind == SessionKind::Plain {
            return Reply::Plain { number: expected, answer, renewal: RenewalNumber::new(session.renewal) };
        }
        self.push_item(id, ItemKind::Answer { command: expected, answer });
        Reply::Applied { number: expected }
    }

    pub(super) fn tidy(&mut self, due: &[Due]) -> Reply {
        let mut budget = self.config.limits.tidy_leases.max(1);
        for due in due {
            match due {
                Due::Session(id) if budget > 0 && self.session(*id).is_some() && self.is_over(*id) => {
                    self.end_session(*id, &Ending::Expired, &mut budget);
                }
                Due::Session(_) => {}
                Due::Resource(name) => self.serve([name.clone()]),
            }
        }
        Reply::Done
    }

    /// Its waits vanish, its leases end in the order of their names, then whoever waited for them is served.
    pub(super) fn end_session(&mut self, id: SessionId, how: &Ending, budget: &mut usize) {
        let mut touched = Vec::new();
        for wait in self.waits.iter().filter(|wait| wait.session == id) {
            touched.extend(wait.requests.iter().map(|request| request.resource.clone()));
        }
        self.waits.retain(|wait| wait.session != id);
        let own = self.leases.iter().filter(|lease| lease.session == id);
        let mut own: Vec<(ResourceName, Token)> =
            own.map(|lease| (lease.resource.clone(), lease.token)).collect();
        own.sort();
        for (name, token) in own {
            if *budget == 0 {
                break;
            }
            *budget -= 1;
            let revoked = self.lease(&name, token).expect("it was just listed").revoked.is_some();
            match how {
                Ending::Expired => self.expire(&name, token),
                _ if revoked => self.empty_place(&name, token, Some(self.now)),
                _ => {
                    self.record_end(&name, token, how, self.now);
                    self.empty_place(&name, token, (!how.is_voluntary()).then_some(self.now));
                }
            }
            touched.push(name);
        }
        if self.leases.iter().all(|lease| lease.session != id) {
            self.sessions.retain(|session| session.id != id);
            self.out.events.push(Event::SessionEnded { session: id });
        }
        self.serve(touched);
    }

    pub(super) fn end_everything(&mut self, how: &Ending) {
        self.waits.clear();
        let ids: Vec<SessionId> = self.sessions.iter().map(|session| session.id).collect();
        for id in ids {
            let how = if self.is_over(id) { &Ending::Expired } else { how };
            self.end_session(id, how, &mut usize::MAX.clone());
        }
    }
}

fn see(session: &mut Session, seen: ItemNumber) -> Result<(), Refusal> {
    if seen.get() > session.last_item {
        return Err(Refusal::SeenAhead { seen, newest: ItemNumber::new(session.last_item) });
    }
    session.unseen.retain(|item| item.number > seen);
    Ok(())
}
