//! The incoming stream: answers and events, processed strictly in order.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::commands::Origin;
use super::lease::{EndedWhy, Held};
use super::message::{Event, Outcome, SessionEnd, WaitOver};
use super::session::{ClientSession, Phase};
use crate::answer::{Answer, Ending, Grant, Item, ItemKind};
use crate::command::Op;
use crate::holder::Reading;
use crate::id::{CommandNumber, Token};
use crate::name::ResourceName;
use crate::planted::{Bug, planted};
use crate::table::refusal_of;

impl ClientSession {
    /// Takes the next item; drops one that was processed before, and one behind a gap, which a new attachment brings again.
    pub(super) fn item(&mut self, item: Item, now: Reading) {
        if item.number <= self.seen {
            return;
        }
        self.newest = self.newest.max(item.number);
        if item.number > self.seen.next() && !planted(Bug::ItemGapIgnored) {
            return self.link.trouble();
        }
        self.seen = item.number;
        self.link.progress();
        match item.kind {
            ItemKind::Answer { command, answer } => self.answer(command, answer, now),
            ItemKind::WaitGranted { command, grants } => self.wait_granted(command, grants, now),
            ItemKind::WaitEnded { command, why } => {
                if self.waits.remove(&command) {
                    self.events.push(Event::WaitOver { command, how: WaitOver::Ended(why) });
                }
            }
            ItemKind::LeaseEnded { token, how, .. } => self.lease_ended(token, how),
            ItemKind::ReleaseRequested { resource, token, successor, by } => {
                if self.leases.contains_key(&token) {
                    self.events.push(Event::ReleaseRequested { resource, token, successor, by });
                }
            }
            ItemKind::Offered { resource, token, from, length } => {
                self.events.push(Event::Offered { resource, token, from, length });
            }
            ItemKind::OfferEnded { resource, token } => {
                self.events.push(Event::OfferEnded { resource, token });
            }
            ItemKind::OfferAccepted { resource, token, by, label } => {
                if self.leases.contains_key(&token) {
                    self.events.push(Event::OfferAccepted { resource, token, by, label });
                }
            }
        }
        // Last: a kept answer to a renewal may count from here on, and must find the leases as this item left them.
        if let Phase::Live(live) = &mut self.phase {
            live.scheduler.processed(self.seen, now);
        }
    }

    fn answer(&mut self, command: CommandNumber, answer: Answer, now: Reading) {
        let Ok(pending) = self.commands.answered(command) else { return self.end(SessionEnd::SetBack) };
        let mut outcome = None;
        match (pending.op, &answer) {
            (_, Answer::Granted(grants)) => {
                let wanted = self.take(command, grants, now);
                outcome = (!wanted).then_some(Outcome::Cancelled);
            }
            (_, Answer::Queued { .. }) => {
                self.waits.insert(command);
            }
            // Else what comes of it comes under the number of a wait that is known.
            (_, Answer::Accepted { wait }) if *wait == command => {
                self.waits.insert(command);
            }
            (Op::Cancel { acquire }, _) => {
                // Every grant of that wait arose before this answer, was processed before it, and was given back then.
                self.cancelled.remove(&acquire);
                if self.waits.remove(&acquire) {
                    self.events.push(Event::WaitOver { command: acquire, how: WaitOver::Cancelled });
                }
            }
            (Op::Release { token, .. }, _) => {
                self.end_belief(token, EndedWhy::Released);
            }
            (op, Answer::Refused(refusal)) => {
                outcome = Some(Outcome::Answered(Answer::Refused(refusal_of(&op, refusal.clone()))));
            }
            _ => {}
        }
        if pending.origin == Origin::Application {
            let outcome = outcome.unwrap_or(Outcome::Answered(answer));
            self.events.push(Event::Resolved { command, outcome });
        }
    }

    fn wait_granted(&mut self, command: CommandNumber, grants: Vec<Grant>, now: Reading) {
        if self.closing {
            // A close ends the wait together with the session.
            return;
        }
        if !self.waits.remove(&command) {
            // An accept that was given up: the table does not know it as a wait, so its cancel had no effect, and the offer stood.
            for grant in grants {
                self.give_back(grant.resource, grant.token);
            }
            return;
        }
        let how =
            if self.take(command, &grants, now) { WaitOver::Granted(grants) } else { WaitOver::Cancelled };
        self.events.push(Event::WaitOver { command, how });
    }

    /// Takes leases over, or gives them back when nobody wants them any more. Whether they were wanted.
    fn take(&mut self, command: CommandNumber, grants: &[Grant], now: Reading) -> bool {
        if self.closing {
            return false;
        }
        if self.cancelled.contains(&command) {
            for grant in grants {
                self.give_back(grant.resource.clone(), grant.token);
            }
            return false;
        }
        let Phase::Live(live) = &mut self.phase else { return false };
        let needs = live.scheduler.granted(now);
        for grant in grants {
            let arrived_late = needs.map(|needs| (now, needs));
            let grant = Arc::new(grant.clone());
            self.leases.insert(grant.token, Box::new(Held { grant, command, arrived_late }));
        }
        true
    }

    /// The service has ended a lease: belief ends. The acknowledgement is the application's release, because only the application
    /// knows when nothing acts under the lease any more; until then the service grants the resource to nobody.
    fn lease_ended(&mut self, token: Token, how: Ending) {
        self.end_belief(token, EndedWhy::ByService(how));
    }

    fn give_back(&mut self, resource: ResourceName, token: Token) {
        self.commands.submit(Op::Release { resource, token, drained: false }, Origin::Machine);
    }

    /// Cancels a wait for the application. What it has brought already, or will have brought by the time this arrives, is
    /// given back.
    pub(super) fn cancel(&mut self, acquire: CommandNumber) -> CommandNumber {
        let number = self.commands.submit(Op::Cancel { acquire }, Origin::Application);
        self.cancelled.insert(acquire);
        let brought =
            self.leases.values().filter(|held| held.command == acquire).map(|held| Arc::clone(&held.grant));
        for grant in brought.collect::<Vec<Arc<Grant>>>() {
            self.end_belief(grant.token, EndedWhy::Released);
            self.give_back(grant.resource.clone(), grant.token);
        }
        number
    }

    /// Ends belief in a lease. Whether there was one.
    pub(super) fn end_belief(&mut self, token: Token, why: EndedWhy) -> bool {
        let lease = self.lease(token);
        let Some(held) = self.leases.remove(&token) else { return false };
        let confirmed = lease.filter(|lease| lease.unconfirmed_since.is_none());
        let confirmed_until = confirmed.map(|lease| lease.until());
        let resource = held.grant.resource.clone();
        self.events.push(Event::LeaseEnded { resource, token, why, confirmed_until });
        true
    }

    pub(super) fn end_all_belief(&mut self, why: &EndedWhy) {
        for token in self.leases.keys().copied().collect::<Vec<Token>>() {
            self.end_belief(token, why.clone());
        }
    }
}
