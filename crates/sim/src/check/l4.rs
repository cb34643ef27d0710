//! L4: with no fault under way, a client that lives loses no lease to time, and its belief does not run out.

use leasehold_core::{Ending, SessionId};

use super::windows::windows;
use super::{Id, Run, Violation};
use crate::record::TrueTime;

/// Looks for leases of the living that ended by time.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let mut found = Vec::new();
    for lease in &run.story.leases {
        let Some(end) = &lease.end else { continue };
        let when = run.story.time(end.step);
        if matches!(end.how, Ending::Expired | Ending::Taken { .. })
            && when >= healthy
            && lives(run, lease.session, when)
        {
            let what =
                format!("token {} of living session {} ended: {:?}", lease.token, lease.session, end.how);
            found.push(Violation::new(Id::L4, when, what));
        }
    }
    for window in windows(run.record).into_iter().filter(|window| window.ran_out) {
        let when = window.span.to;
        if when >= healthy && lives(run, window.session, when) {
            let what = format!("living session {} could not keep token {}", window.session, window.token);
            found.push(Violation::new(Id::L4, when, what));
        }
    }
    found
}

fn lives(run: Run<'_>, id: SessionId, when: TrueTime) -> bool {
    let Some(session) = run.story.sessions.get(&id) else { return false };
    let dead = session.client.is_none() || session.died.is_some_and(|died| died <= when);
    !dead && session.client_over.is_none_or(|over| over > when)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, name};
    use crate::record::{ClientId, Event};
    use leasehold_core::{Command, Due};

    /// A holder that stops renewing at 40 s, and one that waits for its lease.
    fn given_up(dead: bool) -> Stage {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        stage.at(40_000);
        let (first, second) = (stage.open(1), stage.open(2));
        stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        if dead {
            stage.at(40_500).push(Event::Died { client: ClientId(1) });
        }
        stage.at(40_600).renew(second, &[]);
        stage.at(41_100).commit(vec![Command::Tidy(vec![Due::Resource(name(0))])]);
        stage.push(Event::Ended);
        stage
    }

    #[test]
    fn the_dead_lose_their_leases_and_the_living_must_not() {
        assert_eq!(given_up(true).check(check), []);
        let found = given_up(false).check(check);
        caught(&found, "ended: Expired");
        caught(&found, "could not keep");
    }

    #[test]
    fn the_process_that_comes_after_a_death_lives() {
        let mut stage = given_up(false);
        let death = Event::Died { client: ClientId(1) };
        stage.record.events.insert(0, (TrueTime::ZERO, death));
        caught(&stage.check(check), "ended: Expired");
    }

    #[test]
    fn under_faults_it_may_happen() {
        let mut stage = given_up(false);
        stage.record.events.retain(|(_, event)| *event != Event::FaultsStopped);
        assert_eq!(stage.check(check), []);
    }
}
