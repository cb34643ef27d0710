//! Numbered calls of plain sessions: each is applied once, a settled one never, and sent again it is answered as the first time. No lease is
//! left that is neither known to its client nor of a number that the client has not settled; and soon after the last fault its client
//! knows each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leasehold_core::{
    Answer, CallNumber, Command, Event as TableEvent, Numbered, Op, RenewalNumber, Reply, Sequence,
    SessionId, Token,
};

use super::story::Step;
use super::{Id, Run, Violation};
use crate::record::{Event, LogId, TrueTime};
use crate::trace::SECOND;

/// A client hears of its leases from its next renewal, which may be lost once.
const NEWS: u64 = 5 * SECOND;

/// Follows the numbers of each session through the log.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut known: HashMap<Token, TrueTime> = HashMap::new();
    for (now, event) in &run.record.events {
        if let Event::PlainKnows { token, .. } = event {
            known.entry(*token).or_insert(*now);
        }
    }
    let mut found = Vec::new();
    let mut sessions: BTreeMap<(LogId, SessionId), Numbers> = BTreeMap::new();
    for step in &run.story.steps {
        for (command, reply) in step.entry.commands.iter().zip(&step.outcome.replies) {
            if let (
                Command::Renew { session, .. } | Command::RenewPlain { session },
                Reply::Renewed(renewed),
            ) = (command, reply)
            {
                sessions.entry((step.log, *session)).or_default().renewal = renewed.number;
            }
        }
        let mut wrong = |what: String| found.push(Violation::new(Id::Numbers, step.applied, what));
        for (command, reply) in step.entry.commands.iter().zip(&step.outcome.replies) {
            let Command::Session(command) = command else { continue };
            let Sequence::Numbered(numbered) = command.sequence else { continue };
            let numbers = sessions.entry((step.log, command.session)).or_default();
            let id = command.session;
            if let Some(what) = numbers.judge(numbered, &command.op, reply) {
                wrong(format!("call {} of session {id} {what}", numbered.number));
            }
            let knows = |token: &Token| known.get(token).is_some_and(|since| *since <= step.applied);
            if let Some((token, number)) = numbers.ghost(knows) {
                wrong(format!(
                    "session {id} has settled number {number}, and its client does not know of token {token}"
                ));
            }
        }
        note_events(&mut sessions, step);
    }
    found.extend(unknown(run, &known));
    found
}

/// What is known of one session.
#[derive(Default)]
struct Numbers {
    settled: CallNumber,
    renewal: RenewalNumber,
    /// What calls were answered, and with which renewal.
    answers: BTreeMap<CallNumber, (Answer, RenewalNumber)>,
    /// By command, the acquires that wait.
    waits: BTreeMap<u64, CallNumber>,
    /// Leases that are held, by the call that brought them.
    held: BTreeMap<Token, CallNumber>,
    told: BTreeSet<Token>,
}

impl Numbers {
    /// What is wrong with the reply to a call.
    fn judge(&mut self, numbered: Numbered, op: &Op, reply: &Reply) -> Option<&'static str> {
        let call = numbered.number;
        match reply {
            Reply::Plain { number, answer, renewal } => {
                let wrong = if call < self.settled {
                    Some("was applied though it was settled")
                } else if self.answers.contains_key(&call) {
                    Some("was applied twice")
                } else {
                    None
                };
                self.settled = self.settled.max(numbered.settled);
                self.answers = self.answers.split_off(&self.settled);
                if matches!(answer, Answer::Queued { .. }) {
                    self.waits.insert(number.get(), call);
                }
                if let (Op::Acquire(_), Answer::Granted(grants)) = (op, answer) {
                    self.held.extend(grants.iter().map(|grant| (grant.token, call)));
                }
                self.answers.insert(call, (answer.clone(), *renewal));
                wrong
            }
            Reply::PlainRepeated { answer, renewal, .. } => {
                self.settled = self.settled.max(numbered.settled);
                let first = self.answers.get(&call);
                let same = first.is_some_and(|(first, counted)| (first, counted) == (answer, renewal));
                (!same).then_some("was answered otherwise when it was sent again")
            }
            _ => None,
        }
    }

    /// A lease of a settled number that its client does not know. Each is told once.
    fn ghost(&mut self, knows: impl Fn(&Token) -> bool) -> Option<(Token, CallNumber)> {
        let settled = self.settled;
        let ghost = |(token, number): (&Token, &CallNumber)| {
            (*number < settled && !knows(token) && !self.told.contains(token)).then_some((*token, *number))
        };
        let found = self.held.iter().find_map(ghost);
        self.told.extend(found.map(|(token, _)| token));
        found
    }
}

fn note_events(sessions: &mut BTreeMap<(LogId, SessionId), Numbers>, step: &Step<'_>) {
    for event in &step.outcome.events {
        match event {
            TableEvent::WaitGranted { session, command, grants } => {
                let Some(numbers) = sessions.get_mut(&(step.log, *session)) else { continue };
                let Some(call) = numbers.waits.remove(&command.get()) else { continue };
                numbers.held.extend(grants.iter().map(|grant| (grant.token, call)));
                let renewal = numbers.renewal;
                if let Some(first) = numbers.answers.get_mut(&call) {
                    *first = (Answer::Granted(grants.clone()), renewal);
                }
            }
            TableEvent::Ended { token, session, .. } => {
                if let Some(numbers) = sessions.get_mut(&(step.log, *session)) {
                    numbers.held.remove(token);
                }
            }
            _ => {}
        }
    }
}

/// Leases of living plain sessions that their clients do not know long after the last fault.
fn unknown(run: Run<'_>, known: &HashMap<Token, TrueTime>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let end = run.record.end();
    let is_plain = |session: &SessionId| {
        run.record.events.iter().any(
            |(_, event)| matches!(event, Event::PlainRenewed { session: renewed, .. } if renewed == session),
        )
    };
    let lost = run.story.leases.iter().filter(|lease| {
        let late = end.since(run.story.time(lease.step).max(healthy)) > NEWS;
        late && lease.end.is_none() && !known.contains_key(&lease.token) && run.waits_for_news(lease.session)
    });
    lost.filter(|lease| is_plain(&lease.session))
        .map(|lease| {
            let what =
                format!("token {} of session {} is not known to its client", lease.token, lease.session);
            Violation::new(Id::Numbers, end, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, acquire_of, caught, release_of};
    use crate::check::story::Story;
    use crate::record::ClientId;
    use leasehold_core::table::NUMBERS_CALLS;
    use leasehold_core::{Label, Millis, Nonce, Open, Policies, SessionCommand, SessionKind, System};

    fn plain(stage: &mut Stage) -> SessionId {
        let version = System::ClusterVersion { version: NUMBERS_CALLS };
        let (ttl, policies) = (Millis::new(10_000), Policies::default());
        let (nonce, label, kind) = (Nonce([7; 16]), Label::new("p").unwrap(), SessionKind::Plain);
        let open = Open { nonce, label, ttl, policies, kind };
        let applied = stage.commit(vec![Command::System(version), Command::Open(open)]);
        let Reply::Opened(opened) = &applied.replies[1] else { panic!("{applied:?}") };
        let (client, session, first_sent) = (ClientId(1), opened.session, TrueTime::ZERO);
        stage.push(Event::SessionOpened { client, session, ttl_ms: 10_000, usable_ms: 9_000, first_sent });
        session
    }

    fn call(session: SessionId, number: u64, settled: u64, op: Op) -> Command {
        let (number, settled) = (CallNumber::new(number), CallNumber::new(settled));
        let sequence = Sequence::Numbered(Numbered { number, settled });
        Command::Session(SessionCommand { session, sequence, op })
    }

    fn acquire() -> Op {
        Op::Acquire(acquire_of(0))
    }

    /// An acquire, sent twice, and the token that it brought.
    fn acquired() -> (Stage, SessionId, Token) {
        let mut stage = Stage::new();
        let session = plain(&mut stage);
        let acquire = call(session, 1, 0, acquire());
        let applied = stage.at(10).commit(vec![acquire.clone()]);
        let Reply::Plain { answer: Answer::Granted(grants), .. } = &applied.replies[0] else {
            panic!("{applied:?}")
        };
        let token = grants[0].token;
        stage.at(20).commit(vec![Command::RenewPlain { session }]);
        stage.at(30).commit(vec![acquire]);
        (stage, session, token)
    }

    fn last_reply(reply: impl FnOnce(&mut Reply)) -> impl FnOnce(&mut Story<'_>) {
        |story| reply(&mut story.steps.last_mut().unwrap().outcome.replies[0])
    }

    #[test]
    fn a_repetition_with_another_renewal_is_found() {
        let (stage, ..) = acquired();
        assert_eq!(stage.check(check), []);
        let later = last_reply(|reply| {
            if let Reply::PlainRepeated { renewal, .. } = reply {
                *renewal = renewal.next();
            }
        });
        caught(&stage.tampered(later, check), "was answered otherwise");
    }

    #[test]
    fn a_call_that_is_applied_again_or_though_it_was_settled_is_found() {
        let (mut stage, session, token) = acquired();
        let done = |reply: &mut Reply| {
            let (number, renewal) = (leasehold_core::CommandNumber::new(9), RenewalNumber::NONE);
            *reply = Reply::Plain { number, answer: Answer::Released, renewal };
        };
        caught(&stage.tampered(last_reply(done), check), "was applied twice");
        stage.push(Event::PlainKnows { session, token });
        stage.at(40).commit(vec![call(session, 2, 2, release_of(token))]);
        stage.at(50).commit(vec![call(session, 1, 0, acquire())]);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(last_reply(done), check), "was applied though it was settled");
    }

    #[test]
    fn a_lease_of_a_settled_number_must_be_known() {
        let (mut stage, session, token) = acquired();
        let other = Op::Release { resource: crate::check::stage::name(1), token, drained: false };
        stage.at(40).commit(vec![call(session, 2, 2, other.clone())]);
        caught(&stage.check(check), "has settled number 1");
        let (mut stage, session, token) = acquired();
        stage.push(Event::PlainKnows { session, token });
        stage.at(40).commit(vec![call(session, 2, 2, other)]);
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn a_lease_that_stays_unknown_is_found() {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        let session = plain(stage.at(39_000));
        let applied =
            stage.at(40_000).commit(vec![Command::RenewPlain { session }, call(session, 1, 0, acquire())]);
        let Reply::Plain { answer: Answer::Granted(grants), .. } = &applied.replies[1] else {
            panic!("{applied:?}")
        };
        let token = grants[0].token;
        stage.push(Event::PlainRenewed { session, number: 1, sent: TrueTime::ZERO });
        stage.at(45_000).push(Event::Ended);
        assert_eq!(stage.check(check), [], "there may still be time");
        stage.at(45_001).push(Event::Ended);
        caught(&stage.check(check), "is not known to its client");
        stage.push(Event::PlainKnows { session, token });
        assert_eq!(stage.check(check), []);
    }
}
