//! Handover: offer, accept, and the swap at the holder's release.

use super::serving::Place;
use super::*;
use leasehold_core::answer::{BadRequest, LimitedThing};
use leasehold_core::{Answer, Offer, Successor};

impl Naive {
    pub(super) fn offer(&mut self, id: SessionId, offer: &Offer) -> Result<Answer, Refusal> {
        let (name, token) = (&offer.resource, offer.token);
        if offer.length.get() > 86_400_000 {
            return Err(Refusal::BadRequest { what: BadRequest::TooLong });
        }
        self.serve([name.clone()]);
        self.held_mut(id, name, token)?;
        let found = self.find_successor(name, &offer.to);
        let Some(to) = found.filter(|to| *to != id) else { return Err(Refusal::NoSuchSuccessor) };
        self.end_offer(name, token);
        let until = self.now + offer.length.get();
        let from = self.session(id).expect("whoever offers lives").label.clone();
        self.lease_mut(name, token).expect("it is held").offer =
            Some(OfferMade { to, until, ready: None, told: false });
        let (resource, length) = (name.clone(), offer.length);
        self.push_item(to, ItemKind::Offered { resource, token, from, length });
        Ok(Answer::Offered { to })
    }

    pub(super) fn show_draining(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        in_flight: u32,
        within: Millis,
    ) -> Result<Answer, Refusal> {
        if self.version < 2 {
            return Err(Refusal::NotYetInUse);
        }
        if within.get() > 86_400_000 {
            return Err(Refusal::BadRequest { what: BadRequest::TooLong });
        }
        self.serve([name.clone()]);
        let until = self.now + within.get();
        self.held_mut(id, name, token)?.draining = Some((in_flight, until));
        let resource = name.clone();
        self.out.events.push(Event::DrainingShown { resource, token, session: id, in_flight, within });
        Ok(Answer::DrainingShown)
    }

    pub(super) fn set_ready(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        ready: bool,
    ) -> Result<Answer, Refusal> {
        if self.version < 3 {
            return Err(Refusal::NotYetInUse);
        }
        self.serve([name.clone()]);
        let (ttl, now) = (self.session(id).expect("whoever asks lives").ttl.get(), self.now);
        let lease = self.held_mut(id, name, token)?;
        let before = lease.ready;
        lease.ready = match (before, ready) {
            (None, false) if now - lease.since <= ttl => Some(None),
            (None | Some(None), true) => Some(Some(now - lease.since)),
            _ => before,
        };
        if lease.ready != before {
            let resource = name.clone();
            self.out.events.push(Event::ReadySet { resource, token, session: id, ready });
        }
        Ok(Answer::ReadySet)
    }

    fn find_successor(&self, name: &ResourceName, wanted: &Successor) -> Option<SessionId> {
        let mut live = self.queue(name).map(|wait| wait.session).filter(|waiter| self.is_live(*waiter));
        match wanted {
            Successor::FirstWaiter => live.next(),
            Successor::Labelled(label) => {
                live.find(|waiter| self.session(*waiter).is_some_and(|session| session.label == *label))
            }
            Successor::Session(named) => Some(*named).filter(|named| self.is_live(*named)),
        }
    }

    pub(super) fn accept(
        &mut self,
        id: SessionId,
        number: CommandNumber,
        name: &ResourceName,
        token: Token,
        value: &Value,
    ) -> Result<Answer, Refusal> {
        self.serve([name.clone()]);
        let no_offer = Refusal::NoOffer { resource: name.clone() };
        let Some(lease) = self.lease(name, token).cloned() else { return Err(no_offer) };
        let Some(offer) = lease.offer.as_ref().filter(|offer| offer.to == id) else { return Err(no_offer) };
        if let Some(ready) = offer.ready.as_ref().filter(|ready| self.still_ready(id, ready)) {
            return Ok(Answer::Accepted { wait: ready.command });
        }
        let mode = self.mode_of(&lease);
        let wanted = Request { resource: name.clone(), mode };
        let mut own = self.waits.iter().filter(|wait| wait.session == id);
        let ready = match own.find(|wait| wait.requests == [wanted.clone()]) {
            Some(wait) => Ready { command: wait.command, own_value: None },
            None => {
                let limit = self.config.limits.leases_per_session;
                if self.leases_wanted(id) >= limit {
                    return Err(Refusal::LimitReached { what: LimitedThing::LeasesOfSession, limit });
                }
                Ready { command: number, own_value: Some(value.clone()) }
            }
        };
        let wait = ready.command;
        let tells = self.version >= 2;
        let lease = self.lease_mut(name, token).expect("it was just found");
        let (holder, offer) = (lease.session, lease.offer.as_mut().expect("it was just found"));
        offer.ready = Some(ready);
        let tell = tells && !offer.told;
        offer.told |= tells;
        if tell {
            let (resource, label) =
                (name.clone(), self.session(id).expect("whoever accepts lives").label.clone());
            self.push_item(holder, ItemKind::OfferAccepted { resource, token, by: id, label });
        }
        Ok(Answer::Accepted { wait })
    }

    fn mode_of(&self, lease: &Lease) -> Mode {
        match (self.name(&lease.resource).and_then(|known| known.slots), lease.shared) {
            (Some(of), _) => Mode::Slot { of },
            (None, true) => Mode::Shared,
            (None, false) => Mode::Exclusive,
        }
    }

    pub fn still_ready(&self, id: SessionId, ready: &Ready) -> bool {
        let waits = self.waits.iter().any(|wait| (wait.session, wait.command) == (id, ready.command));
        let room = self.leases_wanted(id) < self.config.limits.leases_per_session;
        if ready.own_value.is_some() { room } else { waits }
    }

    pub(super) fn successor_at_release(&self, lease: &Lease) -> Option<(SessionId, Ready)> {
        let offer = lease.offer.as_ref().filter(|offer| self.now <= offer.until)?;
        let ready = offer.ready.clone().filter(|ready| self.still_ready(offer.to, ready))?;
        if self.alarm(&lease.resource).is_some() {
            return None;
        }
        self.is_live(offer.to).then_some((offer.to, ready))
    }

    pub(super) fn pass_on(&mut self, lease: &Lease, to: SessionId, ready: Ready) {
        let (name, command) = (&lease.resource, ready.command);
        let request = Request { resource: name.clone(), mode: self.mode_of(lease) };
        self.lease_mut(name, lease.token).expect("it is released now").offer = None;
        self.record_end(name, lease.token, &Ending::HandedOver { to }, self.now);
        self.empty_place(name, lease.token, None);
        let value = ready.own_value.unwrap_or_else(|| {
            let waits = |wait: &Wait| (wait.session, wait.command) == (to, command);
            let place = self.waits.iter().position(waits).expect("it is still waiting");
            self.waits.remove(place).value
        });
        let in_group = lease.shared && self.leases_on(name).next().is_some();
        let place = Place { slot: lease.slot, fence: in_group.then_some(lease.fence), takes: Vec::new() };
        let grants = self.grant_all(to, command, &[request], &[place], &value);
        self.note_wait_over(to, command, Ok(Answer::Granted(grants.clone())));
        self.push_item(to, ItemKind::WaitGranted { command, grants: grants.clone() });
        self.out.events.push(Event::WaitGranted { session: to, command, grants });
    }
}
