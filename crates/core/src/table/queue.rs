//! Queues: who waits, and serving them the moment something is free.
//!
//! A wait asks for one resource or for a unit of several. It stands in the queue of each of its resources at the same place,
//! and is granted when it is the first live one in all of them and all are free: nobody passes it. A waiter whose session is
//! overdue is passed over and keeps its place.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use super::gaps::Surroundings;
use super::resource::{Holder, Kind, Placement, Readiness, Resource, Standing, Waiting};
use crate::answer::{Applied, Ending, Event, Grant, ItemKind, WaitEnding};
use crate::command::{Mode, Request};
use crate::id::{CommandNumber, SessionId};
use crate::name::{ResourceName, Value};
use crate::planted::{Bug, planted};
use crate::time::{LogTime, Millis};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Wait {
    pub(super) place: u64,
    pub(super) requests: Vec<Request>,
    pub(super) value: Value,
    /// Past this point the wait is over.
    pub(super) deadline: LogTime,
    pub(super) since: LogTime,
}

impl LeaseTable {
    /// The first waiter of a resource whose session is not overdue.
    pub(super) fn first_live(&self, resource: &Resource) -> Option<Waiting> {
        let serves = |waiting: &Waiting| self.is_live(waiting.session) || planted(Bug::DeadWaiterGranted);
        resource.queue.values().copied().find(serves)
    }

    pub(super) fn is_live(&self, session: SessionId) -> bool {
        self.sessions
            .get(&session)
            .is_some_and(|session| !session.is_overdue(self.last_at, self.config.drift))
    }

    pub(super) fn enqueue(&mut self, id: SessionId, command: CommandNumber, wait: Wait) {
        let drift = self.config.drift;
        let session = &self.sessions[&id];
        let mut due = wait.deadline.min(session.ended_after(drift)).min(session.overdue_after(drift));
        if let Some(after) = self.granting_after.filter(|after| self.last_at <= *after) {
            due = due.min(after);
        }
        let (place, requests) = (wait.place, wait.requests.clone());
        // The session knows of the wait before any queue does: hints look from the queue to the wait.
        let session = self.sessions.get_mut(&id).expect("whoever waits has a session");
        session.waits.insert(command, wait);
        self.index.waits += 1;
        for request in &requests {
            let name = &request.resource;
            let resource = self.resources.get_or_insert_with(name, || Resource::new(Kind::of(request.mode)));
            let was_empty = resource.queue.is_empty();
            resource.queue.insert(place, Waiting { session: id, command });
            self.lower_due(name, due);
            if was_empty {
                // Holders become takeable only now that somebody waits.
                self.refresh_due(name);
            }
            self.note_use(name);
        }
    }

    /// Takes a wait out of all its queues and names them.
    pub(super) fn dequeue(&mut self, id: SessionId, command: CommandNumber) -> Option<Wait> {
        let wait = self.sessions.get_mut(&id)?.waits.remove(&command)?;
        self.index.waits -= 1;
        for request in &wait.requests {
            if let Some(resource) = self.resources.get_mut(&request.resource) {
                resource.queue.remove(&wait.place);
            }
        }
        Some(wait)
    }

    /// Ends a wait without a lease, and says so.
    pub(super) fn end_wait(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        command: CommandNumber,
        why: WaitEnding,
    ) -> Vec<ResourceName> {
        let Some(wait) = self.dequeue(id, command) else { return Vec::new() };
        self.tell_wait_ended(out, id, command, why);
        wait.requests.into_iter().map(|request| request.resource).collect()
    }

    pub(super) fn tell_wait_ended(
        &mut self,
        out: &mut Applied,
        session: SessionId,
        command: CommandNumber,
        why: WaitEnding,
    ) {
        self.note_wait_ended(session, command, why);
        self.push_item(out, session, ItemKind::WaitEnded { command, why });
        Self::event(out, Event::WaitEnded { session, command, why });
    }

    /// Brings a resource up to the present point of the log: what is over ends, and whoever is next is served.
    pub(super) fn settle(&mut self, out: &mut Applied, name: &ResourceName) {
        let due = if planted(Bug::SettlingByHints) { self.is_due(name) } else { self.reaches_due(name) };
        if due {
            self.serve(out, [name.clone()]);
        }
    }

    /// Whether serving this resource may find something that is over, on it or on a resource that its first live waiter wants
    /// as well. How far serving reaches must not depend on hints: tables that differ in nothing else must stay equal.
    fn reaches_due(&self, name: &ResourceName) -> bool {
        let Some(resource) = self.resources.get(name) else { return false };
        if resource.queue.is_empty() {
            // Where nobody waits, it reaches no further.
            return self.is_resource_due(resource);
        }
        let mut work = alloc::vec![name];
        let mut reached = BTreeSet::new();
        while let Some(name) = work.pop() {
            if self.is_due(name) {
                return true;
            }
            let next = self.resources.get(name).and_then(|resource| self.first_live(resource));
            if let Some(next) = next.filter(|_| reached.insert(name)) {
                let requests = &self.sessions[&next.session].waits[&next.command].requests;
                work.extend(requests.iter().map(|request| &request.resource).filter(|other| *other != name));
            }
        }
        false
    }

    fn is_due(&self, name: &ResourceName) -> bool {
        self.resources.get(name).is_some_and(|resource| self.is_resource_due(resource))
    }

    fn is_resource_due(&self, resource: &Resource) -> bool {
        let (at, drift) = (self.last_at, self.config.drift);
        resource.due.is_some_and(|due| at > due)
            || resource.holders.iter().any(|holder| self.sessions[&holder.session].is_ended(at, drift))
    }

    /// Serves the queue of one resource. Nearly always nobody waits and nothing is over, and then there is nothing to gather.
    pub(super) fn serve_one(&mut self, out: &mut Applied, name: &ResourceName) {
        let resource = self.resources.get(name);
        if resource.is_none_or(|resource| resource.queue.is_empty() && !self.is_resource_due(resource)) {
            self.note_use(name);
        } else {
            self.serve(out, [name.clone()]);
        }
    }

    /// Serves the queues of these resources, and of all others that this touches, until nobody can be served.
    pub(super) fn serve(&mut self, out: &mut Applied, names: impl IntoIterator<Item = ResourceName>) {
        let mut work: BTreeSet<ResourceName> = names.into_iter().collect();
        let mut touched = work.clone();
        let backwards = self.serves_backwards();
        while let Some(name) = if backwards { work.pop_last() } else { work.pop_first() } {
            touched.insert(name.clone());
            self.clean(out, &name, &mut work);
            while let Some(next) = self.resources.get(&name).and_then(|resource| self.first_live(resource)) {
                let requests = self.sessions[&next.session].waits[&next.command].requests.clone();
                for request in &requests {
                    self.clean(out, &request.resource, &mut work);
                    if touched.insert(request.resource.clone()) {
                        work.insert(request.resource.clone());
                    }
                }
                let Some(placements) = self.unit_placements(next, &requests) else { break };
                let wait = self.dequeue(next.session, next.command).expect("it was first in its queues");
                let grants = self.grant_unit(out, next, &requests, &placements, &wait.value);
                let (session, command) = (next.session, next.command);
                self.note_granted(session, command, &grants);
                self.push_item(out, session, ItemKind::WaitGranted { command, grants: grants.clone() });
                Self::event(out, Event::WaitGranted { session, command, grants });
                work.extend(
                    requests.into_iter().map(|request| request.resource).filter(|other| *other != name),
                );
            }
        }
        for name in touched {
            self.note_use(&name);
        }
    }

    /// Where each lease of a unit would stand, if all can be granted now and nobody live stands before it.
    fn unit_placements(&self, unit: Waiting, requests: &[Request]) -> Option<Vec<Placement>> {
        let is_live = self.is_live(unit.session) || planted(Bug::DeadWaiterGranted);
        if !self.can_draw(requests.len()) || !is_live {
            return None;
        }
        let place = |request: &Request| {
            let resource = self.resources.get(&request.resource)?;
            let passes = planted(Bug::UnitFirstInOneQueue) && requests.len() > 1;
            if self.first_live(resource) != Some(unit) && !passes {
                return None;
            }
            self.placement(&request.resource, request.mode).ok()
        };
        requests.iter().map(place).collect()
    }

    /// Grants a unit at the places found for it.
    pub(super) fn grant_unit(
        &mut self,
        out: &mut Applied,
        to: Waiting,
        requests: &[Request],
        placements: &[Placement],
        value: &Value,
    ) -> Vec<Grant> {
        let pairs = requests.iter().zip(placements);
        pairs.map(|(request, placement)| self.grant(out, to, request, placement, value)).collect()
    }

    fn grant(
        &mut self,
        out: &mut Applied,
        to: Waiting,
        request: &Request,
        placement: &Placement,
        value: &Value,
    ) -> Grant {
        let token = self.draw().expect("whoever grants has made sure that there are tokens left");
        let name = &request.resource;
        let token = self.wrong_token(out, name).unwrap_or(token);
        for taken in &placement.takes {
            self.end_lease(out, name, *taken, &Ending::Taken { by: token }, self.last_at);
        }
        let (drift, outages) = (self.config.drift, self.outages_right_now());
        let fence = placement.group.filter(|_| !planted(Bug::SharedFenceOwn)).unwrap_or(token);
        let grant = Grant { resource: name.clone(), token, fence, slot: placement.slot };
        let session = self.sessions.get_mut(&to.session).expect("whoever is granted has a session");
        session.leases.insert((name.clone(), token), to.command);
        let due = session.ended_after(drift).min(session.takeable_after(drift));
        let resource = self.resources.get_or_insert_with(name, || Resource::new(Kind::of(request.mode)));
        // Nothing is granted while an alarm stands.
        let around = Surroundings {
            at: self.last_at,
            restored: self.granting_after,
            stopped: false,
            outages: &self.outages,
        };
        resource.note_grant(out, name, token, &around);
        resource.transitions += 1;
        // Nearly all have one holder, and room for four would be most of what a lease costs.
        if resource.holders.capacity() == 0 {
            resource.holders.reserve_exact(1);
        }
        resource.holders.push(Holder {
            session: to.session,
            token,
            fence,
            slot: placement.slot,
            shared: request.mode == Mode::Shared,
            value: value.clone(),
            since: self.last_at,
            command: to.command,
            standing: Standing::Held,
            offer: None,
            asks: 0,
            draining: None,
            readiness: Readiness::Unsaid,
            outages,
        });
        if !resource.queue.is_empty() {
            self.lower_due(name, due);
        }
        self.note_use(name);
        self.counters.grants += 1;
        let event = Event::Granted {
            grant: grant.clone(),
            shared: request.mode == Mode::Shared,
            session: to.session,
            label: self.sessions[&to.session].label.clone(),
            value: value.clone(),
            command: to.command,
        };
        Self::event(out, event);
        grant
    }

    /// Ends what is over on one resource, without serving anybody. Resources that may be served by this join `work`.
    fn clean(&mut self, out: &mut Applied, name: &ResourceName, work: &mut BTreeSet<ResourceName>) {
        if !self.is_due(name) {
            return;
        }
        let (at, drift) = (self.last_at, self.config.drift);
        let resource = self.resources.get_mut(name).expect("only a known resource is due");
        resource.looked_at = at;
        resource.cooling.retain(|cooling| at <= cooling.until);
        self.clean_holders(out, name);
        self.clean_offers(out, name);
        let resource = &self.resources[name];
        let over: Vec<Waiting> = resource
            .queue
            .values()
            .filter(|waiting| {
                let session = &self.sessions[&waiting.session];
                let late = Millis::new(u64::from(planted(Bug::WaitEndsLate)));
                session.is_ended(at, drift) || at > session.waits[&waiting.command].deadline.plus(late)
            })
            .copied()
            .collect();
        for Waiting { session, command } in over {
            work.extend(self.end_wait(out, session, command, WaitEnding::TimedOut));
        }
        self.refresh_due(name);
    }
}
