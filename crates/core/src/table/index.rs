//! Derived data: finding sessions by nonce, and hints of what may be due. Rebuilt after a snapshot; part of no verdict.

use alloc::collections::{BTreeMap, BTreeSet};

use super::LeaseTable;
use super::idle::Idle;
use super::resource::{Resource, Standing};
use super::session::Session;
use crate::id::{Nonce, SessionId};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::{Drift, LogTime, Millis};

#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) nonces: BTreeMap<Nonce, SessionId>,
    /// Past the point, the session may be over. Renewals do not move it; looking at it does.
    pub(super) sessions_due: BTreeSet<(LogTime, SessionId)>,
    /// Past the point, something on the resource may have ended.
    pub(super) resources_due: BTreeSet<(LogTime, ResourceName)>,
    /// Resources that are only remembered, the longest idle first. Exact.
    pub(super) idle: Idle,
    /// Names with an open gap that this entry has forgotten.
    pub(super) forgotten: alloc::vec::Vec<ResourceName>,
    /// Waits in queues; a unit is one. Exact.
    pub(super) waits: usize,
    /// How many sessions have which ttl: the leader moves time at a fraction of the smallest.
    ttls: BTreeMap<Millis, usize>,
}

impl Index {
    pub(super) fn add_session(&mut self, id: SessionId, session: &Session, drift: Drift) {
        self.nonces.insert(session.nonce, id);
        self.sessions_due.insert((session.ended_after(drift), id));
        *self.ttls.entry(session.ttl).or_default() += 1;
    }

    pub(super) fn remove_session(&mut self, id: SessionId, session: &Session) {
        if self.nonces.get(&session.nonce) == Some(&id) {
            self.nonces.remove(&session.nonce);
        }
        if let Some(count) = self.ttls.get_mut(&session.ttl) {
            *count -= 1;
            if *count == 0 {
                self.ttls.remove(&session.ttl);
            }
        }
        // A hint of the session that is left in `sessions_due` is dropped when it is looked at.
    }

    pub(super) fn smallest_ttl(&self) -> Option<Millis> {
        self.ttls.keys().next().copied()
    }
}

impl LeaseTable {
    /// Brings the hint of a resource forward to `due` if it is later or missing.
    pub(super) fn lower_due(&mut self, name: &ResourceName, due: LogTime) {
        let Some(resource) = self.resources.get_mut(name) else { return };
        if resource.due.is_some_and(|present| present <= due) {
            return;
        }
        if let Some(old) = resource.due.replace(due) {
            self.index.resources_due.remove(&(old, name.clone()));
        }
        self.index.resources_due.insert((due, name.clone()));
    }

    /// Computes the hint of a resource anew.
    pub(super) fn refresh_due(&mut self, name: &ResourceName) {
        let Some(resource) = self.resources.get(name) else { return };
        let due = self.true_due(resource);
        let resource = self.resources.get_mut(name).expect("it was there a moment ago");
        if resource.due == due {
            return;
        }
        if let Some(old) = core::mem::replace(&mut resource.due, due) {
            self.index.resources_due.remove(&(old, name.clone()));
        }
        if let Some(new) = due {
            self.index.resources_due.insert((new, name.clone()));
        }
    }

    /// The first point past which something may end on this resource if nobody does anything. Points that leave nothing behind
    /// when they are crossed (somebody becomes overdue or takeable, the wait after a restore is over) count only if they were
    /// not crossed already when the resource was last looked at.
    pub(super) fn true_due(&self, resource: &Resource) -> Option<LogTime> {
        let (drift, looked_at) = (self.config.drift, resource.looked_at);
        let contended = !resource.queue.is_empty();
        let mut points = Points(None);
        for cooling in &resource.cooling {
            points.add(cooling.until);
        }
        for holder in &resource.holders {
            match holder.standing {
                Standing::Revoked { until, .. } => points.add(until),
                Standing::Held => {
                    let session = &self.sessions[&holder.session];
                    if contended {
                        // Where nobody waits, the session's own hint is enough: whoever comes looks at the holders.
                        points.add(session.ended_after(drift));
                        points.add_uncrossed(looked_at, session.takeable_after(drift));
                    }
                    if let Some(offer) = &holder.offer {
                        points.add(offer.until);
                    }
                }
            }
        }
        for waiting in resource.queue.values() {
            let session = &self.sessions[&waiting.session];
            points.add(session.ended_after(drift));
            points.add(session.waits[&waiting.command].deadline);
            // Whoever stands behind it may be next then.
            points.add_uncrossed(looked_at, session.overdue_after(drift));
        }
        if let Some(after) = self.granting_after.filter(|_| contended) {
            points.add_uncrossed(looked_at, after);
        }
        points.0
    }

    /// Takes note of whether anything keeps the resource in use, and forgets the longest idle ones above the limit.
    pub(super) fn note_use(&mut self, name: &ResourceName) {
        let at = self.last_at;
        let Some(resource) = self.resources.get_mut(name) else { return };
        let used = !(resource.holders.is_empty()
            && resource.queue.is_empty()
            && resource.cooling.is_empty()
            && resource.registers.is_empty());
        match (used, resource.idle_since) {
            (true, Some(_)) => {
                resource.idle_since = None;
                self.index.idle.end();
            }
            (false, None) if resource.transitions == 0 => self.forget(name),
            (false, None) => {
                resource.idle_since = Some(at);
                self.index.idle.begin(at, name.clone(), &self.resources);
            }
            (true, None) | (false, Some(_)) => {}
        }
        while self.index.idle.len() > self.config.limits.idle_resources {
            let oldest = self.index.idle.pop_oldest(&self.resources);
            let oldest = oldest.expect("there are more than a limit of zero or more");
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, name: &ResourceName) {
        let Some(resource) = self.resources.remove(name) else { return };
        if let Some(due) = resource.due {
            self.index.resources_due.remove(&(due, name.clone()));
        }
        if resource.gaps.is_some_and(|gaps| gaps.open.is_some()) {
            self.index.forgotten.push(name.clone());
        }
    }

    /// Builds the index of a table that was read from a snapshot.
    pub(super) fn rebuild_index(&mut self) {
        self.index = Index::default();
        for (id, session) in self.sessions.iter() {
            self.index.waits += session.waits.len();
            self.index.add_session(*id, session, self.config.drift);
        }
        let names: alloc::vec::Vec<ResourceName> = self.resources.keys().cloned().collect();
        for name in &names {
            if let Some(since) = self.resources[name].idle_since {
                self.index.idle.begin(since, name.clone(), &self.resources);
            }
            self.refresh_due(name);
        }
    }
}

/// The smallest of the points added.
struct Points(Option<LogTime>);

impl Points {
    fn add(&mut self, point: LogTime) {
        self.0 = Some(self.0.map_or(point, |least| least.min(point)));
    }

    fn add_uncrossed(&mut self, looked_at: LogTime, point: LogTime) {
        if looked_at <= point && !(planted(Bug::HintLostInSnapshot) && looked_at == LogTime::ZERO) {
            self.add(point);
        }
    }
}
