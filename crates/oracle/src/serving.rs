//! Who can be granted what, and serving the queues.

use std::collections::BTreeSet;

use super::*;
use leasehold_core::{Unavailable, WaitEnding};

/// Where a lease would stand.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) slot: Option<u32>,
    pub(super) fence: Option<Token>,
    pub(super) takes: Vec<Token>,
}

impl Naive {
    /// Where a lease would stand now, or what is in the way. Queues are not looked at.
    pub(super) fn place(&self, name: &ResourceName, mode: Mode) -> Result<Place, Unavailable> {
        if let Some(until) = self.nothing_granted_until.filter(|until| self.now <= *until) {
            return Err(Unavailable::RestoreWait { remaining: Millis::new(until - self.now) });
        }
        if let Some(token) = self.alarm(name) {
            return Err(Unavailable::Alarm { token });
        }
        let holders: Vec<&Lease> = self.leases_on(name).collect();
        let alien = holders.iter().find(|lease| lease.revoked.as_ref().is_some_and(|r| r.of_another_kind));
        if let Some(lease) = alien {
            return Err(self.why_not(lease));
        }
        let running: Vec<&Cooling> =
            self.cooling.iter().filter(|c| c.resource == *name && self.now <= c.until).collect();
        let cool_down = |until: Option<u64>| {
            until.map(|until| Unavailable::CoolDown { remaining: Millis::new(until - self.now) })
        };
        let Mode::Slot { of } = mode else {
            if let Some(why) = cool_down(running.iter().map(|cooling| cooling.until).max()) {
                return Err(why);
            }
            let staying: Vec<&&Lease> = holders.iter().filter(|lease| !self.can_be_taken(lease)).collect();
            let Some(first) = staying.first() else {
                return Ok(Place {
                    takes: holders.iter().map(|lease| lease.token).collect(),
                    ..Place::default()
                });
            };
            let in_the_way = match mode {
                Mode::Shared => staying.iter().find(|lease| !lease.shared || lease.revoked.is_some()),
                _ => Some(first),
            };
            return match in_the_way {
                Some(lease) => Err(self.why_not(lease)),
                None => Ok(Place { fence: Some(first.fence), ..Place::default() }),
            };
        };
        let whole = running.iter().filter(|cooling| cooling.slot.is_none());
        if let Some(why) = cool_down(whole.map(|cooling| cooling.until).max()) {
            return Err(why);
        }
        for slot in 0..of {
            let held = holders.iter().any(|lease| lease.slot == Some(slot));
            if !held && running.iter().all(|cooling| cooling.slot != Some(slot)) {
                return Ok(Place { slot: Some(slot), ..Place::default() });
            }
        }
        for slot in 0..of {
            if let Some(lease) = holders.iter().find(|l| l.slot == Some(slot) && self.can_be_taken(l)) {
                return Ok(Place { slot: Some(slot), takes: vec![lease.token], ..Place::default() });
            }
        }
        match holders.first() {
            Some(lease) => Err(self.why_not(lease)),
            None => {
                let first = running.iter().map(|cooling| cooling.until).min();
                Err(cool_down(first).expect("no slot is free and none is held, so all cool down"))
            }
        }
    }

    fn can_be_taken(&self, lease: &Lease) -> bool {
        let session = self.session(lease.session).expect("a lease has a session");
        lease.revoked.is_none() && self.now > self.takeable_after(session)
    }

    fn why_not(&self, lease: &Lease) -> Unavailable {
        let session = self.session(lease.session).expect("a lease has a session");
        let token = lease.token;
        match &lease.revoked {
            Some(revoked) => {
                let remaining = Millis::new(revoked.until.saturating_sub(self.now));
                Unavailable::RevokePending { token, remaining }
            }
            None => Unavailable::Held {
                holder: session.label.clone(),
                token,
                overdue: !self.is_live(lease.session),
            },
        }
    }

    pub(super) fn first_live<'a>(&'a self, name: &'a ResourceName) -> Option<&'a Wait> {
        self.queue(name).find(|wait| self.is_live(wait.session))
    }

    /// Ends what is over on these resources and serves whoever is first, until nobody can be served.
    pub(super) fn serve(&mut self, names: impl IntoIterator<Item = ResourceName>) {
        let mut work: BTreeSet<ResourceName> = names.into_iter().collect();
        let mut reached = work.clone();
        while let Some(name) = work.pop_first() {
            self.end_what_is_over(&name, &mut work);
            while let Some(wait) = self.first_live(&name).cloned() {
                for Request { resource, .. } in &wait.requests {
                    if reached.insert(resource.clone()) {
                        work.insert(resource.clone());
                    }
                    self.end_what_is_over(resource, &mut work);
                }
                let first_everywhere = wait.requests.iter().all(|request| {
                    let first = self.first_live(&request.resource).expect("at least this one waits");
                    (first.session, first.command) == (wait.session, wait.command)
                });
                let places: Result<Vec<Place>, Unavailable> =
                    wait.requests.iter().map(|request| self.place(&request.resource, request.mode)).collect();
                let (true, Ok(places)) = (first_everywhere, places) else { break };
                let (session, command) = (wait.session, wait.command);
                self.waits.retain(|other| (other.session, other.command) != (session, command));
                let grants = self.grant_all(session, command, &wait.requests, &places, &wait.value);
                self.note_wait_over(session, command, Ok(Answer::Granted(grants.clone())));
                self.push_item(session, ItemKind::WaitGranted { command, grants: grants.clone() });
                self.out.events.push(Event::WaitGranted { session, command, grants });
                work.extend(wait.requests.iter().map(|r| r.resource.clone()).filter(|other| *other != name));
            }
        }
        self.forget_unused();
    }

    pub(super) fn grant_all(
        &mut self,
        session: SessionId,
        command: CommandNumber,
        requests: &[Request],
        places: &[Place],
        value: &Value,
    ) -> Vec<Grant> {
        let mut grants = Vec::new();
        for (request, place) in requests.iter().zip(places) {
            let (token, resource) = (self.draw(), request.resource.clone());
            for taken in &place.takes {
                self.record_end(&resource, *taken, &Ending::Taken { by: token }, self.now);
                self.empty_place(&resource, *taken, None);
            }
            let (fence, slot) = (place.fence.unwrap_or(token), place.slot);
            self.learn_name(&resource, request.mode);
            self.names.iter_mut().filter(|known| known.name == resource).for_each(|known| known.grants += 1);
            self.leases.push(Lease {
                resource: resource.clone(),
                session,
                command,
                token,
                fence,
                slot,
                shared: request.mode == Mode::Shared,
                value: value.clone(),
                since: self.now,
                dark: self.dark,
                revoked: None,
                offer: None,
                asks: 0,
                draining: None,
                ready: None,
            });
            let grant = Grant { resource, token, fence, slot };
            self.out.events.push(Event::Granted {
                grant: grant.clone(),
                shared: request.mode == Mode::Shared,
                session,
                label: self.session(session).expect("who is granted has a session").label.clone(),
                value: value.clone(),
                command,
            });
            grants.push(grant);
        }
        grants
    }

    pub(super) fn learn_name(&mut self, name: &ResourceName, mode: Mode) {
        if self.name(name).is_none() {
            let known = Name { name: name.clone(), slots: slots_of(mode), grants: 0, idle_since: None };
            self.names.push(known);
        }
    }

    fn end_what_is_over(&mut self, name: &ResourceName, work: &mut BTreeSet<ResourceName>) {
        let now = self.now;
        self.cooling.retain(|cooling| cooling.resource != *name || now <= cooling.until);
        let over = |lease: &&Lease| match &lease.revoked {
            Some(revoked) => now > revoked.until,
            None => self.is_over(lease.session),
        };
        let over: Vec<Token> = self.leases_on(name).filter(over).map(|lease| lease.token).collect();
        for token in over {
            self.expire(name, token);
        }
        let stale = |lease: &&Lease| lease.offer.as_ref().is_some_and(|offer| now > offer.until);
        let stale: Vec<Token> = self.leases_on(name).filter(stale).map(|lease| lease.token).collect();
        for token in stale {
            self.end_offer(name, token);
        }
        let over = |wait: &&Wait| now > wait.until || self.is_over(wait.session);
        let over: Vec<Wait> = self.queue(name).filter(over).cloned().collect();
        for wait in over {
            self.end_wait(&wait, WaitEnding::TimedOut);
            work.extend(wait.requests.into_iter().map(|request| request.resource));
        }
    }

    pub(super) fn end_wait(&mut self, wait: &Wait, why: WaitEnding) {
        let (session, command) = (wait.session, wait.command);
        self.waits.retain(|other| (other.session, other.command) != (session, command));
        self.note_wait_over(session, command, Err(why));
        self.push_item(session, ItemKind::WaitEnded { command, why });
        self.out.events.push(Event::WaitEnded { session, command, why });
    }
}
