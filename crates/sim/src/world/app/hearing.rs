//! What an application hears from its session machine, and what it makes of it.

use leasehold_core::client::{Event, LeaseState, Outcome, SessionEnd, WaitOver};
use leasehold_core::holder::Standing;
use leasehold_core::{Answer, CommandNumber, Grant, Refusal, Unavailable};

use super::Held;
use crate::check::sometimes::Situation;
use crate::record::{Event as Noted, Place, Told, TrueTime};
use crate::trace::{MILLI, heard};
use crate::world::{Phase, World};

impl World {
    /// The machine tells the application something.
    pub(in crate::world) fn app_hears(&mut self, client: usize, event: Event) {
        let reading = || self.clients[client].clock.read(self.now);
        self.trace.say(self.now, || format!("c{client} hears {}", heard(&event, reading())));
        let at = TrueTime(self.now);
        let own = &mut self.clients[client];
        match event {
            Event::Opened { session } => {
                own.session = Some(session);
                self.note_opened(client, session);
            }
            Event::Resolved { command, outcome } => self.app_resolved(client, command, outcome),
            Event::WaitOver { command, how } => {
                own.app.waits.retain(|known| *known != command);
                match how {
                    WaitOver::Granted(grants) => self.app_granted(client, command, grants),
                    WaitOver::Ended(_) | WaitOver::Cancelled => {
                        self.app_told(client, command, Told::WaitOver);
                    }
                    WaitOver::SessionEnded => self.app_told(client, command, Told::Unknown),
                }
            }
            Event::LeaseEnded { token, .. } => {
                let (session, grace) = (own.session, own.app.in_flight);
                if let Some(held) = own.app.held.iter_mut().find(|held| held.token == token) {
                    held.over = true;
                    held.busy_until = held.busy_until.max(self.now + grace);
                    if let Some(session) = session {
                        self.notes.record.belief(at, session, held.place, token, None);
                    }
                }
            }
            Event::ReleaseRequested { token, .. } => {
                let asked = own.app.held.iter_mut().find(|held| held.token == token);
                if let Some(held) = asked.filter(|_| own.random.one_in(2)) {
                    held.leaving = true;
                }
            }
            Event::Offered { resource, token, .. } => own.app.offers.push((resource, token)),
            Event::Standing(Standing::Uncertain { .. }) => {
                self.notes.record.reached.reach(Situation::Uncertain);
            }
            Event::OfferAccepted { token, .. } => {
                // Whoever hears of it mostly hands over: it gives the lease back once nothing acts under it.
                let accepted = own.app.held.iter_mut().find(|held| held.token == token);
                if let Some(held) = accepted.filter(|_| !own.random.one_in(4)) {
                    held.leaving = true;
                }
            }
            Event::OfferEnded { .. } | Event::Standing(_) => {}
            Event::SessionEnded { why } => {
                if matches!(why, SessionEnd::ByService(_)) {
                    self.totals.sessions_lost += 1;
                    if let Some(session) = self.clients[client].session {
                        self.notes.record.push(TrueTime(self.now), Noted::SessionRefused { session });
                    }
                }
                self.session_over(client);
            }
        }
    }

    fn app_told(&mut self, client: usize, command: CommandNumber, what: Told) {
        if let Some(session) = self.clients[client].session {
            let told = Noted::Told { session, command: command.get(), what };
            self.notes.record.push(TrueTime(self.now), told);
        }
    }

    fn app_resolved(&mut self, client: usize, command: CommandNumber, outcome: Outcome) {
        if matches!(&outcome, Outcome::Answered(Answer::Refused(Refusal::NotYetInUse))) {
            self.notes.record.reached.reach(Situation::NotYetInUse);
        }
        let is_queued = match &outcome {
            Outcome::Answered(Answer::Queued { .. }) => true,
            Outcome::Answered(Answer::Accepted { wait }) => *wait == command,
            _ => false,
        };
        if !is_queued {
            self.clients[client].app.waits.retain(|known| *known != command);
        }
        let told = match outcome {
            Outcome::Answered(Answer::Granted(grants)) => return self.app_granted(client, command, grants),
            Outcome::Answered(Answer::Queued { .. } | Answer::Accepted { .. }) if is_queued => Told::Queued,
            Outcome::Answered(Answer::Released) => Told::Released,
            Outcome::Answered(Answer::Refused(Refusal::NotFree {
                why: Unavailable::Held { token, .. },
                ..
            })) => Told::Held { token },
            Outcome::Answered(Answer::Refused(_)) => Told::Refused,
            Outcome::Answered(_) | Outcome::Closed => Told::Done,
            Outcome::Cancelled => Told::WaitOver,
            Outcome::NotSent => Told::NotSent,
            Outcome::Unknown => Told::Unknown,
        };
        if self.phase == Phase::Healing && !matches!(told, Told::Unknown | Told::NotSent) {
            self.clients[client].served = true;
        }
        self.app_told(client, command, told);
    }

    fn app_granted(&mut self, client: usize, command: CommandNumber, grants: Vec<Grant>) {
        self.totals.grants += grants.len() as u64;
        if self.phase == Phase::Healing {
            self.clients[client].served = true;
        }
        for grant in grants {
            let resource = self.notes.record.resource(&grant.resource);
            self.app_told(client, command, Told::Granted { resource, token: grant.token });
            let own = &self.clients[client];
            let now = own.clock.read(self.now);
            let state = own.machine.as_ref().and_then(|machine| machine.state(grant.token, now));
            let ended = state.is_none();
            if matches!(state, Some(LeaseState::Lapsed { .. })) {
                self.notes.record.reached.reach(Situation::GrantArrivedLate);
            }
            let place = Place { resource, slot: grant.slot };
            let held = Held { over: ended, ..Held::of(grant, place) };
            self.clients[client].app.held.push(held);
            if !ended {
                self.seal(client, self.clients[client].app.held.len() - 1);
            }
        }
        // Whoever was just granted something acts soon.
        let own = &mut self.clients[client];
        let soon = self.now + own.random.below(20 * MILLI) + 1;
        own.app.act_at = own.app.act_at.min(soon);
    }

    /// The session is over for the application, for whatever reason. It opens another one later.
    pub(in crate::world) fn session_over(&mut self, client: usize) {
        let at = TrueTime(self.now);
        let pause = self.clients[client].random.around(self.plan.act_pause);
        let own = &mut self.clients[client];
        own.machine = None;
        own.closing_since = None;
        own.first_sent = None;
        own.app.act_at = own.app.act_at.min(self.now + pause);
        own.app.waits.clear();
        own.app.offers.clear();
        own.app.leaves = false;
        let held = std::mem::take(&mut own.app.held);
        if let Some(session) = own.session.take() {
            for held in held {
                self.notes.record.belief(at, session, held.place, held.token, None);
                self.remember(client, held.resource, held.token);
            }
            self.notes.record.push(at, Noted::SessionOver { session });
        }
        if self.phase == Phase::Healing {
            self.clients[client].served = false;
        }
    }
}
