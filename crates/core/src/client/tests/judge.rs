//! Compares what machines tell their applications with what the service did.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use crate::answer::{Answer, Item, ItemKind};
use crate::client::{Event, Outcome};
use crate::command::{Op, Sequence, SessionCommand};
use crate::id::{CommandNumber, SessionId};

#[derive(Default)]
struct Told {
    op: Option<Op>,
    outcome: Option<Outcome>,
    wait_over: bool,
}

/// Everything submitted through one machine. Keyed by the client and the number of its machine, because a session is known only
/// once it is open.
#[derive(Default)]
pub(super) struct Judge {
    told: BTreeMap<(usize, u64), BTreeMap<CommandNumber, Told>>,
    sessions: BTreeMap<(usize, u64), SessionId>,
    /// What the service has received and answered.
    received: BTreeMap<(SessionId, CommandNumber), Op>,
    answers: BTreeMap<(SessionId, CommandNumber), Answer>,
    last_applied: BTreeMap<SessionId, CommandNumber>,
    pub(super) resolved: u64,
    pub(super) unknown: u64,
}

type Verdict = Result<(), String>;

impl Judge {
    pub(super) fn submitted(&mut self, who: (usize, u64), number: CommandNumber, op: &Op) -> Verdict {
        let told = self.told.entry(who).or_default().entry(number).or_default();
        expect(told.op.replace(op.clone()).is_none(), || format!("{who:?}: number {number} was given twice"))
    }

    pub(super) fn received(&mut self, command: &SessionCommand) -> Verdict {
        let Sequence::Streamed { number, .. } = command.sequence else { return Ok(()) };
        let first = self.received.entry((command.session, number)).or_insert_with(|| command.op.clone());
        expect(*first == command.op, || format!("{}: command {number} changed its meaning", command.session))
    }

    pub(super) fn applied(&mut self, session: SessionId, number: CommandNumber) -> Verdict {
        let last = self.last_applied.insert(session, number).unwrap_or_default();
        expect(number == last.next(), || format!("{session}: command {number} was applied after {last}"))
    }

    pub(super) fn arose(&mut self, session: SessionId, item: &Item) {
        if let ItemKind::Answer { command, answer } = &item.kind {
            self.answers.insert((session, *command), answer.clone());
        }
    }

    pub(super) fn learned(&mut self, who: (usize, u64), event: &Event) -> Verdict {
        match event {
            Event::Opened { session } => {
                self.sessions.insert(who, *session);
                Ok(())
            }
            Event::Resolved { command, outcome } => self.resolve(who, *command, outcome),
            Event::WaitOver { command, .. } => {
                let told = self.told.entry(who).or_default().entry(*command).or_default();
                let began = matches!(told.outcome, Some(Outcome::Answered(Answer::Queued { .. })));
                expect(began, || format!("{who:?}: a wait {command} ended that had not begun"))?;
                expect(!told.wait_over, || format!("{who:?}: the wait {command} ended twice"))?;
                told.wait_over = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn resolve(&mut self, who: (usize, u64), command: CommandNumber, outcome: &Outcome) -> Verdict {
        let all = self.told.entry(who).or_default();
        if matches!(outcome, Outcome::Answered(_) | Outcome::Cancelled) {
            // Cancels that the application submitted and all else: answers come in the order of the commands.
            let open_before = all.range(..command).find(|(_, told)| told.outcome.is_none());
            expect(open_before.is_none(), || {
                format!("{who:?}: {command} was answered before an earlier one")
            })?;
        }
        let told = all.entry(command).or_default();
        expect(told.op.is_some(), || format!("{who:?}: {command} was resolved but never submitted"))?;
        expect(told.outcome.is_none(), || format!("{who:?}: {command} was resolved twice"))?;
        told.outcome = Some(outcome.clone());
        self.resolved += 1;
        let place = self.sessions.get(&who).map(|session| (*session, command));
        let answer = place.and_then(|place| self.answers.get(&place));
        match outcome {
            Outcome::Answered(told) => expect(Some(told) == answer, || {
                format!("{who:?}: {command} told {told:?} instead of {answer:?}")
            }),
            Outcome::Cancelled => expect(matches!(answer, Some(Answer::Granted(_))), || {
                format!("{who:?}: {command} told cancelled, but the answer was {answer:?}")
            }),
            Outcome::NotSent => expect(place.is_none_or(|place| !self.received.contains_key(&place)), || {
                format!("{who:?}: {command} was told not sent, but arrived")
            }),
            Outcome::Unknown => {
                self.unknown += 1;
                Ok(())
            }
            Outcome::Closed => Ok(()),
        }
    }

    /// After the faults are over, nothing is left without a word.
    pub(super) fn check_all_resolved(&self) -> Verdict {
        for (who, all) in &self.told {
            for (command, told) in all {
                let op = &told.op;
                expect(told.outcome.is_some(), || format!("{who:?}: {command} was never resolved: {op:?}"))?;
            }
        }
        Ok(())
    }
}

pub(super) fn expect(holds: bool, words: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(words()) }
}
