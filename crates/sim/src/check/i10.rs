//! I10, reads: what a read shows is what the log says at the revision it names, and that revision is not behind anything that
//! anybody had heard when the read was asked for.

use std::collections::{BTreeMap, HashMap};

use super::{Id, Run, Violation};
use crate::record::{Event, LogId, ResourceId, TrueTime};

/// Checks every read.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut heard = heard(run);
    heard.sort_unstable();
    let mut heard = heard.into_iter().peekable();
    let mut newest: BTreeMap<LogId, u64> = BTreeMap::new();
    let mut asked: HashMap<u64, (ResourceId, BTreeMap<LogId, u64>)> = HashMap::new();
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::ReadAsked { read, resource, .. } => {
                while let Some((_, log, index)) = heard.next_if(|(at, ..)| at < now) {
                    let newest = newest.entry(log).or_default();
                    *newest = index.max(*newest);
                }
                asked.insert(read, (resource, newest.clone()));
            }
            Event::ReadTold { read, log, revision, holder } => {
                let Some((resource, newest)) = asked.get(&read) else { continue };
                if !run.excuses.covers_tokens(*now) {
                    continue;
                }
                let mut wrong = |what: String| found.push(Violation::new(Id::I10, *now, what));
                let behind = newest.get(&log).copied().unwrap_or(0);
                if revision < behind && run.excuses.covers_reads(*now, run.healthy()) {
                    wrong(format!(
                        "read {read} shows entry {revision}, and entry {behind} was heard of before"
                    ));
                }
                match run.story.holders.get(&(log, revision, resource.0)) {
                    Some(true_one) if *true_one == holder => {}
                    Some(true_one) => {
                        wrong(format!(
                            "read {read} shows {holder:?} at entry {revision}, the log {true_one:?}"
                        ));
                    }
                    None => wrong(format!("read {read} shows entry {revision}, which nobody has applied")),
                }
            }
            _ => {}
        }
    }
    found
}

/// What clients heard, and how far in the log that was.
fn heard(run: Run<'_>) -> Vec<(TrueTime, LogId, u64)> {
    let mut arose = HashMap::new();
    for step in &run.story.steps {
        for (session, item) in &step.outcome.items {
            arose.insert((*session, item.number), (step.log, step.index));
        }
    }
    let items = run.record.items.iter().filter_map(|received| {
        let (log, index) = arose.get(&(received.session, received.item.number))?;
        Some((received.at, *log, *index))
    });
    let mut heard: Vec<_> = items.collect();
    for session in run.story.sessions.values() {
        for renewal in &session.renewals {
            let index = run.story.steps[renewal.step].index;
            heard.extend(renewal.heard.map(|at| (at, session.log, index)));
        }
    }
    heard.extend(run.record.events.iter().filter_map(|(now, event)| match event {
        Event::ReadTold { log, revision, .. } => Some((*now, *log, *revision)),
        _ => None,
    }));
    heard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use crate::record::ClientId;
    use leasehold_core::{Entry, LogTime, Token};

    #[test]
    fn a_read_during_a_restore_is_judged_by_the_life_that_answered() {
        for (answers, count) in [(LogId(0), 0), (LogId(1), 1)] {
            let mut stage = Stage::new();
            let session = stage.open(1);
            let token = stage.acquire(session).unwrap();
            let (client, resource) = (ClientId(2), ResourceId(0));
            stage.at(1).push(Event::ReadAsked { client, read: 1, resource });
            // The new life begins before the lease was granted.
            let log = stage.record.begin_log(LogId(0), stage.index - 1);
            stage.push(Event::Restored { log, epoch: 1, truthful: true });
            let entry = Entry { at: LogTime::ZERO, commands: Vec::new() };
            stage.record.inherited(stage.now, log, stage.index, 2, Some(entry));
            let (revision, holder) = (stage.index, Some(token));
            stage.at(2).push(Event::ReadTold { read: 1, log: answers, revision, holder });
            assert_eq!(stage.check(check).len(), count, "{answers:?} answers");
        }
    }

    fn reading(back: u64, holder: impl Fn(Token) -> Option<Token>) -> Vec<Violation> {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        let (client, resource, log) = (ClientId(2), ResourceId(0), LogId(0));
        stage.at(1).push(Event::ReadAsked { client, read: 1, resource });
        let (revision, holder) = (stage.index - back, holder(token));
        stage.at(2).push(Event::ReadTold { read: 1, log, revision, holder });
        stage.check(check)
    }

    #[test]
    fn a_read_of_the_newest_is_right() {
        assert_eq!(reading(0, Some), []);
    }

    #[test]
    fn a_stale_read_is_found_even_if_it_is_true_of_its_revision() {
        caught(&reading(1, |_| None), "was heard of before");
    }

    #[test]
    fn another_holder_than_the_logs_is_found() {
        caught(&reading(0, |_| None), "the log Some");
        caught(&reading(0, |token| Some(Token::from_u64(token.get() + 1))), "the log Some");
    }

    #[test]
    fn what_is_heard_while_the_read_is_under_way_does_not_bind_it() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let (client, resource, log) = (ClientId(2), ResourceId(0), LogId(0));
        stage.at(1).push(Event::ReadAsked { client, read: 1, resource });
        let revision = stage.index;
        stage.at(1).acquire(session).unwrap();
        stage.at(2).push(Event::ReadTold { read: 1, log, revision, holder: None });
        assert_eq!(stage.check(check), []);
    }
}
