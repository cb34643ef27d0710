//! L5: every request ends. What was asked is answered, once no fault is under way, unless its client died or its session is over.

use std::collections::BTreeMap;

use leasehold_core::SessionId;

use super::{Id, Run, Violation};
use crate::record::{ClientId, Event, TrueTime};

/// Looks for commands and reads without an answer.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let mut commands: BTreeMap<(SessionId, u64), TrueTime> = BTreeMap::new();
    let mut reads: BTreeMap<u64, (TrueTime, ClientId)> = BTreeMap::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Asked { session, command, .. } => {
                commands.insert((session, command), *now);
            }
            Event::Told { session, command, .. } => {
                commands.remove(&(session, command));
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
    use crate::record::{Asked, ResourceId};

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
        stage.told(session, 1, crate::record::Told::Unknown);
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
        stage.told(session, 1, crate::record::Told::Done);
        let (client, resource) = (ClientId(1), ResourceId(0));
        stage.push(Event::ReadAsked { client, read: 9, resource });
        stage.at(50_000).push(Event::Ended);
        caught(&stage.check(check), "read 9");
    }
}
