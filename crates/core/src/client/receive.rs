//! What the service says about the session as a whole: opened, attached, renewed, refused. Items are taken in elsewhere.

use alloc::boxed::Box;

use super::message::{Event, Incoming, SessionEnd};
use super::session::{ClientSession, Live, Phase};
use crate::answer::{Opened, Refusal};
use crate::holder::{Reading, Scheduler};
use crate::id::{Nonce, SessionId};
use crate::planted::{Bug, planted};

impl ClientSession {
    pub(super) fn receive(&mut self, incoming: Incoming, now: Reading) {
        match incoming {
            Incoming::Opened { nonce, opened } => self.opened(nonce, &opened, now),
            Incoming::OpenRefused { nonce, refusal } => {
                if matches!(&self.phase, Phase::Opening(opening) if opening.nonce == nonce) {
                    self.end(SessionEnd::OpenRefused(refusal));
                }
            }
            Incoming::Attached { session, .. }
            | Incoming::Item { session, .. }
            | Incoming::Renewed { session, .. }
            | Incoming::StaleRenewal { session, .. }
            | Incoming::Closed { session }
            | Incoming::Refused { session, .. } => {
                if self.session() == Some(session) {
                    self.receive_in_session(session, incoming, now);
                }
            }
        }
    }

    fn receive_in_session(&mut self, session: SessionId, incoming: Incoming, now: Reading) {
        let Phase::Live(live) = &mut self.phase else { return };
        match incoming {
            Incoming::Attached { attach, last_command, last_item, .. } if attach == self.link.attach() => {
                if last_item < self.link.attached_seen() || self.commands.resume_after(last_command).is_err()
                {
                    return self.end(SessionEnd::SetBack);
                }
                self.newest = self.newest.max(last_item);
                self.link.attached();
            }
            Incoming::Item { item, .. } => self.item(item, now),
            Incoming::Renewed { renewed, .. } => live.scheduler.answered(renewed.number, renewed.after, now),
            Incoming::StaleRenewal { number, highest, .. } => live.scheduler.stale(number, highest, now),
            Incoming::Closed { .. } => self.end(SessionEnd::Closed),
            Incoming::Refused { refusal, .. } => match refusal {
                Refusal::SessionEnded { session: ended } if ended == session => {
                    self.end(SessionEnd::ByService(session));
                }
                Refusal::SeenAhead { .. } | Refusal::WrongSessionKind => self.end(SessionEnd::SetBack),
                Refusal::OlderAttach { attach, current } if attach == self.link.attach() => {
                    self.link.trouble();
                    self.link.overtaken_by(current);
                }
                // Frames of our own older attachments: the newer one has sent, or will send, the same again.
                Refusal::OlderAttach { .. } => {}
                _ => self.link.trouble(),
            },
            Incoming::Attached { .. } | Incoming::Opened { .. } | Incoming::OpenRefused { .. } => {}
        }
    }

    fn opened(&mut self, nonce: Nonce, opened: &Opened, now: Reading) {
        let Phase::Opening(opening) = &self.phase else { return };
        // Another nonce is one that was given up: its session is older than the present nonce's first sending.
        let (true, Some(first_sent)) = (opening.nonce == nonce, opening.first_sent) else { return };
        let numbers = self.profile.numbers;
        if opened.drift < numbers.drift() {
            return self.end(SessionEnd::DriftTooSmall { service: opened.drift, own: numbers.drift() });
        }
        if opened.ttl != numbers.ttl() {
            return self.end(SessionEnd::OtherTtl { asked: numbers.ttl(), given: opened.ttl });
        }
        let from = if planted(Bug::OpenFromLastSending) { opening.last_sent } else { first_sent };
        let mut scheduler = Scheduler::new(numbers, from, self.jitter);
        if self.link.is_up() {
            scheduler.connected(now);
        } else {
            scheduler.disconnected(now);
        }
        self.phase = Phase::Live(Box::new(Live { session: opened.session, nonce, scheduler }));
        self.events.push(Event::Opened { session: opened.session });
    }
}
