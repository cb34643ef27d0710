//! Numbered calls of plain sessions: each is applied once, and answered the same when it is sent again.
//!
//! A session's memory is bounded: its client says below which number nothing is wanted any more (`settled`), and from there on at most
//! [`MAX_CALLS_REMEMBERED`] calls are remembered. What finds no room is refused for good, unless it lets go of something: that is done
//! all the same, and may be answered in another way when it is sent again.
//!
//! The recorded answer of an acquire names the renewal that the first answer named, never a later one: the lease may have ended since, and
//! what another was granted then counts from the renewals before.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::LeaseTable;
use super::session::Session;
use crate::answer::{Answer, Applied, Event, Grant, LimitedThing, Refusal, Reply, WaitEnding};
use crate::command::{Numbered, Op, Sequence, SessionKind, encode_behind};
use crate::id::{CallNumber, CommandNumber, RenewalNumber, SessionId, Token};
use crate::limits::MAX_CALLS_REMEMBERED;
use crate::name::ResourceName;
use crate::planted::{Bug, planted};

/// What is remembered of the calls of a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    /// No number below this one is wanted any more, or remembered.
    settled: CallNumber,
    /// Up to here nothing that is not remembered is applied any more: there was no room for it, or it was cancelled. Else a call that was
    /// refused could take effect when it arrives once more.
    shut: CallNumber,
    known: BTreeMap<CallNumber, Call>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Call {
    /// Of what was asked; nothing if it was cancelled before it arrived.
    digest: Option<u64>,
    /// The number that the table gave it: its wait, and what that brings, go by this.
    command: CommandNumber,
    outcome: Outcome,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Outcome {
    /// It waits; what its first answer said.
    Waits { ahead: u32, renewal: RenewalNumber },
    /// Its answer, or the grant in which its wait ended.
    Answered { answer: Answer, renewal: RenewalNumber },
    /// Its wait ended without a lease.
    Ended(WaitEnding),
}

impl Calls {
    /// Whether one more call fits, and its number was not refused before.
    fn takes(&self, call: CallNumber) -> bool {
        self.has_room() && call > self.shut
    }

    fn has_room(&self) -> bool {
        self.known.len() < MAX_CALLS_REMEMBERED
    }

    /// Whether this can be of that session.
    pub(super) fn is_whole(&self, session: &Session) -> bool {
        let good = |(number, call): (&CallNumber, &Call)| {
            let waits = matches!(call.outcome, Outcome::Waits { .. });
            *number >= self.settled && (!waits || session.waits.contains_key(&call.command))
        };
        session.kind == SessionKind::Plain
            && self.known.len() <= MAX_CALLS_REMEMBERED
            && self.known.iter().all(good)
    }
}

impl LeaseTable {
    /// A numbered command: known already, not wanted any more, or new.
    pub(super) fn numbered_command(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        numbered: Numbered,
        op: &Op,
    ) -> Reply {
        let session = match self.living(id) {
            Ok(session) if session.kind == SessionKind::Plain => session,
            Ok(_) => return Reply::Refused(Refusal::WrongSessionKind),
            Err(refusal) => return Reply::Refused(refusal),
        };
        let call = numbered.number;
        let settled = session.calls.as_ref().map_or(CallNumber::NONE, |calls| calls.settled);
        let settled = settled.max(numbered.settled);
        if call < settled && !planted(Bug::SettledNumberApplied) {
            return Reply::NumberSettled { call, settled };
        }
        if let Some(settled) = self.cancels_settled(id, op, settled) {
            return settled;
        }
        let digest = digest(op);
        let known = session.calls.as_ref().and_then(|calls| calls.known.get(&call));
        match known.map(|known| known.digest) {
            Some(None) if !matches!(op, Op::Acquire(_)) => {
                return Reply::Refused(Refusal::NumberReused { call });
            }
            Some(Some(other)) if other != digest => {
                return Reply::Refused(Refusal::NumberReused { call });
            }
            Some(_) => {
                self.settle_calls(out, id, settled);
                return self.say_again(id, call);
            }
            None => {}
        }
        let command = match self.admit(id, &Sequence::Plain, Some(op)) {
            Ok(command) => command,
            Err(reply) => return reply,
        };
        self.settle_calls(out, id, settled);
        if matches!(op, Op::Close) {
            self.close(out, id);
            return Reply::Closed;
        }
        let calls = self.calls_mut(id);
        let takes = calls.takes(call);
        let answer = if takes || lets_go(op) {
            self.op(out, id, command, op)
        } else {
            calls.shut = calls.shut.max(call);
            let what = LimitedThing::CallsOfSession;
            Answer::Refused(Refusal::LimitReached { what, limit: MAX_CALLS_REMEMBERED })
        };
        let renewal = self.sessions[&id].renewal;
        let outcome = match answer {
            Answer::Queued { ahead } => Outcome::Waits { ahead, renewal },
            ref answer => Outcome::Answered { answer: answer.clone(), renewal },
        };
        let calls = self.calls_mut(id);
        if takes && calls.has_room() && call >= calls.settled {
            calls.known.insert(call, Call { digest: Some(digest), command, outcome });
        }
        Reply::Plain { number: command, answer, renewal }
    }

    /// What is said of a cancel that names a number which is settled: whether anything came of that is not known any more.
    pub(super) fn cancels_settled(&self, id: SessionId, op: &Op, settled: CallNumber) -> Option<Reply> {
        let Op::CancelCall { call } = *op else { return None };
        let calls = self.sessions.get(&id)?.calls.as_ref();
        let settled = settled.max(calls.map_or(CallNumber::NONE, |calls| calls.settled));
        (call < settled).then_some(Reply::NumberSettled { call, settled })
    }

    /// Forgets the calls below this number. What still waits is not wanted any more.
    fn settle_calls(&mut self, out: &mut Applied, id: SessionId, settled: CallNumber) {
        let calls = self.calls_mut(id);
        if settled <= calls.settled {
            return;
        }
        calls.settled = settled;
        let kept = calls.known.split_off(&settled);
        let gone = core::mem::replace(&mut calls.known, kept);
        let waiting = gone.values().filter(|call| matches!(call.outcome, Outcome::Waits { .. }));
        let mut freed: Vec<ResourceName> = Vec::new();
        for call in waiting {
            freed.extend(self.end_wait(out, id, call.command, WaitEnding::Cancelled));
        }
        if !freed.is_empty() {
            self.serve(out, freed);
        }
    }

    /// The recorded answer.
    fn say_again(&self, id: SessionId, call: CallNumber) -> Reply {
        let session = &self.sessions[&id];
        let known = session.calls.as_ref().and_then(|calls| calls.known.get(&call));
        let Call { command: number, outcome, .. } = known.expect("it was looked up a moment ago");
        let (number, now) = (*number, session.renewal);
        match outcome {
            Outcome::Waits { ahead, renewal } => {
                let (answer, renewal) = (Answer::Queued { ahead: *ahead }, *renewal);
                Reply::PlainRepeated { number, answer, renewal, held: Vec::new() }
            }
            Outcome::Answered { answer, renewal } => {
                let renewal = if planted(Bug::RepeatedWithPresentRenewal) { now } else { *renewal };
                let held = self.still_held(id, answer);
                Reply::PlainRepeated { number, answer: answer.clone(), renewal, held }
            }
            Outcome::Ended(why) => Reply::PlainWaitEnded { number, why: *why },
        }
    }

    /// What is said to a caller that waits under a number, and does so no longer.
    pub fn call_again(&self, id: SessionId, command: CommandNumber) -> Option<Reply> {
        let calls = self.sessions.get(&id)?.calls.as_ref()?;
        let (call, _) = calls.known.iter().find(|(_, known)| known.command == command)?;
        Some(self.say_again(id, *call))
    }

    /// Of the leases in an answer to this session, those that it still holds.
    pub fn still_held(&self, id: SessionId, answer: &Answer) -> Vec<Token> {
        let (Answer::Granted(grants) | Answer::AlreadyGranted(grants)) = answer else { return Vec::new() };
        let held = grants.iter().filter(|grant| self.holds(id, &grant.resource, grant.token));
        held.map(|grant| grant.token).collect()
    }

    /// Gives up what an acquire with this number asked for, or will have asked for when it arrives.
    pub(super) fn cancel_call(
        &mut self,
        out: &mut Applied,
        id: SessionId,
        call: CallNumber,
    ) -> Result<Answer, Refusal> {
        if self.sessions[&id].kind != SessionKind::Plain {
            return Err(Refusal::WrongSessionKind);
        }
        let calls = self.calls_mut(id);
        let Some(Call { command, outcome, .. }) = calls.known.get(&call) else {
            if calls.has_room() {
                let cancelled = Outcome::Ended(WaitEnding::Cancelled);
                let never = Call { digest: None, command: CommandNumber::NONE, outcome: cancelled };
                calls.known.insert(call, never);
            } else {
                calls.shut = calls.shut.max(call);
            }
            return Ok(Answer::Cancelled);
        };
        let command = *command;
        match outcome {
            Outcome::Waits { .. } => {
                let answer = self.cancel(out, id, command)?;
                if answer == Answer::Cancelled {
                    let (session, why) = (id, WaitEnding::Cancelled);
                    Self::event(out, Event::WaitEnded { session, command, why });
                }
                Ok(answer)
            }
            Outcome::Answered { answer: Answer::Refused(_), .. } | Outcome::Ended(_) => Ok(Answer::Cancelled),
            Outcome::Answered { answer: Answer::Granted(_), .. } => self.cancel(out, id, command),
            Outcome::Answered { .. } => Err(Refusal::NoSuchWait { acquire: command }),
        }
    }

    /// A wait ended with everything that it asked for.
    pub(super) fn note_granted(&mut self, id: SessionId, command: CommandNumber, grants: &[Grant]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let renewal = session.renewal;
        if let Some(outcome) = waiting(session, command) {
            *outcome = Outcome::Answered { answer: Answer::Granted(grants.to_vec()), renewal };
        }
    }

    /// A wait ended without a lease.
    pub(super) fn note_wait_ended(&mut self, id: SessionId, command: CommandNumber, why: WaitEnding) {
        if let Some(outcome) = self.sessions.get_mut(&id).and_then(|session| waiting(session, command)) {
            *outcome = Outcome::Ended(why);
        }
    }

    fn calls_mut(&mut self, id: SessionId) -> &mut Calls {
        let session = self.sessions.get_mut(&id).expect("whoever calls has a session");
        session.calls.get_or_insert_with(Box::default)
    }
}

/// What is remembered of the call whose wait this is.
fn waiting(session: &mut Session, command: CommandNumber) -> Option<&mut Outcome> {
    let mut known = session.calls.as_mut()?.known.values_mut();
    let waits = |call: &&mut Call| call.command == command && matches!(call.outcome, Outcome::Waits { .. });
    known.find(waits).map(|call| &mut call.outcome)
}

/// What is carried out also when there is no room to remember it.
const fn lets_go(op: &Op) -> bool {
    matches!(op, Op::Release { .. } | Op::Cancel { .. } | Op::CancelCall { .. } | Op::Close)
}

/// FNV-1a of the bytes that stand in the log: it tells calls of one client apart, which gains nothing from making two alike.
fn digest(op: &Op) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    encode_behind(Vec::new(), op).iter().fold(0xcbf2_9ce4_8422_2325, fold)
}
