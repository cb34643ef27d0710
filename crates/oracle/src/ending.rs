//! How leases end, and what operators and registers do.

use super::*;
use leasehold_core::answer::{BadRequest, LimitedThing};
use leasehold_core::limits::MAX_ASKS_PER_LEASE;
use leasehold_core::{Answer, Operator, Reason, Successor, WaitEnding};

impl Naive {
    /// The history learns of it, and so does the holder unless it asked for it. The place is not empty yet.
    pub(super) fn record_end(&mut self, name: &ResourceName, token: Token, how: &Ending, when: u64) {
        self.end_offer(name, token);
        let lease = self.lease_mut(name, token).expect("only a lease ends");
        lease.draining = None;
        let session = lease.session;
        self.registers.retain(|r| !(r.resource == *name && r.with_lease && r.token == token));
        self.past.push(Past { resource: name.clone(), token, session, how: how.clone() });
        let of_name = self.past.iter().filter(|past| past.resource == *name).count();
        if of_name > self.config.limits.history {
            let oldest =
                self.past.iter().position(|past| past.resource == *name).expect("there is at least one");
            self.past.remove(oldest);
        }
        let (resource, how) = (name.clone(), how.clone());
        if !how.is_voluntary() {
            let (resource, how) = (resource.clone(), how.clone());
            self.push_item(session, ItemKind::LeaseEnded { resource, token, how });
        }
        let (when, label) =
            (LogTime::new(when), self.session(session).expect("a lease has a session").label.clone());
        self.out.events.push(Event::Ended { resource, token, session, label, when, how });
    }

    /// The place is empty; with `cool_from` it goes to nobody for the session's delay from that point on.
    pub(super) fn empty_place(&mut self, name: &ResourceName, token: Token, cool_from: Option<u64>) {
        let lease = self.lease(name, token).expect("only the place of a lease is emptied").clone();
        self.leases.retain(|other| other.token != token);
        let delay = self.session(lease.session).expect("a lease has a session").policies.delay.get();
        if let Some(from) = cool_from
            && delay > 0
            && from + delay >= self.now
        {
            self.cooling.push(Cooling { resource: name.clone(), slot: lease.slot, until: from + delay });
        }
    }

    /// Ends a lease whose session is over, or gives up waiting for the holder of a revoked one.
    pub(super) fn expire(&mut self, name: &ResourceName, token: Token) {
        let lease = self.lease(name, token).expect("only a lease expires");
        let session = self.session(lease.session).expect("a lease has a session");
        if let Some(revoked) = &lease.revoked {
            let until = revoked.until;
            self.empty_place(name, token, Some(until));
            return;
        }
        let (ended, grace_over) =
            (self.ended_after(session), self.overdue_after(session) + session.policies.grace.get());
        self.record_end(name, token, &Ending::Expired, ended);
        self.empty_place(name, token, Some(grace_over));
    }

    pub(super) fn end_offer(&mut self, name: &ResourceName, token: Token) {
        let Some(offer) = self.lease_mut(name, token).and_then(|lease| lease.offer.take()) else { return };
        if let Some(Ready { command, own_value: Some(_) }) = offer.ready
            && self.session(offer.to).is_some()
        {
            let (session, why) = (offer.to, WaitEnding::OfferEnded);
            self.push_item(session, ItemKind::WaitEnded { command, why });
            self.out.events.push(Event::WaitEnded { session, command, why });
        }
        self.push_item(offer.to, ItemKind::OfferEnded { resource: name.clone(), token });
    }

    pub(super) fn release(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        drained: bool,
    ) -> Result<Answer, Refusal> {
        self.serve([name.clone()]);
        self.shown(name, token, id)?;
        let Some(lease) = self.lease(name, token).filter(|lease| lease.session == id).cloned() else {
            return Err(self.not_holder(name, token));
        };
        if lease.revoked.is_some() {
            self.empty_place(name, token, Some(self.now));
        } else if let Some((to, ready)) = self.successor_at_release(&lease) {
            self.pass_on(&lease, to, ready);
        } else {
            let how = if drained { Ending::Drained } else { Ending::Released };
            self.record_end(name, token, &how, self.now);
            self.empty_place(name, token, None);
        }
        self.serve([name.clone()]);
        Ok(Answer::Released)
    }

    pub(super) fn not_holder(&self, name: &ResourceName, token: Token) -> Refusal {
        Refusal::NotHolder { resource: name.clone(), token, ended: self.how_it_ended(name, token) }
    }

    /// A lease that this session holds.
    pub(super) fn held_mut(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
    ) -> Result<&mut Lease, Refusal> {
        let refusal = self.not_holder(name, token);
        let lease = self.lease_mut(name, token);
        lease.filter(|lease| lease.session == id && lease.revoked.is_none()).ok_or(refusal)
    }

    fn not_current(&self, name: &ResourceName, token: Token) -> Refusal {
        Refusal::NotCurrent { resource: name.clone(), token, ended: self.how_it_ended(name, token) }
    }

    pub(super) fn write_register(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        key: &RegisterKey,
        value: Option<&Value>,
        with_lease: bool,
    ) -> Result<Answer, Refusal> {
        self.serve([name.clone()]);
        self.shown(name, token, id)?;
        if self.lease(name, token).is_none_or(|lease| lease.revoked.is_some()) {
            return Err(self.not_current(name, token));
        }
        let limit = self.config.limits.registers_per_resource;
        let others = self.registers.iter().filter(|r| r.resource == *name && r.key != *key).count();
        let known = self.registers.iter().any(|r| r.resource == *name && r.key == *key);
        if value.is_some() && !known && others >= limit {
            return Err(Refusal::LimitReached { what: LimitedThing::RegistersOfResource, limit });
        }
        self.registers.retain(|r| !(r.resource == *name && r.key == *key));
        if let Some(value) = value {
            let (resource, key, value) = (name.clone(), key.clone(), value.clone());
            self.registers.push(Register { resource, key, value, token, with_lease });
        }
        let (resource, key) = (name.clone(), key.clone());
        self.out.events.push(Event::RegisterWritten { resource, key, token, removed: value.is_none() });
        Ok(Answer::RegisterWritten)
    }

    pub(super) fn operator(&mut self, operator: &Operator) -> Reply {
        let done = match operator {
            Operator::AskRelease { resource, token, successor, by } => {
                self.ask(resource, *token, successor.as_ref(), by)
            }
            Operator::Revoke { resource, token, by, reason, now } => {
                let how = Ending::Revoked { by: by.clone(), reason: reason.clone() };
                self.revoke(resource, *token, &how, *now)
            }
            Operator::ChangeKind { resource, mode, by } => self.change_kind(resource, *mode, by),
            Operator::ClearAlarm { resource, token, by, reason } => {
                self.clear_alarm(resource, *token, by, reason)
            }
        };
        done.unwrap_or_else(Reply::Refused)
    }

    /// The token because of which a resource goes to nobody.
    pub(super) fn alarm(&self, name: &ResourceName) -> Option<Token> {
        self.alarms.iter().find(|(alarmed, _)| alarmed == name).map(|(_, token)| *token)
    }

    /// Refuses a token that was never granted, and keeps it in mind.
    pub(super) fn shown(&mut self, name: &ResourceName, token: Token, id: SessionId) -> Result<(), Refusal> {
        let newest = self.newest();
        if token.get() <= newest {
            return Ok(());
        }
        let raised = self.alarm(name);
        let by_it = self.alarmed.iter().filter(|by| **by == id).count();
        // Before version 4 a session had no limit, and one alarm too many stopped everything: no world of before raises so many.
        let allowed = (by_it < 16 && self.alarms.len() < 1_024 && token.get() < 1 << 63) || self.version < 4;
        if raised.map_or(allowed, |raised| raised < token) {
            if raised.is_none() {
                self.alarmed.push(id);
            }
            self.alarms.retain(|(alarmed, _)| alarmed != name);
            self.alarms.push((name.clone(), token));
            let by = self.session(id).expect("who shows it has a session").label.clone();
            self.out.events.push(Event::AlarmRaised { resource: name.clone(), token, by });
        }
        Err(Refusal::TokenAhead { resource: name.clone(), token, newest })
    }

    fn clear_alarm(
        &mut self,
        name: &ResourceName,
        token: Token,
        by: &Label,
        reason: &Reason,
    ) -> Result<Reply, Refusal> {
        self.serve([name.clone()]);
        let raised = self.alarm(name);
        if raised != Some(token) {
            return Err(Refusal::NoSuchAlarm { resource: name.clone(), token, raised });
        }
        self.alarms.retain(|(alarmed, _)| alarmed != name);
        let (by, reason) = (by.clone(), reason.clone());
        self.out.events.push(Event::AlarmCleared { resource: name.clone(), token, by, reason });
        self.serve([name.clone()]);
        Ok(Reply::AlarmCleared)
    }

    fn ask(
        &mut self,
        name: &ResourceName,
        token: Option<Token>,
        successor: Option<&Successor>,
        by: &Label,
    ) -> Result<Reply, Refusal> {
        self.serve([name.clone()]);
        let asked =
            |lease: &&Lease| lease.revoked.is_none() && token.is_none_or(|token| token == lease.token);
        let Some(lease) = self.leases_on(name).find(asked) else {
            return Err(match token.filter(|_| self.name(name).is_some()) {
                Some(token) => self.not_current(name, token),
                None => Refusal::NotHeld { resource: name.clone() },
            });
        };
        let (session, token, asks) = (lease.session, lease.token, lease.asks);
        let holder = self.session(session).expect("a lease has a session").label.clone();
        self.lease_mut(name, token).expect("it was just found").asks += 1;
        if asks < MAX_ASKS_PER_LEASE {
            let (successor, by) = (successor.cloned(), by.clone());
            let request = ItemKind::ReleaseRequested { resource: name.clone(), token, successor, by };
            self.push_item(session, request);
        }
        Ok(Reply::Asked { token, holder })
    }

    fn revoke(
        &mut self,
        name: &ResourceName,
        token: Token,
        how: &Ending,
        now: bool,
    ) -> Result<Reply, Refusal> {
        self.serve([name.clone()]);
        let Some(lease) = self.lease(name, token).filter(|lease| now || lease.revoked.is_none()) else {
            return Err(self.not_current(name, token));
        };
        if lease.revoked.is_none() {
            self.record_end(name, token, how, self.now);
        }
        if now {
            self.empty_place(name, token, None);
        } else {
            self.hold_back(name, token, false);
        }
        self.serve([name.clone()]);
        let waited_for = self.lease(name, token).and_then(|lease| lease.revoked.as_ref());
        Ok(Reply::Revoked {
            held_back: Millis::new(waited_for.map_or(0, |revoked| revoked.until - self.now)),
        })
    }

    /// The holder may not know that its lease is over: its place stays taken until its last renewal so far is overdue.
    fn hold_back(&mut self, name: &ResourceName, token: Token, of_another_kind: bool) {
        let lease = self.lease(name, token).expect("its end was just recorded");
        let until = self.overdue_after(self.session(lease.session).expect("a lease has a session"));
        if self.now > until {
            self.empty_place(name, token, Some(self.now));
        } else {
            let lease = self.lease_mut(name, token).expect("it was just found");
            lease.revoked = Some(Revoked { until, of_another_kind });
        }
    }

    fn change_kind(&mut self, name: &ResourceName, mode: Mode, by: &Label) -> Result<Reply, Refusal> {
        if slots_of(mode).is_some_and(|slots| slots == 0 || slots > 10_000) {
            return Err(Refusal::BadRequest { what: BadRequest::BadSlots });
        }
        self.serve([name.clone()]);
        let Some(known) = self.names.iter_mut().find(|known| known.name == *name) else {
            return Err(Refusal::NotHeld { resource: name.clone() });
        };
        if known.slots == slots_of(mode) {
            return Ok(Reply::KindChanged);
        }
        known.slots = slots_of(mode);
        self.cooling
            .iter_mut()
            .filter(|cooling| cooling.resource == *name)
            .for_each(|cooling| cooling.slot = None);
        let mut held = Vec::new();
        for lease in self.leases.iter_mut().filter(|lease| lease.resource == *name) {
            lease.slot = None;
            match &mut lease.revoked {
                Some(revoked) => revoked.of_another_kind = true,
                None => held.push(lease.token),
            }
        }
        let waits: Vec<Wait> = self.queue(name).cloned().collect();
        let reason = Reason::new("kind of the resource changed").expect("this text is short and plain");
        let how = Ending::Revoked { by: by.clone(), reason };
        for token in held {
            self.record_end(name, token, &how, self.now);
            self.hold_back(name, token, true);
        }
        let mut touched = vec![name.clone()];
        for wait in waits {
            self.end_wait(&wait, WaitEnding::KindChanged);
            touched.extend(wait.requests.into_iter().map(|request| request.resource));
        }
        self.serve(touched);
        Ok(Reply::KindChanged)
    }
}
