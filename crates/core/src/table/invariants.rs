//! What must be true of a table after every entry. Tests and the simulator ask; so does whoever opens a snapshot.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use super::LeaseTable;
use super::resource::{Kind, Resource, Standing};
use crate::id::Token;
use crate::name::ResourceName;

impl LeaseTable {
    /// Checks everything that must be true, and says in words what is not.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check_invariants(&self) -> Result<(), String> {
        let mut tokens = BTreeSet::new();
        let waits: usize = self.sessions.values().map(|session| session.waits.len()).sum();
        if waits != self.index.waits {
            return Err(format!("{waits} waits stand in queues, and {} are counted", self.index.waits));
        }
        for (name, resource) in self.resources.iter() {
            self.check_gap(name, resource)?;
            self.check_holders(name, resource, &mut tokens)?;
            self.check_queue(name, resource)?;
            self.check_hint(name, resource)?;
        }
        for (id, session) in self.sessions.iter() {
            for (name, token) in session.leases.keys() {
                let holder = self.resources.get(name).and_then(|resource| resource.holder(*token));
                if holder.is_none_or(|holder| holder.session != *id) {
                    return Err(format!("session {id} believes in {name} {token}, the resource does not"));
                }
            }
            for (command, wait) in &session.waits {
                for request in &wait.requests {
                    let queue = self.resources.get(&request.resource).map(|resource| &resource.queue);
                    let waiting = queue.and_then(|queue| queue.get(&wait.place));
                    if waiting.is_none_or(|waiting| waiting.session != *id || waiting.command != *command) {
                        return Err(format!(
                            "wait {command} of session {id} is not in the queue of {}",
                            request.resource
                        ));
                    }
                }
            }
            if session.calls.as_ref().is_some_and(|calls| !calls.is_whole(session)) {
                return Err(format!("the numbered calls of session {id} contradict what it waits for"));
            }
            let first = session.last_item.get() + 1 - session.unseen.len() as u64;
            if session.unseen.iter().zip(first..).any(|(item, number)| item.number.get() != number) {
                return Err(format!("the unseen items of session {id} have a gap"));
            }
        }
        Ok(())
    }

    fn check_holders(
        &self,
        name: &ResourceName,
        resource: &Resource,
        tokens: &mut BTreeSet<Token>,
    ) -> Result<(), String> {
        for holder in &resource.holders {
            let known = self.sessions.get(&holder.session).map(|session| &session.leases);
            if !known.is_some_and(|leases| leases.contains_key(&(name.clone(), holder.token))) {
                return Err(format!(
                    "{name} is held with {} by a session that does not know it",
                    holder.token
                ));
            }
            if holder.token.get() > self.newest() || !tokens.insert(holder.token) {
                return Err(format!("token {} of {name} is above the counter or held twice", holder.token));
            }
        }
        let changing =
            resource.holders.iter().any(|h| matches!(h.standing, Standing::Revoked { blocks_all: true, .. }));
        let alone = resource.holders.iter().filter(|holder| !holder.shared).count();
        match resource.kind {
            Kind::Lock if !changing && alone > 0 && resource.holders.len() > 1 => {
                Err(format!("{name} has {} holders, and not all share", resource.holders.len()))
            }
            Kind::Slots(of) if !changing => {
                let slots: BTreeSet<_> = resource.holders.iter().map(|holder| holder.slot).collect();
                let good = resource.holders.iter().all(|holder| holder.slot.is_some_and(|slot| slot < of));
                if slots.len() < resource.holders.len() || !good {
                    return Err(format!("the slots of {name} are held twice or do not exist"));
                }
                Ok(())
            }
            Kind::Lock | Kind::Slots(_) => Ok(()),
        }
    }

    /// A gap is open where nobody acts, though somebody did since gaps are counted, and nowhere else.
    fn check_gap(&self, name: &ResourceName, resource: &Resource) -> Result<(), String> {
        let open = resource.gaps.as_ref().and_then(|gaps| gaps.open.as_ref());
        let acts = resource.holders.iter().any(super::resource::Holder::acts);
        match open {
            Some(_) if acts => Err(format!("{name} has a holder that acts, and a gap that lasts")),
            Some(gap) if gap.end > self.last_at => {
                Err(format!("the gap of {name} is settled beyond the present"))
            }
            _ => Ok(()),
        }
    }

    /// Nobody who could be served waits, unless the resource is due to be looked at anyway.
    fn check_queue(&self, name: &ResourceName, resource: &Resource) -> Result<(), String> {
        for waiting in resource.queue.values() {
            let waits = self.sessions.get(&waiting.session).map(|session| &session.waits);
            if !waits.is_some_and(|waits| waits.contains_key(&waiting.command)) {
                return Err(format!("{name} has a waiter without a wait"));
            }
        }
        if resource.due.is_some_and(|due| self.last_at > due) {
            return Ok(());
        }
        let Some(first) = self.first_live(resource) else { return Ok(()) };
        let wait = &self.sessions[&first.session].waits[&first.command];
        let servable = wait.requests.iter().all(|request| {
            let other = &self.resources[&request.resource];
            let settled = other.due.is_none_or(|due| self.last_at <= due);
            settled
                && self.first_live(other) == Some(first)
                && self.placement(&request.resource, request.mode).is_ok()
        });
        if servable && self.can_draw(wait.requests.len()) {
            return Err(format!("{name} is free and session {} waits for it", first.session));
        }
        Ok(())
    }

    fn check_hint(&self, name: &ResourceName, resource: &Resource) -> Result<(), String> {
        let hinted = resource.due.is_some_and(|due| self.index.resources_due.contains(&(due, name.clone())));
        if resource.due.is_some() && !hinted {
            return Err(format!("the hint of {name} is not in the index"));
        }
        match (self.true_due(resource), resource.due) {
            (Some(truth), None) => Err(format!("{name} is due after {truth}, and no hint says so")),
            (Some(truth), Some(hint)) if hint > truth => {
                Err(format!("{name} is due after {truth}, the hint says {hint}"))
            }
            _ => Ok(()),
        }
    }
}
