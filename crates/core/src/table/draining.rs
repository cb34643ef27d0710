//! Drains that others can see, and word to a holder that its offer was accepted. Neither changes who is granted what.

use super::LeaseTable;
use super::resource::Draining;
use crate::answer::{Answer, Applied, BadRequest, Event, ItemKind, Refusal};
use crate::id::{SessionId, Token};
use crate::limits::MAX_WAIT;
use crate::name::ResourceName;
use crate::time::Millis;

impl LeaseTable {
    /// Shows how many pieces of work are still under way, and how long they may take. The next one takes its place; it goes with the lease.
    pub(super) fn set_draining(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        name: &ResourceName,
        token: Token,
        (in_flight, within): (u32, Millis),
    ) -> Result<Answer, Refusal> {
        if !self.shows_drains() {
            // Whoever keeps the log does not let it in; a log that has it all the same is judged alike by all that can read it.
            return Err(Refusal::NotYetInUse);
        }
        if within > MAX_WAIT {
            return Err(Refusal::BadRequest { what: BadRequest::TooLong });
        }
        self.settle(out, name);
        if !self.holds(id, name, token) {
            let ended = self.ending(name, token);
            return Err(Refusal::NotHolder { resource: name.clone(), token, ended });
        }
        let until = self.last_at.plus(within);
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        holder.expect("a lease that is held has its place").draining = Some(Draining { in_flight, until });
        let resource = name.clone();
        Self::event(out, Event::DrainingShown { resource, token, session: id, in_flight, within });
        Ok(Answer::DrainingShown)
    }

    /// Tells a holder that its offer was accepted: once for each offer, so that a successor that accepts and cancels again and again
    /// cannot fill the holder's stream. What holds after the first time is what everybody can look at.
    pub(super) fn tell_accepted(
        &mut self,
        out: &mut Applied,
        by: SessionId,
        name: &ResourceName,
        token: Token,
    ) {
        if !self.shows_drains() {
            return;
        }
        let holder = self.resources.get_mut(name).and_then(|resource| resource.holder_mut(token));
        let Some(holder) = holder else { return };
        let to = holder.session;
        match &mut holder.offer {
            Some(offer) if !offer.told => offer.told = true,
            _ => return,
        }
        let label = self.sessions[&by].label.clone();
        self.push_item(out, to, ItemKind::OfferAccepted { resource: name.clone(), token, by, label });
    }
}
