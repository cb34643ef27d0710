//! Offers, from both sides. A holder hands its resource to this session, which waits for it already or takes it up; and this session
//! offers what it holds to somebody who was named, before the application is asked to let go.

use std::time::Duration;

use leasehold_core::client::SessionEnd;
use leasehold_core::holder::Reading;
use leasehold_core::{
    CommandNumber, Grant, Millis, Offer, Op, ResourceName, SessionId, Successor, Token, Value,
};

use super::{Slot, Wanted};
use crate::driver::{Accept, Driver, Key, Reply};
use crate::error::Error;
use crate::lease::{Lease, ReleaseRequest};

/// An offer that is taken up later than this is not acted upon: whoever asked for it has been told long ago that nothing happened. The offer
/// stands for as long, so that others see how long there is.
const ASKING_LASTS: Duration = Duration::from_secs(60);
/// How long an offer stands to one that is ready: longer than any drain should take. One that takes longer lets go to the queue.
const DRAINING_LASTS: Millis = Millis::new(60 * 60 * 1000);

/// A handover to somebody named, asked for and not yet taken up.
#[derive(Debug)]
pub(super) struct Wish {
    resource: ResourceName,
    request: ReleaseRequest,
    asked: Reading,
    offer: CommandNumber,
    /// Whom the table has found.
    to: Option<SessionId>,
    /// Taken up once, and made again for as long as a drain may take.
    is_lasting: bool,
}

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
                slot.acquires.insert(number, Wanted { ticket, alone: None, handed_over: true, reply });
            }
            Err(error) => {
                let _ = reply.send(Err(slot.ended.clone().map_or(Error::Submit(error), Error::SessionEnded)));
            }
        }
    }
}

impl Slot {
    /// Somebody asks for a lease. The application hears of it at once, unless a successor was named: then when that one is ready.
    pub(super) fn release_requested(
        &mut self,
        resource: &ResourceName,
        token: Token,
        request: ReleaseRequest,
        now: Reading,
    ) {
        match request.successor.clone() {
            // Whoever waits first is served by the release alone.
            None | Some(Successor::FirstWaiter) => {
                if let Some(lease) = self.leases.get(&token) {
                    lease.ask_release(request);
                }
            }
            Some(to) => {
                // One that does not wait takes up an offer by word, and only once.
                let is_lasting = matches!(to, Successor::Session(_));
                self.make_offer(resource, token, to, (request, now, is_lasting));
            }
        }
    }

    fn make_offer(
        &mut self,
        resource: &ResourceName,
        token: Token,
        to: Successor,
        (request, asked, is_lasting): (ReleaseRequest, Reading, bool),
    ) {
        let length = if is_lasting { DRAINING_LASTS } else { Millis::from_duration(ASKING_LASTS) };
        let offer = Offer { resource: resource.clone(), token, to, length };
        if let Ok(offer) = self.machine.submit(Op::Offer(offer)) {
            self.answers.insert(offer, None);
            let resource = resource.clone();
            self.wishes.insert(token, Wish { resource, request, asked, offer, to: None, is_lasting });
        }
    }

    /// Gives back leases that no call waits for.
    pub(super) fn give_back_unwanted(&mut self, grants: Vec<Grant>) {
        for Grant { resource, token, .. } in grants {
            if let Ok(number) = self.machine.submit(Op::Release { resource, token, drained: false }) {
                self.answers.insert(number, None);
            }
        }
    }

    /// Who an offer was made to is known.
    pub(super) fn offer_made(&mut self, offer: CommandNumber, to: SessionId) {
        for wish in self.wishes.values_mut().filter(|wish| wish.offer == offer) {
            wish.to = Some(to);
        }
    }

    /// An offer was refused: nobody is disturbed.
    pub(super) fn offer_refused(&mut self, offer: CommandNumber) {
        self.wishes.retain(|_, wish| wish.offer != offer);
    }

    /// The successor is ready: now the application is asked to finish and let go.
    pub(super) fn offer_accepted(&mut self, token: Token, by: SessionId, now: Reading) {
        // An earlier offer, to another, may have been taken up meanwhile.
        if self.wishes.get(&token).is_none_or(|wish| wish.to != Some(by)) {
            return;
        }
        let wish = self.wishes.remove(&token).filter(|wish| now.since(wish.asked).smaller() <= ASKING_LASTS);
        let (Some(wish), Some(lease)) = (wish, self.leases.get(&token)) else { return };
        if wish.is_lasting {
            return lease.ask_release(wish.request);
        }
        self.make_offer(&wish.resource, token, Successor::Session(by), (wish.request, wish.asked, true));
    }

    /// An offer is over without a grant: what comes now comes by the queue.
    pub(super) fn offer_ended(&mut self, resource: &ResourceName) {
        for wanted in self.acquires.values_mut().filter(|wanted| wanted.alone.as_ref() == Some(resource)) {
            wanted.handed_over = false;
        }
    }

    /// A holder would hand its resource to this session. A session that waits for that very resource is ready for it.
    pub(super) fn offered(&mut self, resource: &ResourceName, token: Token) {
        // The table serves the first of them.
        let waits = self.acquires.iter_mut().filter(|(_, wanted)| wanted.alone.as_ref() == Some(resource));
        if let Some((_, wanted)) = waits.min_by_key(|(number, _)| **number) {
            wanted.handed_over = true;
            // The value is that of the wait. If the session is over, so is the offer.
            let (resource, value) = (resource.clone(), Value::default());
            if let Ok(number) = self.machine.submit(Op::Accept { resource, token, value }) {
                self.answers.insert(number, None);
            }
        }
    }
}
