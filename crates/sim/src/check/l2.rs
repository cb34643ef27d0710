//! L2: with no fault under way, the next waiter has its lease within the bound after the holder sent its release.

use std::collections::{HashMap, HashSet};

use leasehold_core::{Answer, Ending, SessionId};

use super::story::Lease;
use super::{Id, Run, Violation};
use crate::record::{Event, Told, TrueTime};

/// Measures every release that a waiter followed.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let mut told: HashMap<(SessionId, u64), TrueTime> = HashMap::new();
    for (now, event) in &run.record.events {
        if let Event::Told { session, command, what: Told::Granted { .. } } = *event {
            told.entry((session, command)).or_insert(*now);
        }
    }
    let mut queued: HashSet<(SessionId, u64)> = HashSet::new();
    for step in &run.story.steps {
        let waits = step.answers().filter(|(_, _, answer)| matches!(answer, Answer::Queued { .. }));
        queued.extend(waits.map(|(command, number, _)| (command.session, number)));
    }
    let mut ended: HashMap<usize, Vec<&Lease>> = HashMap::new();
    for lease in &run.story.leases {
        if let Some(end) =
            lease.end.as_ref().filter(|end| matches!(end.how, Ending::Released | Ending::Drained))
        {
            ended.entry(end.step).or_default().push(lease);
        }
    }
    let mut found = Vec::new();
    for next in run.story.leases.iter().filter(|lease| queued.contains(&(lease.session, lease.command))) {
        let before = ended.get(&next.step).into_iter().flatten().filter(|lease| lease.place == next.place);
        let released = before.filter_map(|lease| run.story.let_go.get(&lease.token)).max();
        let Some(released) = released.filter(|released| **released >= healthy) else { continue };
        let heard = told.get(&(next.session, next.command)).copied();
        let took = heard.unwrap_or(run.record.end()).since(*released);
        if took > run.record.bounds.handover && (heard.is_some() || run.waits_for_news(next.session)) {
            let millis = took / 1_000_000;
            let what = format!("token {} reached the next waiter {millis} ms after the release", next.token);
            found.push(Violation::new(Id::L2, *released, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{MILLI, Stage, caught};
    use crate::record::ClientId;

    /// A release at 40 s; the next waiter hears of its lease `later` milliseconds on.
    fn passed_on(later: u64) -> Stage {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        stage.at(39_800);
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        stage.at(40_000).release(first, token).unwrap();
        let last = stage
            .record
            .events
            .iter_mut()
            .rev()
            .find(|(_, event)| matches!(event, Event::Told { session, .. } if *session == second));
        last.unwrap().0 = TrueTime((40_000 + later) * MILLI);
        stage.at(50_000).push(Event::Ended);
        stage
    }

    #[test]
    fn a_waiter_served_in_time_is_right_and_a_late_one_is_found() {
        assert_eq!(passed_on(50).check(check), []);
        caught(&passed_on(51).check(check), "51 ms after the release");
    }

    #[test]
    fn a_waiter_that_never_hears_is_found_unless_it_is_dead() {
        let mut stage = passed_on(50);
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Told { session, what: Told::Granted { .. }, .. } if session.get() == 2)
        });
        caught(&stage.check(check), "ms after the release");
        stage.push(Event::Died { client: ClientId(2) });
        assert_eq!(stage.check(check), []);
    }
}
