//! Calls of plain sessions that have numbers: applied once, answered the same again.

use leasehold_core::Numbered;
use leasehold_core::answer::LimitedThing;

use super::*;

/// How many are remembered.
const MOST: usize = 64;

impl Naive {
    pub(super) fn numbered_command(&mut self, id: SessionId, numbered: Numbered, op: &Op) -> Reply {
        let call = numbered.number;
        let session = self.session(id).expect("it is not over");
        if session.kind == SessionKind::Streamed {
            return Reply::Refused(Refusal::WrongSessionKind);
        }
        let settled = numbered.settled.max(session.settled);
        if call < settled {
            return Reply::NumberSettled { call, settled };
        }
        if let Some(reply) = self.cancels_settled(id, op, settled) {
            return reply;
        }
        if let Some(known) = self.known(id, call).cloned() {
            let same = match &known.op {
                Some(other) => other == op,
                None => matches!(op, Op::Acquire(_)),
            };
            if !same {
                return Reply::Refused(Refusal::NumberReused { call });
            }
            self.settle_calls(id, settled);
            return self.said_before(id, call);
        }
        let command = {
            let session = self.session_mut(id).expect("it is not over");
            session.last_command += 1;
            CommandNumber::new(session.last_command)
        };
        self.settle_calls(id, settled);
        let session = self.session(id).expect("settling ends no session");
        let takes = session.calls.len() < MOST && call > session.shut;
        let lets_go =
            matches!(op, Op::Release { .. } | Op::Cancel { .. } | Op::CancelCall { .. } | Op::Close);
        if matches!(op, Op::Close) {
            self.end_session(id, &Ending::SessionClosed, &mut usize::MAX.clone());
            return Reply::Closed;
        }
        let answer = if takes || lets_go {
            self.op(id, command, op)
        } else {
            let session = self.session_mut(id).expect("nothing ended it");
            session.shut = session.shut.max(call);
            Answer::Refused(Refusal::LimitReached { what: LimitedThing::CallsOfSession, limit: MOST })
        };
        let session = self.session_mut(id).expect("only a close ends the own session");
        let renewal = RenewalNumber::new(session.renewal);
        if takes && session.calls.len() < MOST {
            let (op, answer) = (Some(op.clone()), Ok(answer.clone()));
            session.calls.push(NumberedCall { number: call, op, command, renewal, answer });
        }
        Reply::Plain { number: command, answer, renewal }
    }

    pub(super) fn cancels_settled(&self, id: SessionId, op: &Op, settled: CallNumber) -> Option<Reply> {
        let Op::CancelCall { call } = *op else { return None };
        let settled = self.session(id)?.settled.max(settled);
        (call < settled).then_some(Reply::NumberSettled { call, settled })
    }

    fn known(&self, id: SessionId, call: CallNumber) -> Option<&NumberedCall> {
        self.session(id)?.calls.iter().find(|known| known.number == call)
    }

    fn settle_calls(&mut self, id: SessionId, settled: CallNumber) {
        let session = self.session_mut(id).expect("it is not over");
        session.settled = session.settled.max(settled);
        let mut gone: Vec<NumberedCall> =
            session.calls.extract_if(.., |call| call.number < settled).collect();
        gone.sort_by_key(|call| call.number);
        let mut freed = Vec::new();
        for call in gone {
            let is_it = |wait: &&Wait| (wait.session, wait.command) == (id, call.command);
            if let Some(wait) = self.waits.iter().find(is_it).cloned() {
                self.end_wait(&wait, WaitEnding::Cancelled);
                freed.extend(wait.requests.into_iter().map(|request| request.resource));
            }
        }
        if !freed.is_empty() {
            self.serve(freed);
        }
    }

    fn said_before(&self, id: SessionId, call: CallNumber) -> Reply {
        let known = self.known(id, call).expect("it was just looked up");
        let number = known.command;
        let answer = match &known.answer {
            Ok(answer) => answer.clone(),
            Err(why) => return Reply::PlainWaitEnded { number, why: *why },
        };
        let is_held = |grant: &&Grant| {
            let lease = self.lease(&grant.resource, grant.token);
            lease.is_some_and(|lease| lease.session == id && lease.revoked.is_none())
        };
        let held = match &answer {
            Answer::Granted(grants) | Answer::AlreadyGranted(grants) => {
                grants.iter().filter(is_held).map(|grant| grant.token).collect()
            }
            _ => Vec::new(),
        };
        Reply::PlainRepeated { number, answer, renewal: known.renewal, held }
    }

    pub(super) fn cancel_call(&mut self, id: SessionId, call: CallNumber) -> Result<Answer, Refusal> {
        let session = self.session_mut(id).expect("it was admitted");
        if session.kind == SessionKind::Streamed {
            return Err(Refusal::WrongSessionKind);
        }
        let Some(known) = session.calls.iter().find(|known| known.number == call).cloned() else {
            let (number, command, renewal) = (call, CommandNumber::NONE, RenewalNumber::NONE);
            if session.calls.len() < MOST {
                let answer = Err(WaitEnding::Cancelled);
                session.calls.push(NumberedCall { number, op: None, command, renewal, answer });
            } else {
                session.shut = session.shut.max(call);
            }
            return Ok(Answer::Cancelled);
        };
        match (known.op, known.answer) {
            (_, Err(_) | Ok(Answer::Refused(_))) => Ok(Answer::Cancelled),
            (Some(Op::Acquire(_)), Ok(answer)) => {
                let cancelled = self.cancel(id, known.command)?;
                if matches!((&answer, &cancelled), (Answer::Queued { .. }, Answer::Cancelled)) {
                    let (session, command, why) = (id, known.command, WaitEnding::Cancelled);
                    self.out.events.push(Event::WaitEnded { session, command, why });
                }
                Ok(cancelled)
            }
            _ => Err(Refusal::NoSuchWait { acquire: known.command }),
        }
    }

    /// A wait is over, with a grant or without.
    pub(super) fn note_wait_over(
        &mut self,
        id: SessionId,
        command: CommandNumber,
        how: Result<Answer, WaitEnding>,
    ) {
        let Some(session) = self.session_mut(id) else { return };
        let renewal = RenewalNumber::new(session.renewal);
        let waits = |call: &&mut NumberedCall| {
            call.command == command && matches!(call.answer, Ok(Answer::Queued { .. }))
        };
        if let Some(call) = session.calls.iter_mut().find(waits) {
            (call.answer, call.renewal) = (how, renewal);
        }
    }
}
