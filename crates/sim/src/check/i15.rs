//! I15, definite errors: what was answered "not done" stands in no log. A frame that was sent n times and answered so m times
//! stands there at most n - m times. And a session that is said to be over is over in the log.

use std::collections::{HashMap, HashSet};

use leasehold_core::{Command, Sequence, SessionId};

use super::model::is_over;
use super::{Id, Run, Violation};
use crate::record::{Event, RequestKey, Told, TrueTime};

#[derive(Default)]
struct Count {
    sent: u64,
    failed: u64,
    last_failed: TrueTime,
    logged: u64,
}

/// Counts what was sent, what failed, and what the logs have.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut counts: HashMap<RequestKey, Count> = HashMap::new();
    let mut failed: Vec<RequestKey> = Vec::new();
    let mut not_sent: HashSet<(SessionId, u64)> = HashSet::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::RequestFailed { key, definite: true } => {
                let count = counts.entry(key).or_default();
                if count.failed == 0 {
                    failed.push(key);
                }
                count.failed += 1;
                count.last_failed = *now;
            }
            Event::RequestSent { key } => counts.entry(key).or_default().sent += 1,
            Event::Told { session, command, what: Told::NotSent }
                if !run.story.is_second_of_its_name(session.get(), *now) =>
            {
                not_sent.insert((session, command));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for step in &run.story.steps {
        for command in &step.entry.commands {
            if let Some(count) = RequestKey::of(command).and_then(|key| counts.get_mut(&key)) {
                count.logged += 1;
            }
            if let Command::Session(command) = command
                && let Sequence::Streamed { number, .. } = command.sequence
                && not_sent.contains(&(command.session, number.get()))
                && !run.story.is_second_of_its_name(command.session.get(), step.applied)
            {
                let what =
                    format!("command {number} of session {} was never sent, and is logged", command.session);
                found.push(Violation::new(Id::I15, step.applied, what));
            }
        }
    }
    for key in failed {
        let count = &counts[&key];
        if count.logged + count.failed > count.sent.max(count.failed) {
            let Count { sent, failed, logged, .. } = count;
            let what = format!(
                "{key:?} was sent {sent} times, said to be not done {failed} times, and logged {logged} times"
            );
            found.push(Violation::new(Id::I15, count.last_failed, what));
        }
    }
    found.extend(refused(run));
    found
}

/// Sessions that were said to be over, and were not.
fn refused(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        let Event::SessionRefused { session: id } = event else { continue };
        // A new life of the state has ended what it does not know.
        let is_known = run.story.sessions.contains_key(id);
        if is_known && !is_over(run, *id, *now) && run.excuses.covers_tokens(*now) {
            let what = format!("session {id} was said to be over, and no log has ended it");
            found.push(Violation::new(Id::I15, *now, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};

    fn failed(times: usize, definite: bool) -> Vec<Violation> {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        let key = RequestKey::Command(session, 1, 1);
        // Sent a second time, which got lost.
        stage.push(Event::RequestSent { key });
        for _ in 0..times {
            stage.push(Event::RequestFailed { key, definite });
        }
        stage.check(check)
    }

    #[test]
    fn one_of_two_sendings_may_have_failed() {
        assert_eq!(failed(1, true), []);
        caught(&failed(2, true), "said to be not done 2 times");
    }

    #[test]
    fn unknown_says_nothing() {
        assert_eq!(failed(2, false), []);
    }

    #[test]
    fn a_command_that_was_never_sent_and_is_logged_is_found() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage.told(session, 2, Told::NotSent);
        assert_eq!(stage.check(check), []);
        stage.told(session, 1, Told::NotSent);
        caught(&stage.check(check), "was never sent");
    }

    #[test]
    fn a_session_that_is_said_to_be_over_must_be() {
        let refused = |tidied: bool| {
            let mut stage = Stage::new();
            let session = stage.open(1);
            if tidied {
                let due = vec![leasehold_core::Due::Session(session)];
                stage.at(5_000).commit(vec![Command::Tidy(due)]);
            }
            stage.at(5_001).push(Event::SessionRefused { session });
            stage.check(check)
        };
        assert_eq!(refused(true), []);
        caught(&refused(false), "was said to be over");
    }
}
