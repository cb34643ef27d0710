//! Instants at which faults find most: around an election, an installed snapshot, an answer, an expiry.

use leasehold_core::protocol::{Response, ToClient};
use leasehold_core::{ItemKind, Reply};

use super::faults::NEAR;
use super::{Event, Phase, World};
use crate::trace::{MICRO, MILLI};

/// One answer of so many is followed by a fault.
const ANSWERS: u64 = 500;

impl World {
    /// Something just happened after which a fault is worth more than at any other time.
    pub(super) fn interesting(&mut self) {
        if self.phase == Phase::Faults && self.chance.one_in(6) {
            let soon = self.now + self.chance.below(NEAR);
            self.queue.push(soon, Event::FaultNow);
        }
    }

    /// An answer leaves a node: right behind it, or right before it arrives, something may go wrong.
    pub(super) fn answer_leaves(&mut self, messages: &[ToClient]) {
        let matters = |message: &ToClient| match message {
            ToClient::Response { response, .. } => {
                matches!(response, Response::Reply(Reply::Renewed(_) | Reply::Opened(_)))
            }
            ToClient::Items { items, .. } => items
                .iter()
                .any(|item| matches!(item.kind, ItemKind::WaitGranted { .. } | ItemKind::LeaseEnded { .. })),
            ToClient::Watched { .. } => false,
        };
        if self.phase == Phase::Faults && self.chance.one_in(ANSWERS) && messages.iter().any(matters) {
            let soon = self.now + self.chance.below(500 * MICRO);
            self.queue.push(soon, Event::FaultNow);
        }
    }

    /// A point near the end of somebody's belief, or near the moment at which the service may give the lease to the next.
    pub(super) fn near_a_deadline(&mut self) -> Option<u64> {
        let client = self.chance.index(self.clients.len());
        let own = &self.clients[client];
        let token = own.app.held.first()?.token;
        let lease = own.machine.as_ref()?.lease(token)?;
        let deadline = own.clock.when(self.now, lease.until());
        let ttl = self.plan.ttl.1 * MILLI;
        let early = self.chance.below(20 * MILLI);
        let late = if self.chance.one_in(2) { 0 } else { self.chance.below(ttl / 4 + 1) };
        (deadline < self.now + 2 * ttl).then_some(deadline.saturating_sub(early) + late)
    }
}
