//! What comes of commands: whoever waits is told, and leases get their handles.

use std::sync::Arc;

use leasehold_core::client::{Outcome, SessionEnd, WaitOver};
use leasehold_core::{Answer, CommandNumber, Grant, Op};

use super::{Slot, Wanted};
use crate::driver::feed::Feed;
use crate::driver::{Key, SessionRef, WeakDriverHandle};
use crate::error::Error;
use crate::lease::{Lease, Shared};
use crate::time::Time;

/// What the handles of one session are made of.
pub(super) struct Handles<'a> {
    pub(super) key: Key,
    pub(super) pid: u32,
    pub(super) to_driver: &'a WeakDriverHandle,
    pub(super) time: &'a Time,
}

impl Handles<'_> {
    /// Nothing if nobody is left who could have a handle.
    pub(super) fn session(&self, events: &Feed) -> Option<SessionRef> {
        let to_driver = self.to_driver.upgrade()?;
        Some(SessionRef { key: self.key, pid: self.pid, to_driver, events: events.clone() })
    }
}

impl Slot {
    pub(super) fn resolved(&mut self, command: CommandNumber, outcome: Outcome, handles: &Handles<'_>) {
        if let Some(wanted) = self.acquires.remove(&command) {
            match outcome {
                Outcome::Answered(Answer::Granted(grants)) => self.granted(wanted, &grants, handles),
                Outcome::Answered(Answer::Queued { .. }) => {
                    self.acquires.insert(command, wanted);
                }
                Outcome::Answered(Answer::Accepted { wait }) if wait == command => {
                    self.acquires.insert(command, wanted);
                }
                // The grant goes to the wait that was there before.
                Outcome::Answered(Answer::Accepted { .. }) => self.not_granted(wanted, Error::AlreadyWaiting),
                other => self.not_granted(wanted, self.error(other)),
            }
            return;
        }
        match &outcome {
            Outcome::Answered(Answer::Refused(_)) => self.offer_refused(command),
            Outcome::Answered(Answer::Offered { to }) => self.offer_made(command, *to),
            _ => {}
        }
        let Some(Some(reply)) = self.answers.remove(&command) else { return };
        let _ = reply.send(match outcome {
            Outcome::Answered(Answer::Refused(refusal)) => Err(refusal.into()),
            Outcome::Answered(answer) => Ok(answer),
            // A close has no other answer than that it is done.
            Outcome::Closed => Ok(Answer::Released),
            other => Err(self.error(other)),
        });
    }

    fn error(&self, outcome: Outcome) -> Error {
        match outcome {
            Outcome::Answered(Answer::Refused(refusal)) => refusal.into(),
            Outcome::Cancelled | Outcome::Closed => Error::Cancelled,
            Outcome::NotSent => Error::SessionEnded(self.ended.clone().unwrap_or(SessionEnd::Closed)),
            Outcome::Unknown | Outcome::Answered(_) => Error::OutcomeUnknown,
        }
    }

    pub(super) fn wait_over(&mut self, command: CommandNumber, how: WaitOver, handles: &Handles<'_>) {
        let Some(wanted) = self.acquires.remove(&command) else {
            // An offer that was taken up by itself and brought something else than the wait it was meant for: nobody here wants it.
            if let WaitOver::Granted(grants) = how {
                self.give_back_unwanted(grants);
            }
            return;
        };
        match how {
            WaitOver::Granted(grants) => self.granted(wanted, &grants, handles),
            WaitOver::Ended(why) => self.not_granted(wanted, Error::WaitEnded(why)),
            WaitOver::Cancelled => self.not_granted(wanted, Error::Cancelled),
            WaitOver::SessionEnded => {
                let why = self.ended.clone().unwrap_or(SessionEnd::Closed);
                self.not_granted(wanted, Error::SessionEnded(why));
            }
        }
    }

    fn granted(&mut self, wanted: Wanted, grants: &[Grant], handles: &Handles<'_>) {
        self.tickets.remove(&wanted.ticket);
        let Some(session) = handles.session(&self.events) else { return };
        let mut leases = Vec::with_capacity(grants.len());
        for grant in grants {
            let Some(handle) = self.machine.lease(grant.token) else {
                // Ended again before the application could be told: nothing acts under it, so the ending is acknowledged here.
                let (resource, token) = (grant.resource.clone(), grant.token);
                if let Ok(number) = self.machine.submit(Op::Release { resource, token, drained: false }) {
                    self.answers.insert(number, None);
                }
                continue;
            };
            let shared = Arc::new(Shared::new(
                handle,
                handles.pid,
                handles.time.clone(),
                Arc::clone(&self.terms),
                wanted.handed_over,
            ));
            self.leases.insert(grant.token, Arc::clone(&shared));
            leases.push(Lease::new(shared, session.clone()));
        }
        if leases.len() < grants.len() {
            // Granted and ended again before the application could be told: what is left is given back as it is dropped.
            let _ = wanted.reply.send(Err(Error::OutcomeUnknown));
            return;
        }
        // If nobody waits any more, the leases are dropped here, which gives them back.
        let _ = wanted.reply.send(Ok(leases));
    }

    fn not_granted(&mut self, wanted: Wanted, error: Error) {
        self.tickets.remove(&wanted.ticket);
        let _ = wanted.reply.send(Err(error));
    }
}
