//! Endings: release, expiry, the end of a session, and what an ending leaves behind.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::LeaseTable;
use super::gaps::{Ends, Moment};
use super::resource::{Cooling, Holder, Past, Ready, Standing};
use crate::answer::{Answer, Applied, Ending, Event, ItemKind, Refusal, WaitEnding};
use crate::id::{CommandNumber, SessionId, Token};
use crate::name::{ResourceName, Value};
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

impl LeaseTable {
    /// The holder gives a lease back, or acknowledges that it was revoked. Only the session, the resource and the token
    /// together name a lease: a late release of an earlier one finds nothing.
    pub(super) fn release(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        drained: bool,
    ) -> Result<Answer, Refusal> {
        self.settle(out, name);
        self.check_shown(out, name, token, id)?;
        let token = self.released_instead(name).unwrap_or(token);
        let anybody = planted(Bug::ReleaseWithoutOwner) || planted(Bug::ReleaseIgnoresToken);
        let held = self.resources.get(name).and_then(|resource| resource.holder(token));
        let Some(holder) = held.filter(|holder| holder.session == id || anybody) else {
            let ended = self.ending(name, token);
            return Err(Refusal::NotHolder { resource: name.clone(), token, ended });
        };
        if let Standing::Revoked { delay, .. } = holder.standing {
            let slot = holder.slot;
            let holder = self.vacate(name, token);
            self.note_acknowledged(name);
            self.note_given_up(name, holder.as_ref());
            self.cool_down(name, slot, self.last_at, delay);
            self.serve(out, [name.clone()]);
            return Ok(Answer::Released);
        }
        if let Some(to) = self.ready_successor(name, holder) {
            self.swap(out, name, token, to);
        } else {
            let how = if drained { Ending::Drained } else { Ending::Released };
            self.end_lease(out, name, token, &how, self.last_at);
        }
        if !planted(Bug::ReleaseServesNobody) {
            self.serve_one(out, name);
        }
        Ok(Answer::Released)
    }

    /// Ends a lease: the place is empty, the history knows, and whoever must hear of it is told. Nobody is served yet.
    pub(super) fn end_lease(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        how: &Ending,
        when: LogTime,
    ) -> Option<Holder> {
        self.record_ending(out, name, token, how, when);
        self.vacate(name, token)
    }

    /// Writes a lease into the history, drops what lives only with it, and tells its holder unless it asked for this.
    pub(super) fn record_ending(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        how: &Ending,
        when: LogTime,
    ) {
        self.end_offer(out, name, token);
        let history_limit = self.config.limits.history;
        let counts_gaps = self.counts_gaps();
        let (now, drift, two_lengths) = (self.now(), self.config.drift, self.gaps_have_two_lengths());
        let moment = Moment { now, drift, outages: &self.outages, two_lengths };
        let outages = if when == self.last_at { self.outages_right_now() } else { 0 };
        let Some(resource) = self.resources.get_mut(name) else { return };
        if let Some(holder) = resource.holder(token).filter(|_| counts_gaps) {
            let lease = (resource.kind, holder, &self.sessions[&holder.session]);
            let ends = Ends::of_lease(lease, how, moment);
            resource.note_ending(out, name, token, ends, &self.outages);
        }
        let Some(holder) = resource.holder_mut(token) else { return };
        holder.draining = None;
        let (session, since, outages) = (holder.session, holder.since, (holder.outages, outages));
        if !resource.registers.is_empty() && !planted(Bug::RegisterOutlivesLease) {
            resource.registers.retain(|_, register| !(register.with_lease && register.token == token));
        }
        let label = self.sessions[&session].label.clone();
        resource.history.push_back(Past {
            token,
            session,
            label: label.clone(),
            since,
            until: when,
            how: how.clone(),
            outages,
        });
        while resource.history.len() > history_limit {
            resource.history.pop_front();
        }
        if how.is_voluntary() {
            self.counters.voluntary_endings += 1;
        } else {
            self.counters.involuntary_endings += 1;
            let resource = name.clone();
            self.push_item(out, session, ItemKind::LeaseEnded { resource, token, how: how.clone() });
        }
        let (resource, how) = (name.clone(), how.clone());
        Self::event(out, Event::Ended { resource, token, session, label, when, how });
    }

    /// Empties the place of a lease.
    pub(super) fn vacate(&mut self, name: &ResourceName, token: Token) -> Option<Holder> {
        let resource = self.resources.get_mut(name)?;
        let position = resource.holders.iter().position(|holder| holder.token == token)?;
        let holder = resource.holders.remove(position);
        if let Some(session) = self.sessions.get_mut(&holder.session) {
            session.leases.remove(&(name.clone(), token));
        }
        Some(holder)
    }

    /// Keeps a place from everybody for `delay` from `from` on.
    pub(super) fn cool_down(&mut self, name: &ResourceName, slot: Option<u32>, from: LogTime, delay: Millis) {
        self.note_cool_down(name, from, delay);
        let until = from.plus(delay);
        if delay == Millis::ZERO || until < self.last_at {
            return;
        }
        if let Some(resource) = self.resources.get_mut(name) {
            resource.cooling.push(Cooling { slot, until });
            self.lower_due(name, until);
        }
    }

    /// Ends the leases on one resource whose sessions are over, and empties the places of revoked ones that nobody can still
    /// believe in.
    pub(super) fn clean_holders(&mut self, out: &mut Applied, name: &ResourceName) {
        let (at, drift) = (self.last_at, self.config.drift);
        let over: Vec<Token> = self.resources[name]
            .holders
            .iter()
            .filter(|holder| match holder.standing {
                Standing::Held => self.sessions[&holder.session].is_ended(at, drift),
                Standing::Revoked { .. } if planted(Bug::RenewalMovesRevoke) => {
                    self.sessions[&holder.session].is_overdue(at, drift)
                }
                Standing::Revoked { until, .. } => at > until,
            })
            .map(|holder| holder.token)
            .collect();
        for token in over {
            self.end_overdue(out, name, token);
        }
    }

    fn end_overdue(&mut self, out: &mut Applied, name: &ResourceName, token: Token) {
        let drift = self.config.drift;
        let Some(holder) = self.resources.get(name).and_then(|resource| resource.holder(token)) else {
            return;
        };
        let slot = holder.slot;
        match holder.standing {
            Standing::Held => {
                let session = &self.sessions[&holder.session];
                let (ended, policies) = (session.ended_after(drift), session.policies);
                let could_be_granted = session.overdue_after(drift).plus(policies.grace);
                let discovered =
                    if planted(Bug::CoolDownFromDiscovery) { self.last_at } else { LogTime::ZERO };
                self.end_lease(out, name, token, &Ending::Expired, ended);
                self.cool_down(name, slot, could_be_granted.max(discovered), policies.delay);
            }
            Standing::Revoked { until, delay, .. } => {
                self.vacate(name, token);
                self.cool_down(name, slot, until, delay);
            }
        }
    }

    /// Ends a session: its waits first, then its leases, as many as `budget` allows. What is left over is over all the same,
    /// because the session is; it is only not tidied up yet.
    pub(super) fn end_session(&mut self, out: &mut Applied, id: SessionId, how: &Ending, budget: &mut usize) {
        let Some(session) = self.sessions.get(&id) else { return };
        let mut touched: BTreeSet<ResourceName> = BTreeSet::new();
        let waits: Vec<CommandNumber> = session.waits.keys().copied().collect();
        let leases: Vec<(ResourceName, Token)> = session.leases.keys().take(*budget).cloned().collect();
        let (at, delay) = (self.last_at, session.policies.delay);
        for command in waits {
            if let Some(wait) = self.dequeue(id, command) {
                touched.extend(wait.requests.into_iter().map(|request| request.resource));
            }
        }
        for (name, token) in leases {
            *budget = budget.saturating_sub(1);
            let Some(holder) = self.resources.get(&name).and_then(|resource| resource.holder(token)) else {
                continue;
            };
            let slot = holder.slot;
            match (how, &holder.standing) {
                (Ending::Expired, _) => self.end_overdue(out, &name, token),
                (_, Standing::Revoked { delay, .. }) => {
                    let delay = *delay;
                    let holder = self.vacate(&name, token);
                    self.note_acknowledged(&name);
                    self.note_given_up(&name, holder.as_ref().filter(|_| how.is_voluntary()));
                    self.cool_down(&name, slot, at, delay);
                }
                (_, Standing::Held) => {
                    self.end_lease(out, &name, token, how, at);
                    if !how.is_voluntary() {
                        self.cool_down(&name, slot, at, delay);
                    }
                }
            }
            touched.insert(name);
        }
        if self.sessions[&id].leases.is_empty() {
            let session = self.sessions.remove(&id).expect("it was there a moment ago");
            self.index.remove_session(id, &session);
            Self::event(out, Event::SessionEnded { session: id });
        }
        self.serve(out, touched);
    }

    /// Ends every session. Whoever was over before ends as such.
    pub(super) fn end_everything(&mut self, out: &mut Applied, how: &Ending) {
        // Queues are emptied first, so that no lease passes to a session that is about to end too.
        let all: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in &all {
            let waits: Vec<CommandNumber> = self.sessions[id].waits.keys().copied().collect();
            for command in waits {
                if let Some(wait) = self.dequeue(*id, command) {
                    wait.requests.iter().for_each(|request| self.note_use(&request.resource));
                }
            }
        }
        for id in all {
            let mut budget = usize::MAX;
            let how = if self.living(id).is_err() { &Ending::Expired } else { how };
            self.end_session(out, id, how, &mut budget);
        }
    }

    /// The session that the holder's release passes the lease to: reserved, live and ready.
    fn ready_successor(&self, name: &ResourceName, holder: &Holder) -> Option<(SessionId, Ready)> {
        if self.stopped_by(name).is_some() {
            return None;
        }
        let offer = holder.offer.as_ref().filter(|offer| self.last_at <= offer.until)?;
        let ready = offer.ready.clone().filter(|ready| self.still_ready(offer.to, ready))?;
        let is_live = self.is_live(offer.to) || planted(Bug::HandoverToOverdue);
        (is_live && self.can_draw(1)).then_some((offer.to, ready))
    }

    /// Whether what a successor has accepted with is still there: a wait may have been cancelled or have ended since.
    pub(super) fn still_ready(&self, successor: SessionId, ready: &Ready) -> bool {
        let Some(session) = self.sessions.get(&successor) else { return false };
        match ready {
            Ready::Waiting(command) => session.waits.contains_key(command),
            // It may have got other leases since it accepted.
            Ready::Accepting { .. } => session.leases_wanted() < self.lease_limit(session),
        }
    }

    /// The offer of a lease is over: the successor that accepted without waiting is told that nothing comes of it.
    pub(super) fn end_offer(&mut self, out: &mut Applied, name: &ResourceName, token: Token) {
        let resource = self.resources.get_mut(name);
        let Some(offer) = resource.and_then(|r| r.holder_mut(token)).and_then(|holder| holder.offer.take())
        else {
            return;
        };
        if let Some(Ready::Accepting { command, .. }) = offer.ready
            && self.sessions.contains_key(&offer.to)
        {
            self.tell_wait_ended(out, offer.to, command, WaitEnding::OfferEnded);
        }
        self.push_item(out, offer.to, ItemKind::OfferEnded { resource: name.clone(), token });
    }

    pub(super) fn set_value(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        value: &Value,
    ) -> Result<Answer, Refusal> {
        self.settle(out, name);
        if !self.holds(id, name, token) {
            let ended = self.ending(name, token);
            return Err(Refusal::NotHolder { resource: name.clone(), token, ended });
        }
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        holder.expect("a lease that is held has its place").value = value.clone();
        let (resource, value) = (name.clone(), value.clone());
        Self::event(out, Event::ValueSet { resource, token, session: id, value });
        Ok(Answer::ValueSet)
    }
}
