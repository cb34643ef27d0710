//! Changing calls of plain sessions: what is asked for, sent again, given up, and heard of.

use leasehold_core::{
    Acquire, Answer, CallNumber, Millis, Numbered, Op, RenewalNumber, Request, SessionId, Value,
};

use super::{Call, LONGEST_WAIT, Plain, What};
use crate::record::{Event as Noted, TrueTime, hash};
use crate::trace::MILLI;
use crate::world::World;
use crate::world::app::Held;

impl Plain {
    /// The next number. What was asked before is settled, but for a call whose outcome is open.
    fn next_number(&mut self) -> Numbered {
        self.number += 1;
        let number = CallNumber::new(self.number);
        Numbered { number, settled: self.call.as_ref().map_or(number, |call| call.numbered.number) }
    }
}

impl World {
    /// A call had no answer: it is sent again, or rests for a while, or is given up.
    pub(super) fn plain_goes_on(&mut self, client: usize, session: SessionId) {
        self.plain_writes(client, session);
        let (now, longest) = (self.now, self.plan.ttl.1 * MILLI);
        let own = &mut self.plain[client];
        let dice = own.random.below(16);
        let rest = own.random.below(longest);
        let Some(mut call) = own.call.take() else { return };
        if call.rests_until > now {
            own.call = Some(call);
            return;
        }
        if call.cancel.is_none() && matches!(call.op, Op::Acquire(_)) && dice == 0 {
            own.call = Some(call.clone());
            call.cancel = Some(own.next_number());
        } else if dice < 3 {
            call.rests_until = now + rest;
            own.call = Some(call);
            return;
        }
        own.call = Some(call);
        self.plain_calls(client);
    }

    /// Sends the call whose outcome is open.
    pub(super) fn plain_calls(&mut self, client: usize) {
        let Some(call) = self.plain[client].call.clone() else { return };
        let (op, numbered) = match call.cancel {
            Some(cancel) => (Op::CancelCall { call: call.numbered.number }, cancel),
            None => (call.op, call.numbered),
        };
        let words = hash(format!("{numbered:?} {op:?}").as_bytes());
        self.plain_asks(client, What::Other(words), Some((op, Some(numbered))));
    }

    pub(super) fn plain_acquires(&mut self, client: usize) {
        let random = &mut self.plain[client].random;
        let (resource, kind) = random.pick(&self.names.names).clone();
        let mode = kind.mode(random);
        // Known from now on, so that whoever is granted it is known too.
        self.notes.record.resource(&resource);
        let random = &mut self.plain[client].random;
        let wait = (random.below(3) == 0).then(|| Millis::new(random.below(LONGEST_WAIT)));
        let acquire = Acquire { requests: vec![Request { resource, mode }], value: Value::default(), wait };
        self.plain_command(client, Op::Acquire(acquire));
    }

    pub(super) fn plain_releases(&mut self, client: usize, session: SessionId, place: usize) {
        let (held, _) = self.plain[client].held.swap_remove(place);
        self.plain_lets_go(session, &held);
        self.plain[client].note_let_go(held.token);
        let Held { resource, token, .. } = held;
        self.plain_command(client, Op::Release { resource, token, drained: true });
    }

    pub(super) fn plain_lets_go(&mut self, session: SessionId, held: &Held) {
        let at = TrueTime(self.now);
        self.notes.record.push(at, Noted::LetGo { session, token: held.token });
        self.notes.record.belief(at, session, held.place, held.token, None);
    }

    pub(super) fn plain_command(&mut self, client: usize, op: Op) {
        self.totals.operations += 1;
        let own = &mut self.plain[client];
        if self.now < own.unnumbered_until {
            let words = hash(format!("{op:?}").as_bytes());
            return self.plain_asks(client, What::Other(words), Some((op, None)));
        }
        let numbered = own.next_number();
        own.call = Some(Call { numbered, op, cancel: None, rests_until: 0 });
        self.plain_calls(client);
    }

    /// The outcome of a call, or of the cancel that gives it up. Queued is none: it is continued.
    pub(super) fn plain_heard(&mut self, client: usize, answer: Answer, renewal: RenewalNumber) {
        let base = self.plain[client].sent(renewal);
        match answer {
            Answer::Queued { .. } => return,
            Answer::Granted(grants) => {
                self.totals.grants += grants.len() as u64;
                for grant in grants {
                    self.plain_has(client, grant, base);
                }
            }
            Answer::AlreadyGranted(grants) => {
                for grant in grants {
                    self.plain_has(client, grant, None);
                }
            }
            _ => {}
        }
        self.plain[client].call = None;
    }
}
