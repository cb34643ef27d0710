//! L5: every request ends. What was asked is answered, once no fault is under way, unless its client died or its session is over.

use std::collections::BTreeMap;

use leasehold_core::SessionId;

use super::{Id, Run, Violation};
use crate::record::{Asked, ClientId, Event, Told, TrueTime};
use crate::trace::MILLI;

/// Looks for commands and reads without an answer.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let mut commands: BTreeMap<(SessionId, u64), TrueTime> = BTreeMap::new();
    let mut reads: BTreeMap<u64, (TrueTime, ClientId)> = BTreeMap::new();
    let mut waits: BTreeMap<(SessionId, u64), (TrueTime, u64)> = BTreeMap::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Asked { session, command, what } => {
                commands.insert((session, command), *now);
                match what {
                    Asked::Exclusive { wait: Some(wait), .. } | Asked::Others { wait: Some(wait), .. } => {
                        waits.insert((session, command), (*now, u64::from(wait) * MILLI));
                    }
                    // Whoever cancels may hear of the end of its cancel alone.
                    Asked::Cancel { acquire } => {
                        waits.remove(&(session, acquire));
                    }
                    _ => {}
                }
            }
            Event::Told { session, command, what } => {
                commands.remove(&(session, command));
                if what != Told::Queued {
                    waits.remove(&(session, command));
                }
            }
            Event::ReadAsked { client, read, .. } => {
                reads.insert(read, (*now, client));
            }
            Event::ReadTold { read, .. } => {
                reads.remove(&read);
            }
            _ => {}
        }
    }
    let end = run.record.end();
    let late = |asked: TrueTime| end.since(asked.max(healthy)) > run.record.bounds.answer;
    let mut found = Vec::new();
    for ((session, command), asked) in commands {
        if late(asked) && run.waits_for_news(session) {
            let what = format!("command {command} of session {session} was never answered");
            found.push(Violation::new(Id::L5, asked, what));
        }
    }
    // Log time is slower than true time by no more than the bound once nothing is wrong: a hundredth is more than that.
    for ((session, command), (asked, wait)) in waits {
        if late(asked.max(healthy).plus(wait + wait / 100)) && run.waits_for_news(session) {
            let what = format!(
                "the wait {command} of session {session} was for {} ms, and is not over",
                wait / MILLI
            );
            found.push(Violation::new(Id::L5, asked, what));
        }
    }
    for (read, (asked, client)) in reads {
        let dead = run.story.deaths.iter().any(|(at, died)| *died == client && *at >= asked);
        if late(asked) && !dead {
            found.push(Violation::new(Id::L5, asked, format!("read {read} was never answered")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use crate::record::ResourceId;

    fn unanswered(asked_at: u64) -> (Stage, SessionId) {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        let session = stage.open(1);
        stage.at(asked_at).asked(session, 1, Asked::Other);
        (stage, session)
    }

    #[test]
    fn what_is_never_answered_is_found() {
        let (mut stage, session) = unanswered(10);
        stage.at(40_000).push(Event::Ended);
        assert_eq!(stage.check(check), [], "there may still be time");
        stage.at(40_001).push(Event::Ended);
        caught(&stage.check(check), "was never answered");
        stage.told(session, 1, Told::Unknown);
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn a_wait_that_goes_on_behind_its_length_is_found() {
        let (mut stage, session) = unanswered(10);
        stage.told(session, 1, Told::Done);
        let wait = Asked::Exclusive { resource: ResourceId(0), wait: Some(5_000) };
        stage.at(40_000).asked(session, 2, wait);
        stage.told(session, 2, Told::Queued);
        stage.at(55_050).push(Event::Ended);
        assert_eq!(stage.check(check), [], "there may still be time");
        stage.at(55_051).push(Event::Ended);
        caught(&stage.check(check), "was for 5000 ms, and is not over");
        stage.told(session, 2, Told::WaitOver);
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn the_dead_and_the_ended_wait_for_nothing() {
        for event in
            [Event::Died { client: ClientId(1) }, Event::SessionOver { session: SessionId::from_u64(1) }]
        {
            let (mut stage, _) = unanswered(35_000);
            stage.at(50_000).push(event);
            assert_eq!(stage.check(check), []);
        }
    }

    #[test]
    fn a_read_without_an_answer_is_found() {
        let (mut stage, session) = unanswered(10);
        stage.told(session, 1, Told::Done);
        let (client, resource) = (ClientId(1), ResourceId(0));
        stage.push(Event::ReadAsked { client, read: 9, resource });
        stage.at(50_000).push(Event::Ended);
        caught(&stage.check(check), "read 9");
    }
}
