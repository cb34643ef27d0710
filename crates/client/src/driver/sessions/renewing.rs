//! Renewals that the application waits for, and what is learned from the time that renewals take.

use leasehold_core::client::{SessionEnd, SubmitError};
use leasehold_core::holder::Reading;

use super::Slot;
use crate::driver::meter::Sent;
use crate::driver::{Driver, Key, Reply};
use crate::error::{Error, Unreachable};

impl Driver {
    /// Sends a renewal as soon as none is under way, and says when it or a later one was confirmed.
    pub(in crate::driver) fn renew(&mut self, key: Key, reply: Reply<()>, now: Reading) {
        let Some(slot) = self.slots.get_mut(&key) else {
            let _ = reply.send(Err(Error::SessionEnded(SessionEnd::Closed)));
            return;
        };
        self.due.touch(key);
        match slot.machine.renew(now) {
            Some(number) => slot.renewals.push((number, reply)),
            None => {
                let over = slot.ended.clone().map(Error::SessionEnded);
                let _ = reply.send(Err(over.unwrap_or(Error::Submit(SubmitError::Closing))));
            }
        }
    }

    /// A slow answer is believed at once, a quick one only in part: the next that is late is waited for and not asked for again.
    pub(super) fn measure_round_trip(&mut self, sent: Sent, now: Reading) {
        let took = sent.ago(now);
        self.round_trips = took.max(self.round_trips * 3 / 4 + took / 4);
    }
}

impl Slot {
    /// Tells those whose renewal, or a later one, was confirmed. The leases were told before.
    pub(super) fn tell_renewed(&mut self) {
        if self.renewals.is_empty() {
            return;
        }
        let (_, confirmed) = self.machine.renewals();
        for (_, reply) in self.renewals.extract_if(.., |(number, _)| *number <= confirmed) {
            let _ = reply.send(Ok(()));
        }
    }

    /// The session is over, and nobody will confirm anything.
    pub(super) fn fail_renewals(&mut self, why: &SessionEnd) {
        for (_, reply) in self.renewals.drain(..) {
            let _ = reply.send(Err(Error::SessionEnded(why.clone())));
        }
    }

    /// The store was out of reach for too long. What was sent may be confirmed all the same.
    pub(super) fn give_up_renewals(&mut self, trouble: &Unreachable) {
        let (sent, _) = self.machine.renewals();
        for (number, reply) in self.renewals.drain(..) {
            let error =
                if number <= sent { Error::OutcomeUnknown } else { Error::Unreachable(trouble.clone()) };
            let _ = reply.send(Err(error));
        }
    }
}
