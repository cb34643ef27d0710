//! What a session can ask for: acquire, cancel, and the way to all others.

use super::serving::Place;
use super::*;
use leasehold_core::answer::{BadRequest, LimitedThing};
use leasehold_core::limits::MAX_UNIT;
use leasehold_core::{Acquire, Answer, Op, Unavailable};

impl Naive {
    pub(super) fn op(&mut self, id: SessionId, number: CommandNumber, op: &Op) -> Answer {
        let done = match op {
            Op::Acquire(acquire) => self.acquire(id, number, acquire),
            Op::Cancel { acquire } => self.cancel(id, *acquire),
            Op::SetValue { resource, token, value } => self.set_value(id, resource, *token, value),
            Op::WriteRegister { resource, token, key, value, with_lease } => {
                self.write_register(id, resource, *token, key, value.as_ref(), *with_lease)
            }
            Op::Offer(offer) => self.offer(id, offer),
            Op::Accept { resource, token, value } => self.accept(id, number, resource, *token, value),
            Op::Release { resource, token, drained } => self.release(id, resource, *token, *drained),
            Op::Close => unreachable!("a close has no answer"),
            Op::CancelCall { call } => self.cancel_call(id, *call),
            Op::SetReady { resource, token, ready } => self.set_ready(id, resource, *token, *ready),
            Op::SetDraining { resource, token, in_flight, within } => {
                self.show_draining(id, resource, *token, *in_flight, *within)
            }
        };
        done.unwrap_or_else(Answer::Refused)
    }

    fn set_value(
        &mut self,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        value: &Value,
    ) -> Result<Answer, Refusal> {
        self.serve([name.clone()]);
        self.held_mut(id, name, token)?.value = value.clone();
        let (resource, value) = (name.clone(), value.clone());
        self.out.events.push(Event::ValueSet { resource, token, session: id, value });
        Ok(Answer::ValueSet)
    }

    fn acquire(
        &mut self,
        id: SessionId,
        number: CommandNumber,
        acquire: &Acquire,
    ) -> Result<Answer, Refusal> {
        check_shape(acquire)?;
        self.check_limits(id, &acquire.requests)?;
        for request in &acquire.requests {
            self.serve([request.resource.clone()]);
        }
        for request in &acquire.requests {
            match self.name(&request.resource) {
                Some(Name { slots: Some(of), .. }) if slots_of(request.mode) != Some(*of) => {
                    return Err(Refusal::WrongKind { has: Mode::Slot { of: *of } });
                }
                Some(Name { slots: None, .. }) if slots_of(request.mode).is_some() => {
                    return Err(Refusal::WrongKind { has: Mode::Exclusive });
                }
                _ => {}
            }
        }
        let refusal = match self.places_for_newcomer(id, &acquire.requests) {
            Ok(places) => {
                let grants = self.grant_all(id, number, &acquire.requests, &places, &acquire.value);
                return Ok(Answer::Granted(grants));
            }
            Err(refusal) => refusal,
        };
        let Some(length) = acquire.wait.filter(|wait| *wait > Millis::ZERO) else { return Err(refusal) };
        let (limits, own) =
            (&self.config.limits, self.waits.iter().filter(|wait| wait.session == id).count());
        if own >= limits.waits_per_session {
            let limit = limits.waits_per_session;
            return Err(Refusal::LimitReached { what: LimitedThing::WaitsOfSession, limit });
        }
        let lengths = acquire.requests.iter().map(|request| self.queue(&request.resource).count());
        let ahead = lengths.max().unwrap_or(0);
        if ahead >= limits.waiters_per_resource {
            let limit = limits.waiters_per_resource;
            return Err(Refusal::LimitReached { what: LimitedThing::WaitersOfResource, limit });
        }
        for request in &acquire.requests {
            self.learn_name(&request.resource, request.mode);
        }
        let (requests, value) = (acquire.requests.clone(), acquire.value.clone());
        self.waits.push(Wait {
            session: id,
            command: number,
            requests,
            value,
            until: self.now + length.get(),
        });
        Ok(Answer::Queued { ahead: count(ahead) })
    }

    fn places_for_newcomer(&self, id: SessionId, requests: &[Request]) -> Result<Vec<Place>, Refusal> {
        if !self.is_live(id) {
            return Err(Refusal::SessionOverdue);
        }
        let mut places = Vec::new();
        for Request { resource, mode } in requests {
            let not_free = |why| Refusal::NotFree { resource: resource.clone(), why };
            places.push(self.place(resource, *mode).map_err(not_free)?);
            if self.first_live(resource).is_some() {
                return Err(not_free(Unavailable::Queue { waiting: count(self.queue(resource).count()) }));
            }
        }
        Ok(places)
    }

    /// What the session holds, has not acknowledged yet, or asks for.
    pub(super) fn leases_wanted(&self, id: SessionId) -> usize {
        let asked = self.waits.iter().filter(|wait| wait.session == id).map(|wait| wait.requests.len());
        self.leases.iter().filter(|lease| lease.session == id).count() + asked.sum::<usize>()
    }

    fn check_limits(&self, id: SessionId, requests: &[Request]) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if self.session(id).expect("it was admitted").unseen.len() >= limits.unseen {
            return Err(Refusal::TooManyUnseen { limit: limits.unseen });
        }
        if self.leases_wanted(id) + requests.len() > limits.leases_per_session {
            let limit = limits.leases_per_session;
            return Err(Refusal::LimitReached { what: LimitedThing::LeasesOfSession, limit });
        }
        let new = requests.iter().filter(|request| self.name(&request.resource).is_none()).count();
        if new > 0 && self.names.len() + new > limits.resources {
            return Err(Refusal::LimitReached { what: LimitedThing::Resources, limit: limits.resources });
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, id: SessionId, acquire: CommandNumber) -> Result<Answer, Refusal> {
        let is_it = |wait: &Wait| (wait.session, wait.command) == (id, acquire);
        let names: Vec<ResourceName> = match self.waits.iter().find(|wait| is_it(wait)) {
            Some(wait) => wait.requests.iter().map(|request| request.resource.clone()).collect(),
            None => Vec::new(),
        };
        for name in &names {
            self.serve([name.clone()]);
        }
        if self.waits.iter().any(is_it) {
            self.waits.retain(|wait| !is_it(wait));
            self.note_wait_over(id, acquire, Err(WaitEnding::Cancelled));
            self.serve(names);
            return Ok(Answer::Cancelled);
        }
        let brought =
            |lease: &&Lease| (lease.session, lease.command) == (id, acquire) && lease.revoked.is_none();
        let grant = |lease: &Lease| Grant {
            resource: lease.resource.clone(),
            token: lease.token,
            fence: lease.fence,
            slot: lease.slot,
        };
        let mut granted: Vec<Grant> = self.leases.iter().filter(brought).map(grant).collect();
        granted.sort_by(|one, other| (&one.resource, one.token).cmp(&(&other.resource, other.token)));
        if granted.is_empty() {
            Err(Refusal::NoSuchWait { acquire })
        } else {
            Ok(Answer::AlreadyGranted(granted))
        }
    }
}

fn check_shape(acquire: &Acquire) -> Result<(), Refusal> {
    let requests = &acquire.requests;
    let twice =
        |(at, request): (usize, &Request)| requests[..at].iter().any(|r| r.resource == request.resource);
    let bad_slots = |request: &Request| slots_of(request.mode).is_some_and(|of| of == 0 || of > 10_000);
    let what = if requests.is_empty() {
        BadRequest::NoResource
    } else if requests.len() > MAX_UNIT {
        BadRequest::TooManyResources
    } else if requests.iter().enumerate().any(twice) {
        BadRequest::NamedTwice
    } else if requests.iter().any(bad_slots) {
        BadRequest::BadSlots
    } else if acquire.wait.is_some_and(|wait| wait.get() > 86_400_000) {
        BadRequest::TooLong
    } else {
        return Ok(());
    };
    Err(Refusal::BadRequest { what })
}
