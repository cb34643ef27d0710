//! Acquire and cancel.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::LeaseTable;
use super::queue::Wait;
use super::resource::{Kind, Placement, Resource, Waiting};
use crate::answer::{Answer, Applied, BadRequest, Grant, LimitedThing, Refusal, Unavailable, WaitEnding};
use crate::command::{Acquire, Mode, Request};
use crate::id::{CommandNumber, SessionId};
use crate::limits::{MAX_UNIT, MAX_WAIT};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::Millis;

impl LeaseTable {
    pub(super) fn acquire(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        number: CommandNumber,
        acquire: &Acquire,
    ) -> Result<Answer, Refusal> {
        check_shape(acquire)?;
        self.check_limits(id, &acquire.requests)?;
        for request in &acquire.requests {
            self.settle(out, &request.resource);
        }
        for request in &acquire.requests {
            self.check_kind(request)?;
        }
        let wait = acquire.wait.filter(|wait| *wait > Millis::ZERO);
        if !self.is_live(id) && wait.is_none() {
            return Err(Refusal::SessionOverdue);
        }
        let refusal = match self.place_newcomer(id, &acquire.requests) {
            Ok(placements) => {
                let to = Waiting { session: id, command: number };
                return Ok(Answer::Granted(self.grant_unit(
                    out,
                    to,
                    &acquire.requests,
                    &placements,
                    &acquire.value,
                )));
            }
            Err(refusal) => refusal,
        };
        match wait {
            Some(length) => self.join_queues(id, number, acquire, length),
            None => Err(refusal),
        }
    }

    /// Where a newcomer's leases would stand. Whoever waits and lives goes first.
    fn place_newcomer(&self, id: SessionId, requests: &[Request]) -> Result<Vec<Placement>, Refusal> {
        if !self.can_draw(requests.len()) {
            return Err(Refusal::TokensExhausted);
        }
        if !self.is_live(id) {
            return Err(Refusal::SessionOverdue);
        }
        let place = |request: &Request| {
            let not_free = |why| Refusal::NotFree { resource: request.resource.clone(), why };
            let placement = self.placement(&request.resource, request.mode).map_err(not_free)?;
            let resource = self.resources.get(&request.resource);
            let goes_first = |resource: &&Resource| self.first_live(resource).is_some();
            let passes = planted(Bug::NewcomerFirst)
                || (planted(Bug::SharedOvertakes) && request.mode == Mode::Shared)
                || (planted(Bug::UnitPassedByNewcomer) && resource.is_some_and(|r| self.unit_is_first(r)));
            match resource.filter(goes_first).filter(|_| !passes) {
                Some(resource) => Err(not_free(Unavailable::Queue { waiting: count(resource.queue.len()) })),
                None => Ok(placement),
            }
        };
        requests.iter().map(place).collect()
    }

    fn join_queues(
        &mut self,
        id: SessionId,
        number: CommandNumber,
        acquire: &Acquire,
        length: Millis,
    ) -> Result<Answer, Refusal> {
        let limits = &self.config.limits;
        if self.sessions[&id].waits.len() >= limits.waits_per_session {
            let what = LimitedThing::WaitsOfSession;
            return Err(Refusal::LimitReached { what, limit: limits.waits_per_session });
        }
        let waiting = |request: &Request| self.resources.get(&request.resource).map_or(0, |r| r.queue.len());
        let ahead = acquire.requests.iter().map(waiting).max().unwrap_or(0);
        if ahead >= limits.waiters_per_resource {
            let what = LimitedThing::WaitersOfResource;
            return Err(Refusal::LimitReached { what, limit: limits.waiters_per_resource });
        }
        let wait = Wait {
            place: self.next_place,
            requests: acquire.requests.clone(),
            value: acquire.value.clone(),
            deadline: self.last_at.plus(length),
            since: self.last_at,
        };
        self.next_place += 1;
        self.enqueue(id, number, wait);
        Ok(Answer::Queued { ahead: count(ahead) })
    }

    fn check_limits(&self, id: SessionId, requests: &[Request]) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        let session = &self.sessions[&id];
        if session.unseen.len() >= limits.unseen {
            return Err(Refusal::TooManyUnseen { limit: limits.unseen });
        }
        if session.leases_wanted() + requests.len() > self.lease_limit(session) {
            let what = LimitedThing::LeasesOfSession;
            return Err(Refusal::LimitReached { what, limit: self.lease_limit(session) });
        }
        let new = requests.iter().filter(|request| !self.resources.contains_key(&request.resource)).count();
        if new > 0 && self.resources.len() + new > limits.resources {
            return Err(Refusal::LimitReached { what: LimitedThing::Resources, limit: limits.resources });
        }
        Ok(())
    }

    fn check_kind(&self, request: &Request) -> Result<(), Refusal> {
        match self.resources.get(&request.resource) {
            Some(resource) if resource.kind != Kind::of(request.mode) => {
                Err(Refusal::WrongKind { has: resource.kind.mode() })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn cancel(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        acquire: CommandNumber,
    ) -> Result<Answer, Refusal> {
        // The wait may be due: then its ending, or its grant, comes first.
        let names: Vec<ResourceName> = match self.sessions[&id].waits.get(&acquire) {
            Some(wait) => wait.requests.iter().map(|request| request.resource.clone()).collect(),
            None => Vec::new(),
        };
        for name in &names {
            self.settle(out, name);
        }
        if self.dequeue(id, acquire).is_some() {
            self.note_wait_ended(id, acquire, WaitEnding::Cancelled);
            if !planted(Bug::CancelServesNobody) {
                self.serve(out, names);
            }
            return Ok(Answer::Cancelled);
        }
        let granted = self.granted_by(id, acquire);
        if granted.is_empty() {
            Err(Refusal::NoSuchWait { acquire })
        } else {
            Ok(Answer::AlreadyGranted(granted))
        }
    }

    /// The leases that this acquire brought and that are still held.
    fn granted_by(&self, id: SessionId, acquire: CommandNumber) -> Vec<Grant> {
        let leases = self.sessions[&id].leases.iter().filter(|(_, command)| **command == acquire);
        let grant = |((resource, token), _): (&(ResourceName, crate::id::Token), _)| {
            let holder = self.resources.get(resource)?.holder(*token)?;
            let held = self.holds(id, resource, *token);
            held.then(|| Grant {
                resource: resource.clone(),
                token: *token,
                fence: holder.fence,
                slot: holder.slot,
            })
        };
        leases.filter_map(grant).collect()
    }
}

fn check_shape(acquire: &Acquire) -> Result<(), Refusal> {
    let bad = |what| Err(Refusal::BadRequest { what });
    if acquire.requests.is_empty() {
        return bad(BadRequest::NoResource);
    }
    if acquire.requests.len() > MAX_UNIT {
        return bad(BadRequest::TooManyResources);
    }
    if let [_, _, ..] = acquire.requests.as_slice() {
        let names = acquire.requests.iter().map(|request| &request.resource);
        if names.collect::<BTreeSet<&ResourceName>>().len() < acquire.requests.len() {
            return bad(BadRequest::NamedTwice);
        }
    }
    if acquire.requests.iter().any(|request| !request.mode.is_valid()) {
        return bad(BadRequest::BadSlots);
    }
    if acquire.wait.is_some_and(|wait| wait > MAX_WAIT) {
        return bad(BadRequest::TooLong);
    }
    Ok(())
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
