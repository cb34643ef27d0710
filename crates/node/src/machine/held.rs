//! Changes for watchers, and answers for callers that are kept waiting.

use leasehold_core::protocol::{Change, Changes, Response};
use leasehold_core::{
    Answer, Applied, Command, Event, Op, Refusal, Reply, Revision, Sequence, SessionCommand, SessionId,
    WaitEnding,
};

use super::intake::{respond, unavailable};
use super::{Node, Output};
use crate::holds::{Call, Queued, WaitId};

impl Node {
    /// Hands out and keeps what watchers see of an entry.
    pub(super) fn publish(&mut self, out: &mut Vec<Output>, index: u64, applied: &Applied) {
        let changes: Vec<Change> = applied.events.iter().filter_map(Change::of).collect();
        if !changes.is_empty() {
            self.stats.changes += changes.len() as u64;
            let revision = Revision::new(index);
            out.push(Output::Changed(self.changes.push(Changes { revision, changes })));
        }
    }

    /// Answers a call, unless it is to be kept waiting.
    pub(super) fn answer(&mut self, out: &mut Vec<Output>, call: Call, command: &Command, reply: Reply) {
        let queued = match &reply {
            Reply::Plain { number, answer: Answer::Queued { .. }, .. } => Some((*number, false)),
            Reply::PlainRepeated { number, answer: Answer::Queued { .. }, .. } => Some((*number, true)),
            _ => None,
        };
        if let (Command::Session(command), Some((number, again))) = (command, queued) {
            let wait = (command.session, number);
            match self.holds.queued(call, wait, again) {
                Queued::NotHeld => {}
                // Its caller goes on elsewhere, by its number.
                Queued::Held if self.draining && matches!(command.sequence, Sequence::Numbered(_)) => {}
                Queued::Held => {
                    if self.draining {
                        self.push_own([crate::holds::cancel(wait)]);
                    }
                    return;
                }
                Queued::Cancel(cancel) => return self.push_own([cancel]),
            }
        }
        self.holds.forget(call);
        respond(out, call.0, call.1, Response::Reply(reply));
    }

    /// Answers whoever is kept waiting for something that this entry decided. Waits that were queued by the same entry are known by
    /// now: it may have granted them as well.
    pub(super) fn answer_held(
        &mut self,
        out: &mut Vec<Output>,
        events: Vec<Event>,
        cancelled: Vec<(WaitId, bool)>,
    ) {
        for event in events {
            match event {
                Event::WaitGranted { session, command, grants } => {
                    self.answer_granted(out, (session, command), grants);
                }
                Event::WaitEnded { session, command, why } => {
                    self.answer_ended(out, (session, command), why);
                }
                Event::SessionEnded { session } => {
                    self.routes.end_session(session);
                    for (connection, id) in self.holds.end_session(session) {
                        respond(out, connection, id, ended(session));
                    }
                }
                _ => {}
            }
        }
        for (wait, withdrawn) in cancelled {
            if !withdrawn {
                self.answer_ended(out, wait, WaitEnding::Cancelled);
            } else {
                for ((connection, id), _) in self.holds.end(wait) {
                    let why = "the service is stopping; the wait was withdrawn";
                    respond(out, connection, id, unavailable(why));
                }
            }
        }
    }

    fn answer_granted(&mut self, out: &mut Vec<Output>, wait: WaitId, grants: Vec<leasehold_core::Grant>) {
        let (session, number) = wait;
        let answer = Answer::Granted(grants);
        for ((connection, id), again) in self.holds.end(wait) {
            let answer = answer.clone();
            // A session that ended in the very entry that granted has nothing.
            let response = match self.table.renewal(session) {
                Some(renewal) if again => {
                    let held = self.table.still_held(session, &answer);
                    Response::Reply(Reply::PlainRepeated { number, answer, renewal, held })
                }
                Some(renewal) => Response::Reply(Reply::Plain { number, answer, renewal }),
                None => ended(session),
            };
            respond(out, connection, id, response);
        }
    }

    fn answer_ended(&mut self, out: &mut Vec<Output>, wait: WaitId, why: WaitEnding) {
        for ((connection, id), _) in self.holds.end(wait) {
            respond(out, connection, id, Response::Reply(Reply::PlainWaitEnded { number: wait.1, why }));
        }
    }
}

fn ended(session: SessionId) -> Response {
    Response::Reply(Reply::Refused(Refusal::SessionEnded { session }))
}

/// The wait that a command gives up, if it is a cancel.
pub(super) const fn cancelled_wait(command: &Command) -> Option<WaitId> {
    match command {
        Command::Session(SessionCommand { session, op: Op::Cancel { acquire }, .. }) => {
            Some((*session, *acquire))
        }
        _ => None,
    }
}
