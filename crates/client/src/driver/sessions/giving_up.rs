//! Giving up: what is told to whoever waits when the store stays out of reach.
//!
//! An acquire that was never sent has failed, and is cancelled. Everything else is unknown, because it may still be sent. Nobody
//! waits longer than the patience.

use std::time::Duration;

use leasehold_core::Op;
use leasehold_core::holder::Reading;

use super::Slot;
use crate::driver::Driver;
use crate::error::{Error, Unreachable};

/// A session that is being closed waits so long for a connection; without one nobody can be told, and the ttl ends it. Long
/// enough for another process to take over a directory.
const CLOSE_WITHOUT_CONNECTION: Duration = Duration::from_secs(1);

impl Driver {
    /// Sessions that could not even be opened are given up.
    pub(in crate::driver) fn fail_openings(&mut self, trouble: &Unreachable) {
        let mut given_up = Vec::new();
        for (key, slot) in &mut self.slots {
            if let Some(reply) = slot.opening.take() {
                let _ = reply.send(Err(Error::Unreachable(trouble.clone())));
                given_up.push(*key);
            }
        }
        given_up.into_iter().for_each(|key| self.remove(key));
    }

    /// The store was out of reach for too long: whoever waits is told what is known, and what may still come is given back.
    pub(in crate::driver) fn fail_commands(&mut self, trouble: &Unreachable) {
        for (key, slot) in &mut self.slots {
            let error =
                |sent: bool| if sent { Error::OutcomeUnknown } else { Error::Unreachable(trouble.clone()) };
            for (number, wanted) in std::mem::take(&mut slot.acquires) {
                // Only then: this comes again and again while the store is away, and a session that is touched is polled at once.
                self.due.touch(*key);
                slot.tickets.remove(&wanted.ticket);
                let _ = wanted.reply.send(Err(error(number <= slot.sent)));
                // If the session is over, there is nothing left to give up.
                if let Ok(cancel) = slot.machine.submit(Op::Cancel { acquire: number }) {
                    slot.answers.insert(cancel, None);
                }
            }
            slot.give_up_renewals(trouble);
            for reply in slot.answers.values_mut().filter_map(Option::take) {
                // Sent or not, they stay in the machine and go out with the next connection: nobody can say that they have no
                // effect.
                let _ = reply.send(Err(Error::OutcomeUnknown));
            }
        }
    }

    /// Lets go of sessions whose close nobody answers: their ttl ends them.
    pub(in crate::driver) fn abandon_closing(&mut self, now: Reading) {
        let limit = match &self.connection {
            Some(_) => self.patience,
            None => self.patience.min(CLOSE_WITHOUT_CONNECTION),
        };
        // In the order in which the closes began.
        while let Some((since, key)) = self.closing_sessions.front().copied() {
            let is_over = now.since(since).greater() >= limit;
            let is_closed = !self.slots.contains_key(&key);
            if !is_over && !is_closed {
                return;
            }
            self.closing_sessions.pop_front();
            let trouble = self.trouble();
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.abandon(&trouble);
                self.remove(key);
            }
        }
    }
}

impl Slot {
    /// Tells everybody who waits that nobody will answer.
    fn abandon(&mut self, trouble: &Unreachable) {
        let error =
            |sent: bool| if sent { Error::OutcomeUnknown } else { Error::Unreachable(trouble.clone()) };
        self.give_up_renewals(trouble);
        for (number, wanted) in self.acquires.drain() {
            let _ = wanted.reply.send(Err(error(number <= self.sent)));
        }
        for (number, reply) in self.answers.drain() {
            if let Some(reply) = reply {
                let _ = reply.send(Err(error(number <= self.sent)));
            }
        }
    }
}
