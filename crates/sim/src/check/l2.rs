//! L2: with no fault under way, the next waiter has its lease within the bound after the holder sent its release.

use std::collections::{HashMap, HashSet};

use leasehold_core::{Answer, Ending, Sequence, SessionCommand, SessionId};

use super::story::Lease;
use super::{Id, Run, Violation};
use crate::record::{Asked, Event, Told, TrueTime};

/// Measures every release that a waiter followed.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(healthy) = run.healthy() else { return Vec::new() };
    let mut told: HashMap<(SessionId, u64), TrueTime> = HashMap::new();
    let mut cancelled: HashSet<(SessionId, u64)> = HashSet::new();
    // Whoever had cancelled and heard that its wait is over wants nothing any more: a lease that came too late is given back by
    // its machine, and the application never hears of it.
    let mut through: HashSet<(SessionId, u64)> = HashSet::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Told { session, command, what: Told::Granted { .. } } => {
                told.entry((session, command)).or_insert(*now);
            }
            Event::Asked { session, what: Asked::Cancel { acquire }, .. } => {
                cancelled.insert((session, acquire));
            }
            Event::Told { session, command, what: Told::WaitOver }
                if cancelled.contains(&(session, command)) =>
            {
                through.insert((session, command));
            }
            _ => {}
        }
    }
    let mut queued: HashSet<(SessionId, u64)> = HashSet::new();
    for step in &run.story.steps {
        // To plain sessions nothing is pushed: they hear when they ask, or renew.
        let pushed = |command: &SessionCommand| matches!(command.sequence, Sequence::Streamed { .. });
        let waits = step
            .answers()
            .filter(|(command, _, answer)| matches!(answer, Answer::Queued { .. }) && pushed(command));
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
    let waited = |lease: &&Lease| {
        let key = (lease.session, lease.command);
        queued.contains(&key) && !through.contains(&key)
    };
    for next in run.story.leases.iter().filter(waited) {
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

    #[test]
    fn a_waiter_that_cancelled_too_late_hears_the_end_of_its_wait_instead() {
        for (cancels, is_right) in [(true, true), (false, false)] {
            let mut stage = passed_on(50);
            for (_, event) in &mut stage.record.events {
                if let Event::Told { what, .. } = event
                    && matches!(what, Told::Granted { .. })
                {
                    *what = Told::WaitOver;
                }
            }
            if cancels {
                let (session, what) = (SessionId::from_u64(2), Asked::Cancel { acquire: 1 });
                let asked = Event::Asked { session, command: 2, what };
                let before = stage.record.events.partition_point(|(at, _)| *at < TrueTime(40_000 * MILLI));
                stage.record.events.insert(before, (TrueTime(40_000 * MILLI), asked));
            }
            assert_eq!(stage.check(check).is_empty(), is_right, "cancels: {cancels}");
        }
    }
}
