//! Handover: an offer reserves, an accept marks the successor ready, and only the holder's release swaps.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::LeaseTable;
use super::resource::{OfferMade, Placement, Ready, Resource, Waiting};
use crate::answer::{Answer, Applied, BadRequest, Ending, Event, ItemKind, LimitedThing, Refusal};
use crate::command::{Mode, Offer, Request, Successor};
use crate::id::{CommandNumber, SessionId, Token};
use crate::limits::MAX_WAIT;
use crate::name::{ResourceName, Value};
use crate::planted::{Bug, planted};

impl LeaseTable {
    pub(super) fn offer(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        offer: &Offer,
    ) -> Result<Answer, Refusal> {
        let Offer { resource: name, token, to, length } = offer;
        if *length > MAX_WAIT {
            return Err(Refusal::BadRequest { what: BadRequest::TooLong });
        }
        self.settle(out, name);
        if !self.holds(id, name, *token) {
            let ended = self.ending(name, *token);
            return Err(Refusal::NotHolder { resource: name.clone(), token: *token, ended });
        }
        let resource = &self.resources[name];
        let to = self.find_successor(resource, to).filter(|to| *to != id).ok_or(Refusal::NoSuchSuccessor)?;
        self.end_offer(out, name, *token);
        let until = self.last_at.plus(*length);
        let from = self.sessions[&id].label.clone();
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(*token));
        holder.expect("a lease that is held has its place").offer =
            Some(Box::new(OfferMade { to, until, ready: None, told: false }));
        self.lower_due(name, until);
        let (resource, token, length) = (name.clone(), *token, *length);
        self.push_item(out, to, ItemKind::Offered { resource, token, from, length });
        Ok(Answer::Offered { to })
    }

    fn find_successor(&self, resource: &Resource, wanted: &Successor) -> Option<SessionId> {
        let mut live =
            resource.queue.values().map(|waiting| waiting.session).filter(|id| self.takes_offers(*id));
        match wanted {
            Successor::FirstWaiter => live.next(),
            Successor::Labelled(label) => live.find(|id| self.sessions[id].label == *label),
            Successor::Session(id) => self.takes_offers(*id).then_some(*id),
        }
    }

    /// Whether a session can be a successor: it lives, and its stream has room, so that others cannot fill it with offers.
    fn takes_offers(&self, id: SessionId) -> bool {
        self.is_live(id) && self.sessions[&id].unseen.len() < self.config.limits.unseen
    }

    pub(super) fn accept(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        number: CommandNumber,
        name: &ResourceName,
        token: Token,
        value: &Value,
    ) -> Result<Answer, Refusal> {
        self.settle(out, name);
        let no_offer = || Refusal::NoOffer { resource: name.clone() };
        let holder =
            self.resources.get(name).and_then(|resource| resource.holder(token)).ok_or_else(no_offer)?;
        let offer = holder
            .offer
            .as_ref()
            .filter(|offer| offer.to == id || planted(Bug::OfferAcceptedByOther))
            .ok_or_else(no_offer)?;
        if let Some(ready) = offer.ready.as_ref().filter(|ready| self.still_ready(id, ready)) {
            return Ok(Answer::Accepted { wait: ready.command() });
        }
        let mode = self.mode_of_place(name, holder.shared);
        let session = &self.sessions[&id];
        let own_wait = session.waits.iter().find(|(_, wait)| {
            wait.requests.len() == 1 && wait.requests[0].resource == *name && wait.requests[0].mode == mode
        });
        let ready = match own_wait {
            Some((command, _)) => Ready::Waiting(*command),
            None => {
                let limit = self.lease_limit(session);
                if session.leases_wanted() >= limit {
                    return Err(Refusal::LimitReached { what: LimitedThing::LeasesOfSession, limit });
                }
                Ready::Accepting { command: number, value: value.clone() }
            }
        };
        let wait = ready.command();
        let offer = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        let offer = offer.and_then(|holder| holder.offer.as_mut());
        offer.expect("the offer was there a moment ago").ready = Some(ready);
        self.tell_accepted(out, id, name, token);
        Ok(Answer::Accepted { wait })
    }

    /// The mode in which the place of a holder is passed on.
    fn mode_of_place(&self, name: &ResourceName, shared: bool) -> Mode {
        match self.resources[name].kind.mode() {
            Mode::Slot { of } => Mode::Slot { of },
            Mode::Exclusive | Mode::Shared => {
                if shared {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                }
            }
        }
    }

    /// Passes the holder's place to its successor, past the queue.
    pub(super) fn swap(
        &mut self,
        out: &mut Applied,
        name: &ResourceName,
        token: Token,
        to: (SessionId, Ready),
    ) {
        let (session, ready) = to;
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        let holder = holder.expect("whoever releases has its place");
        holder.offer = None;
        let (shared, slot, fence) = (holder.shared, holder.slot, holder.fence);
        let mode = self.mode_of_place(name, shared);
        self.end_lease(out, name, token, &Ending::HandedOver { to: session }, self.last_at);
        let (command, value) = match ready {
            Ready::Waiting(command) => {
                let wait = self.dequeue(session, command).expect("it was still waiting a moment ago");
                (command, wait.value)
            }
            Ready::Accepting { command, value } => (command, value),
        };
        // A shared place stays in its group only while others of the group remain.
        let others_remain = self.resources.get(name).is_some_and(|resource| !resource.holders.is_empty());
        let group = (shared && others_remain).then_some(fence);
        let placement = Placement { slot, group, takes: Vec::new() };
        let request = Request { resource: name.clone(), mode };
        let to = Waiting { session, command };
        let grants = self.grant_unit(out, to, &[request], &[placement], &value);
        self.note_granted(session, command, &grants);
        self.push_item(out, session, ItemKind::WaitGranted { command, grants: grants.clone() });
        Self::event(out, Event::WaitGranted { session, command, grants });
    }

    /// Ends the offers on a resource whose time is over. A successor that is gone ends none: it is not live at the release.
    pub(super) fn clean_offers(&mut self, out: &mut Applied, name: &ResourceName) {
        let over: Vec<Token> = self.resources[name]
            .holders
            .iter()
            .filter(|holder| holder.offer.as_ref().is_some_and(|offer| self.last_at > offer.until))
            .map(|holder| holder.token)
            .collect();
        for token in over {
            self.end_offer(out, name, token);
        }
    }
}
