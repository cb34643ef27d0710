//! Known bugs of the table that need more than a line: see [`planted`](crate::planted).

use alloc::vec::Vec;

use super::LeaseTable;
use super::resource::{Resource, Standing, Waiting};
use crate::answer::{Applied, Event, ItemKind};
use crate::id::{CommandNumber, ItemNumber, SessionId, Token};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::time::LogTime;

/// The lower bits of a token are the number of its grant.
const NUMBER: u64 = (1 << 48) - 1;

impl LeaseTable {
    /// The token that a bug gives to a grant.
    pub(super) fn wrong_token(&self, out: &Applied, name: &ResourceName) -> Option<Token> {
        let number = if planted(Bug::OneTokenPerEntry) {
            let granted = |event: &Event| match event {
                Event::Granted { grant, .. } => Some(grant.token),
                _ => None,
            };
            return out.events.iter().rev().find_map(granted);
        } else if planted(Bug::TokenPerResource) {
            self.resources.get(name).map_or(0, |resource| resource.transitions) + 1
        } else if planted(Bug::TokenFromTime) {
            self.last_at.get()
        } else {
            return None;
        };
        Token::new(self.epoch, number).ok()
    }

    /// The lease that a bug lets a release end instead.
    pub(super) fn released_instead(&self, name: &ResourceName) -> Option<Token> {
        if !planted(Bug::ReleaseIgnoresToken) {
            return None;
        }
        self.resources.get(name)?.holders.first().map(|holder| holder.token)
    }

    /// Whether a bug turns the order around in which resources are served.
    pub(super) fn serves_backwards(&self) -> bool {
        // A snapshot does not have this hint: replicas differ in it.
        let unlooked =
            |table: &Self| table.resources.values().filter(|r| r.looked_at == LogTime::ZERO).count();
        planted(Bug::OrderByHints) && unlooked(self) % 2 == 1
    }

    /// Whether the first who waits wants several resources.
    pub(super) fn unit_is_first(&self, resource: &Resource) -> bool {
        let several =
            |waiting: Waiting| self.sessions[&waiting.session].waits[&waiting.command].requests.len() > 1;
        self.first_live(resource).is_some_and(several)
    }

    /// What a bug forgets when a connection attaches.
    pub(super) fn forget_at_attach(&mut self, id: SessionId) {
        if !planted(Bug::AppliedTwiceAfterAttach) && !planted(Bug::EventDroppedAtAttach) {
            return;
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let last = session.last_command;
        let unheard = |kind: &ItemKind| matches!(kind, ItemKind::Answer { command, .. } if *command == last);
        if planted(Bug::AppliedTwiceAfterAttach) && session.unseen.iter().any(|item| unheard(&item.kind)) {
            session.last_command = CommandNumber::new(last.get() - 1);
        }
        let is_event =
            session.unseen.back().is_some_and(|item| !matches!(item.kind, ItemKind::Answer { .. }));
        if planted(Bug::EventDroppedAtAttach) && is_event {
            session.unseen.pop_back();
            session.last_item = ItemNumber::new(session.last_item.get() - 1);
        }
    }

    /// The revoked leases of a session, which a bug takes for acknowledged.
    pub(super) fn acknowledged_by_renewal(&self, id: SessionId) -> Vec<(ResourceName, Token)> {
        let revoked = |(name, token): &&(ResourceName, Token)| {
            let holder = self.resources.get(name).and_then(|resource| resource.holder(*token));
            holder.is_some_and(|holder| matches!(holder.standing, Standing::Revoked { .. }))
        };
        self.sessions[&id].leases.keys().filter(revoked).cloned().collect()
    }

    /// What a bug leaves out of a snapshot.
    pub(super) fn misread(&mut self) {
        if planted(Bug::CounterNotInSnapshot) {
            let sessions = self.sessions.keys().map(|id| id.get());
            let holders = self.resources.values().flat_map(|resource| &resource.holders);
            let tokens = holders.map(|holder| holder.token.get());
            self.counter = sessions.chain(tokens).map(|number| number & NUMBER).max().unwrap_or(0);
        }
        if planted(Bug::LastCommandNotInSnapshot) {
            self.sessions.values_mut().for_each(|session| session.last_command = CommandNumber::NONE);
        }
        if planted(Bug::QueueReordered) {
            self.swap_first_waiters();
        }
        if planted(Bug::PlaceNotInSnapshot) {
            self.next_place = 0;
        }
    }

    fn swap_first_waiters(&mut self) {
        for resource in self.resources.values_mut() {
            let mut first = resource.queue.iter();
            let (Some((&one, &front)), Some((&two, &behind))) = (first.next(), first.next()) else {
                continue;
            };
            let place = |waiting: Waiting| {
                let session = self.sessions.get(&waiting.session)?;
                session.waits.get(&waiting.command).map(|wait| wait.requests.len())
            };
            // A unit has one place in all its queues.
            if place(front) != Some(1) || place(behind) != Some(1) {
                continue;
            }
            resource.queue.insert(one, behind);
            resource.queue.insert(two, front);
            for (waiting, place) in [(front, two), (behind, one)] {
                let session = self.sessions.get_mut(&waiting.session);
                if let Some(wait) = session.and_then(|session| session.waits.get_mut(&waiting.command)) {
                    wait.place = place;
                }
            }
        }
    }
}
