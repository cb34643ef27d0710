//! Offers: a holder hands its resource to this session, which waits for it already or takes it up.

use leasehold_core::client::SessionEnd;
use leasehold_core::{Op, ResourceName, Token, Value};

use super::{Slot, Wanted};
use crate::driver::{Accept, Driver, Key, Reply};
use crate::error::Error;
use crate::lease::Lease;

impl Driver {
    /// Takes up an offer that the session did not wait for. What it brings comes as the grant of a wait does.
    pub(in crate::driver) fn accept(
        &mut self,
        key: Key,
        ticket: u64,
        accept: Accept,
        reply: Reply<Vec<Lease>>,
    ) {
        let Some(slot) = self.slots.get_mut(&key) else {
            let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            return;
        };
        self.due.touch(key);
        let Accept { resource, token, value } = accept;
        match slot.machine.submit(Op::Accept { resource, token, value }) {
            Ok(number) => {
                slot.tickets.insert(ticket, number);
                slot.acquires.insert(number, Wanted { ticket, alone: None, reply });
            }
            Err(error) => {
                let _ = reply.send(Err(slot.ended.clone().map_or(Error::Submit(error), Error::SessionEnded)));
            }
        }
    }
}

impl Slot {
    /// A holder would hand its resource to this session. A session that waits for that very resource is ready for it.
    pub(super) fn offered(&mut self, resource: &ResourceName, token: Token) {
        let waits = self.acquires.values().any(|wanted| wanted.alone.as_ref() == Some(resource));
        if waits {
            // The value is that of the wait. If the session is over, so is the offer.
            let (resource, value) = (resource.clone(), Value::default());
            if let Ok(number) = self.machine.submit(Op::Accept { resource, token, value }) {
                self.answers.insert(number, None);
            }
        }
    }
}
