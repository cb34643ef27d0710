//! What the leases protect: for each resource one receiver that checks tokens and one that does not.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::holder::Strictness;
use leasehold_core::{SessionId, Token};

use super::{Event, World};
use crate::check::sometimes::Situation;
use crate::plan::Fault;
use crate::record::{Event as Noted, Place, TrueTime};
use crate::trace::MILLI;

/// A write or a seal on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    place: Place,
    token: Token,
    session: SessionId,
    sent: u64,
    /// A seal raises the fence and writes nothing; whose it is hears of it.
    seal: Option<(usize, u32, Token)>,
}

/// The greatest token that each fenced receiver has seen.
#[derive(Default)]
pub(super) struct Receivers {
    fences: BTreeMap<Place, Token>,
}

impl Receivers {
    /// Whether a token is taken; it is the least from then on.
    fn takes(&mut self, place: Place, token: Token) -> bool {
        let fence = self.fences.entry(place).or_insert(token);
        let takes = token >= *fence;
        *fence = (*fence).max(token);
        takes
    }
}

/// One write of so many is late, where writes are.
const LATE_WRITES: u64 = 25;
/// The longest work that an application asks a guard for.
const LONGEST_WORK: u64 = 20 * MILLI;

impl World {
    /// How long something that is sent now is on its way, within what the holder counts on.
    fn flight(&mut self) -> u64 {
        self.net.below(self.plan.in_flight + 1)
    }

    /// The new holder raises the fence before it acts.
    pub(super) fn seal(&mut self, client: usize, held: usize) {
        let Some(session) = self.clients[client].session else { return };
        let flight = self.flight();
        let life = self.clients[client].life;
        let held = &self.clients[client].app.held[held];
        let seal = Some((client, life, held.token));
        let write = Write { place: held.place, token: held.fence, session, sent: self.now, seal };
        self.queue.push(self.now + flight, Event::Write(Box::new(write)));
    }

    pub(super) fn sealed(&mut self, client: usize, life: u32, token: Token) {
        let own = &mut self.clients[client];
        if own.life == life
            && let Some(held) = own.app.held.iter_mut().find(|held| held.token == token)
        {
            held.sealed = true;
        }
    }

    /// Work under every lease for which a guard is given.
    pub(super) fn write_under_leases(&mut self, client: usize) {
        let Some(session) = self.clients[client].session else { return };
        for place in 0..self.clients[client].app.held.len() {
            let work = self.net.below(LONGEST_WORK);
            let flight = self.flight();
            let own = &mut self.clients[client];
            let (Some(machine), held) = (&own.machine, &mut own.app.held[place]) else { return };
            // On a machine that stands still nothing is done, however long a guard is good for there.
            if !held.sealed || held.over || held.leaving || own.clock.stands_still() {
                continue;
            }
            let now = own.clock.read(self.now);
            let how_long = Duration::from_nanos(work);
            if machine.guard(held.token, how_long, Strictness::UntilDeadline, now).is_err() {
                self.totals.guards_refused += 1;
                self.notes.record.reached.reach(Situation::GuardRefused);
                continue;
            }
            // It is sent at the latest when the guard ends, and then it is on its way.
            let sent = own.clock.when(self.now, now.plus(how_long));
            let arrives = sent.saturating_add(flight);
            held.busy_until = held.busy_until.max(arrives);
            // The holder cannot know that this one takes longer than anything it counts on.
            let late = self.plan.faults.has(Fault::LateWrites) && self.net.one_in(LATE_WRITES);
            let ttl = self.plan.ttl.1 * MILLI;
            let held_up = if late { self.net.between(ttl / 2, 4 * ttl) } else { 0 };
            let arrives = arrives.saturating_add(held_up);
            let write = Write { place: held.place, token: held.fence, session, sent, seal: None };
            self.queue.push(arrives, Event::Write(Box::new(write)));
        }
    }

    /// A write that leaves at `sent`; says when it arrives.
    pub(super) fn send_write(&mut self, place: Place, token: Token, session: SessionId, sent: u64) -> u64 {
        let arrives = sent + self.flight();
        let write = Write { place, token, session, sent, seal: None };
        self.queue.push(arrives, Event::Write(Box::new(write)));
        arrives
    }

    pub(super) fn receive_write(&mut self, write: Write) {
        let at = TrueTime(self.now);
        let Write { place, token, session, sent, seal } = write;
        let accepted = self.receivers.takes(place, token);
        self.trace.note(self.now, 9, token.get());
        if let Some((client, life, token)) = seal {
            self.notes.record.push(at, Noted::Sealed { place, token: write.token, session, accepted });
            if accepted {
                let takes = self.flight();
                self.queue.push(self.now + takes, Event::Sealed { client, life, token });
            }
            return;
        }
        self.totals.writes += 1;
        if !accepted {
            self.totals.fenced_off += 1;
        }
        let sent = TrueTime(sent);
        self.notes.record.push(at, Noted::Write { place, fenced: true, token, session, sent, accepted });
        let accepted = true;
        self.notes.record.push(at, Noted::Write { place, fenced: false, token, session, sent, accepted });
    }
}
