//! L4: with no fault under way, a client that lives loses no lease to time, and its belief does not run out. Under faults too, time in
//! which the service could take in no renewals is not held against anybody: log time does not count it.

use leasehold_core::{Ending, SessionId};

use super::excuse::Span;
use super::running::Running;
use super::windows::windows;
use super::{Id, Run, Violation};
use crate::record::TrueTime;
use crate::trace::MILLI;

/// Stamps and the base of a clock are rounded down, and of its two clocks a leader may read either a little earlier.
const ROUNDING: u64 = 5 * MILLI;

/// Looks for leases of the living that ended by time, and for time that must not have ended any.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = of_the_living(run);
    found.extend(stalls_counted(run));
    found
}

/// Between two entries of one leader log time moves by the true time at most, without what the leader stood still.
fn stalls_counted(run: Run<'_>) -> Vec<Violation> {
    let running = Running::of(run);
    let drift = u128::from(run.record.config.drift.ppm());
    let mut found = Vec::new();
    for (id, log) in run.record.lives() {
        let at = |index| log.entry(index)?.entry.as_ref().map(|entry| entry.at.get());
        for pair in running.stamps(id, 0, u64::MAX).windows(2) {
            let (one, two) = (&pair[0], &pair[1]);
            let span = Span { from: one.at, to: two.at };
            let stood = running.stood(one.node, one.at, two.at);
            if one.term != two.term || stood == 0 || !run.excuses.covers_nodes_during(&span) {
                continue;
            }
            let (Some(before), Some(after)) = (at(one.index), at(two.index)) else { continue };
            let passed = u128::from(two.at.since(one.at)) * (1_000_000 + drift) / 1_000_000;
            let most = u64::try_from(passed).unwrap_or(u64::MAX).saturating_sub(stood);
            let moved = after.saturating_sub(before) * MILLI;
            if moved > most.saturating_add(ROUNDING) {
                let (too_much, stood) = ((moved - most) / MILLI, stood / MILLI);
                let what = format!(
                    "log time moved {too_much} ms too far from entry {} to entry {}: its leader stood still for {stood} ms",
                    one.index, two.index
                );
                found.push(Violation::new(Id::L4, two.at, what));
            }
        }
    }
    found
}

fn of_the_living(run: Run<'_>) -> Vec<Violation> {
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
    use crate::check::stage::{NODES, Stage, caught, name};
    use crate::record::{ClientId, Event};
    use leasehold_core::{Command, Due, LogTime};

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

    #[test]
    fn time_in_which_the_leader_stood_still_must_not_count() {
        let stood_from = |since: u64, log_time: u64| {
            let mut stage = Stage::new();
            stage.at(1_000).commit(Vec::new());
            stage.at(1_900).push(Event::Stood {
                node: NODES[0],
                since: TrueTime(since * MILLI),
                lost: 600 * MILLI,
            });
            stage.commit_at(LogTime::new(log_time), Vec::new());
            stage.check(check)
        };
        assert_eq!(stood_from(1_200, 1_300), []);
        caught(&stood_from(1_200, 1_310), "log time moved");
        // What began before the first entry may be in it.
        assert_eq!(stood_from(900, 1_900), []);
    }
}
