//! I4, renewals honoured: what was sent at T and confirmed holds until T + ttl on any clock within the bound. In true time: nobody
//! else is granted the same before T + ttl / (1 - drift), unless the holder let go or was revoked at once.

use std::collections::BTreeMap;

use leasehold_core::Ending;

use super::story::Lease;
use super::{Id, Run, Violation};
use crate::record::{ResourceId, TrueTime};

/// Compares every involuntary ending with the next grants of the same.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut honoured: BTreeMap<ResourceId, Vec<(&Lease, TrueTime)>> = BTreeMap::new();
    for lease in &run.story.leases {
        let granted = run.story.time(lease.step);
        let before = honoured.entry(lease.place.resource).or_default();
        before.retain(|(_, until)| *until > granted);
        let claims = |other: &Lease| conflicts(run, other, lease) && !gave_up(run, other, lease.step);
        for (other, until) in before.iter().filter(|(other, _)| claims(other)) {
            let (early, client) = (until.since(granted), client(run, other));
            if run.excuses.covers(client, granted) {
                let what = format!(
                    "token {} was granted {early} ns before the renewals behind token {} were over",
                    lease.token, other.token
                );
                found.push(Violation::new(Id::I4, granted, what));
            }
        }
        before.extend(holds_until(run, lease).map(|until| (lease, until)));
    }
    found
}

fn client(run: Run<'_>, lease: &Lease) -> Option<crate::record::ClientId> {
    run.story.sessions.get(&lease.session)?.client
}

fn conflicts(run: Run<'_>, one: &Lease, other: &Lease) -> bool {
    let logs = run.story.steps[one.step].log == run.story.steps[other.step].log;
    logs && one.session != other.session && one.excludes(other)
}

/// Whether a lease was given up by a step: by an operator who said that nobody need be waited for, or by its client.
fn gave_up(run: Run<'_>, lease: &Lease, step: usize) -> bool {
    let Some(end) = &lease.end else { return false };
    if end.at_once.is_some_and(|at_once| at_once <= step) {
        return true;
    }
    let mut commands = run.story.steps[end.step..=step].iter().flat_map(|step| &step.entry.commands);
    commands.any(|command| lease.is_given_up_by(command))
}

/// The true time up to which a lease that ended without its holder had to be honoured.
fn holds_until(run: Run<'_>, lease: &Lease) -> Option<TrueTime> {
    let end = lease.end.as_ref()?;
    let involuntary = matches!(end.how, Ending::Expired | Ending::Taken { .. } | Ending::Revoked { .. });
    if !involuntary {
        return None;
    }
    let session = run.story.sessions.get(&lease.session)?;
    let confirmed =
        session.renewals.iter().rev().find(|renewal| renewal.step <= end.step && renewal.heard.is_some())?;
    let drift = u64::from(run.record.config.drift.ppm());
    let nanos = u128::from(session.ttl.get()) * 1_000_000 * 1_000_000 / u128::from(1_000_000 - drift);
    Some(confirmed.sent?.plus(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, name};
    use crate::check::story::Story;
    use crate::record::{ClientId, Event, Fault, Machine};
    use leasehold_core::{Command, Due, LogTime};

    /// The lease expires in log time as it must; true time goes its own way.
    fn expiry(true_millis: u64, log_millis: u64) -> Stage {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        stage.at(500).renew(second, &[]);
        stage.at(true_millis);
        stage.commit_at(LogTime::new(log_millis), vec![Command::Tidy(vec![Due::Resource(name(0))])]);
        stage
    }

    #[test]
    fn a_log_that_keeps_pace_honours_renewals() {
        assert_eq!(expiry(1_004, 1_004).check(check), []);
        assert_eq!(expiry(1_002, 1_004).check(check), [], "a clock within the bound is a little fast");
    }

    #[test]
    fn a_log_that_outruns_true_time_is_found() {
        let stage = expiry(1_001, 1_004);
        caught(&stage.check(check), "before the renewals behind token");
    }

    #[test]
    fn who_lets_go_after_it_was_granted_to_another_too_early_excuses_nothing() {
        let mut stage = expiry(600, 1_004);
        let story = Story::of(&stage.record);
        let (session, token) = (story.leases[0].session, story.leases[0].token);
        stage.at(700).push(Event::LetGo { session, token });
        caught(&stage.check(check), "before the renewals behind token");
    }

    #[test]
    fn a_clock_beyond_the_bound_is_an_excuse() {
        let mut stage = expiry(1_001, 1_004);
        for (machine, count) in [(Machine::Client(ClientId(2)), 1), (Machine::Client(ClientId(1)), 0)] {
            let fault = Event::Fault { machine, what: Fault::Clock, within: false, begins: true };
            stage.record.events.insert(0, (TrueTime::ZERO, fault));
            assert_eq!(stage.check(check).len(), count, "{machine:?}");
        }
    }
}
