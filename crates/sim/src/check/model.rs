//! Model replay: what clients heard is what replaying the committed log gives, and what the table did is what a naive table does.
//!
//! The naive table is the one that the core's own properties use: the rules written down a second time, without indexes.

use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

use leasehold_core::{Answer, Event as TableEvent, Item, Refusal, Reply, SessionId, WaitEnding};
use leasehold_oracle::Naive;

use super::story::inherited;
use super::{Id, Run, Violation};
use crate::record::{Event, Replied, RequestKey, TrueTime};

/// Compares every reply and item that reached a client with the replay by a fresh table.
pub fn check_replies(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let heard: HashSet<RequestKey> = run.record.replies.iter().map(|replied| replied.key).collect();
    let mut given: HashMap<RequestKey, Vec<(&Reply, TrueTime)>> = HashMap::new();
    let mut items: HashMap<(SessionId, u64), &Item> = HashMap::new();
    for step in &run.story.steps {
        for (command, reply) in step.entry.commands.iter().zip(&step.outcome.replies) {
            if let Some(key) = RequestKey::of(command).filter(|key| heard.contains(key)) {
                given.entry(key).or_default().push((reply, step.applied));
            }
        }
        for (session, item) in &step.outcome.items {
            items.entry((*session, item.number.get())).or_insert(item);
        }
    }
    let waits = Waits::of(run);
    for replied in run.record.replies.iter().filter(|replied| run.excuses.covers_files(replied.at)) {
        // An answer that comes before its entry is applied anywhere is an answer before the commit.
        let gave = |(reply, applied): &(&Reply, TrueTime)| **reply == replied.reply && *applied <= replied.at;
        let in_log = given.get(&replied.key).is_some_and(|given| given.iter().any(gave));
        if !in_log && !waits.gave(replied) && !is_before_the_log(run, replied) {
            let what = format!(
                "{:?} was answered {:?}, which no entry had given by then",
                replied.key, replied.reply
            );
            found.push(Violation::new(Id::Model, replied.at, what));
        }
    }
    for received in run.record.items.iter().filter(|received| run.excuses.covers_files(received.at)) {
        let known = items.get(&(received.session, received.item.number.get()));
        if known != Some(&&received.item) {
            let (session, item) = (received.session, &received.item);
            let what = format!("session {session} got {item:?}, and the log gave {known:?}");
            found.push(Violation::new(Id::Model, received.at, what));
        }
    }
    found
}

/// How waits ended for callers of plain sessions that were kept waiting: granted, or for a reason.
struct Waits {
    waits: HashSet<(SessionId, u64, Option<Discriminant<WaitEnding>>)>,
    /// Those that there were: a node that goes tells callers by number that theirs runs on.
    queued: HashSet<(SessionId, u64)>,
}

impl Waits {
    fn of(run: Run<'_>) -> Self {
        let (mut waits, mut queued) = (HashSet::new(), HashSet::new());
        for step in &run.story.steps {
            for event in &step.outcome.events {
                match event {
                    TableEvent::WaitGranted { session, command, .. } => {
                        waits.insert((*session, command.get(), None));
                    }
                    TableEvent::WaitEnded { session, command, why } => {
                        waits.insert((*session, command.get(), Some(discriminant(why))));
                    }
                    _ => {}
                }
            }
            for (command, number, answer) in step.answers() {
                if let Answer::Queued { .. } = answer {
                    queued.insert((command.session, number));
                }
                if let (leasehold_core::Op::Cancel { acquire }, Answer::Cancelled) = (&command.op, answer) {
                    waits.insert((
                        command.session,
                        acquire.get(),
                        Some(discriminant(&WaitEnding::Cancelled)),
                    ));
                }
            }
        }
        Self { waits, queued }
    }

    fn gave(&self, replied: &Replied) -> bool {
        let RequestKey::Plain(session, _) = replied.key else { return false };
        let wait = match &replied.reply {
            Reply::Plain { number, answer: Answer::Granted(_), .. }
            | Reply::PlainRepeated { number, answer: Answer::Granted(_), .. } => {
                (session, number.get(), None)
            }
            Reply::PlainRepeated { number, answer: Answer::Queued { .. }, .. } => {
                return self.queued.contains(&(session, number.get()));
            }
            Reply::PlainWaitEnded { number, why } => (session, number.get(), Some(discriminant(why))),
            _ => return false,
        };
        self.waits.contains(&wait)
    }
}

/// Whether a reply may have been given without an entry: the session is over, or of the other kind.
fn is_before_the_log(run: Run<'_>, replied: &Replied) -> bool {
    match replied.reply {
        Reply::Refused(Refusal::SessionEnded { session }) => is_over(run, session, replied.at),
        Reply::Refused(Refusal::WrongSessionKind | Refusal::NotYetInUse) => true,
        _ => false,
    }
}

/// Whether a session was over at a moment: ended by an entry or by another life of the state, or past its hard limit.
pub fn is_over(run: Run<'_>, id: SessionId, moment: TrueTime) -> bool {
    let Some(session) = run.story.sessions.get(&id) else { return false };
    let by_event = session.over.is_some_and(|step| run.story.time(step) <= moment);
    let in_later_life = run.record.events.iter().any(
        |(now, event)| matches!(event, Event::Restored { log, .. } if *log > session.log && *now <= moment),
    );
    // Past its hard limit it is over, tidied up or not.
    let steps = &run.story.steps;
    let first = steps.partition_point(|step| step.log < session.log);
    let until = steps.partition_point(|step| {
        step.log < session.log || (step.log == session.log && step.applied <= moment)
    });
    let past_hard = until > first
        && run
            .story
            .overdue_after(id, until - 1)
            .is_some_and(|overdue| run.story.at(until - 1) > overdue.plus(session.policies.hard));
    by_event || in_later_life || past_hard
}

/// Compares what the table did with what a naive one does, log by log.
pub fn check_naive(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut steps = run.story.steps.iter().peekable();
    for (log, _) in run.record.lives() {
        let mut naive = Naive::new(run.record.config.clone());
        for committed in inherited(run.record, log) {
            if let Some(entry) = &committed.entry {
                naive.apply(entry);
            }
        }
        let mut is_right = true;
        while let Some(step) = steps.next_if(|step| step.log == log) {
            if !is_right {
                continue;
            }
            let (expected, did) = (naive.apply(step.entry), &step.outcome);
            is_right = is_same(&expected, did);
            if !is_right {
                let what = format!("entry {}: {}", step.index, difference(&expected, did));
                found.push(Violation::new(Id::Model, step.applied, what));
            }
        }
    }
    found
}

/// Notes on gaps are for meters: the naive table keeps no gaps. They have a model of their own, in the simulated day of the core's tests.
fn is_same(expected: &leasehold_core::Applied, did: &leasehold_core::Applied) -> bool {
    expected.replies == did.replies && expected.items == did.items && expected.events == did.events
}

fn difference(expected: &leasehold_core::Applied, did: &leasehold_core::Applied) -> String {
    if expected.replies != did.replies {
        return format!("the table replied {:?}, the naive one {:?}", did.replies, expected.replies);
    }
    if expected.items != did.items {
        return format!("the table gave items {:?}, the naive one {:?}", did.items, expected.items);
    }
    format!("the table gave events {:?}, the naive one {:?}", did.events, expected.events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use crate::check::story::Story;
    use leasehold_core::ItemNumber;

    fn stage() -> (Stage, SessionId) {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        stage.at(500).renew(second, &[]);
        stage.release(first, token).unwrap();
        (stage, first)
    }

    #[test]
    fn what_the_log_gave_is_right() {
        let (stage, _) = stage();
        assert_eq!(stage.check(check_replies), []);
        assert_eq!(stage.check(check_naive), []);
    }

    #[test]
    fn a_reply_that_no_entry_gave_is_found() {
        let (mut stage, _) = stage();
        let last = stage.record.replies.last_mut().unwrap();
        let Reply::Renewed(renewed) = &mut last.reply else { panic!("{last:?}") };
        renewed.after = ItemNumber::NONE;
        caught(&stage.check(check_replies), "which no entry had given by then");
    }

    #[test]
    fn a_reply_before_its_entry_is_applied_is_found() {
        for (answered, is_right) in [(799, false), (800, true)] {
            let (mut stage, session) = stage();
            let (number, command) = stage.at(600).renewal(session);
            let applied = stage.at(800).commit(vec![command]);
            let (at, key) = (TrueTime(answered * 1_000_000), RequestKey::Renew(session, number));
            stage.record.replied(at, key, applied.replies[0].clone());
            assert_eq!(stage.check(check_replies).is_empty(), is_right, "at {answered} ms");
        }
    }

    #[test]
    fn an_item_that_is_not_the_logs_is_found() {
        let (mut stage, _) = stage();
        let last = stage.record.items.last_mut().unwrap();
        last.item.number = last.item.number.next();
        caught(&stage.check(check_replies), "and the log gave None");
        let (mut stage, _) = self::stage();
        stage.record.items[0].item.kind = stage.record.items[1].item.kind.clone();
        caught(&stage.check(check_replies), "and the log gave Some");
    }

    #[test]
    fn a_living_session_that_is_said_to_have_ended_is_found() {
        for (millis, count) in [(900, 1), (1_500, 0)] {
            let (mut stage, session) = stage();
            stage.at(millis).commit(Vec::new());
            let reply = Reply::Refused(Refusal::SessionEnded { session });
            stage.record.replied(stage.now, RequestKey::Renew(session, 1), reply);
            assert_eq!(stage.check(check_replies).len(), count, "at {millis}");
        }
    }

    #[test]
    fn a_table_that_does_something_else_than_the_naive_one_is_found() {
        let (stage, _) = stage();
        let tamper = |story: &mut Story<'_>| {
            story.steps.last_mut().unwrap().outcome.events.pop();
        };
        caught(&stage.tampered(tamper, check_naive), "the naive one");
    }
}
