//! Unfenced receivers: within the assumptions (clocks, and writes that are under way no longer than the bound given) even a
//! receiver that checks nothing never takes a write of an earlier holder behind one of a later. Beyond them it does, and
//! [`losses`] counts that: a campaign that never sees one tests nothing.

use std::collections::BTreeMap;

use leasehold_core::{SessionId, Token};

use super::{Id, Run, Violation};
use crate::record::{Event, Place, TrueTime};

/// A stale write that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stale {
    at: TrueTime,
    sent: TrueTime,
    session: SessionId,
    token: Token,
    behind: Token,
}

/// Stale writes that the assumptions should have kept away.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let within = stale(run).into_iter().filter(|stale| is_within(run, stale));
    within
        .map(|stale| {
            let Stale { at, session, token, behind, .. } = stale;
            let what = format!("a write of session {session} with token {token} came behind token {behind}");
            Violation::new(Id::Unfenced, at, what)
        })
        .collect()
}

/// How many stale writes were taken beyond the assumptions.
pub fn losses(run: Run<'_>) -> u64 {
    stale(run).iter().filter(|stale| !is_within(run, stale)).count() as u64
}

fn is_within(run: Run<'_>, stale: &Stale) -> bool {
    let client = run.story.sessions.get(&stale.session).and_then(|session| session.client);
    let covered = [stale.sent, stale.at].iter().all(|moment| run.excuses.covers(client, *moment));
    // Who revokes at once has said that only the fence protects.
    let given_up = run.story.leases.iter().any(|lease| {
        (lease.session, lease.fence) == (stale.session, stale.token)
            && lease.end.as_ref().is_some_and(|end| end.at_once.is_some())
    });
    covered && !given_up && stale.at.since(stale.sent) <= run.record.bounds.in_flight
}

fn stale(run: Run<'_>) -> Vec<Stale> {
    let mut greatest: BTreeMap<Place, Token> = BTreeMap::new();
    let mut stale = Vec::new();
    for (now, event) in &run.record.events {
        let Event::Write { place, fenced: false, token, session, sent, accepted: true } = *event else {
            continue;
        };
        let before = greatest.entry(place).or_insert(token);
        if token < *before {
            stale.push(Stale { at: *now, sent, session, token, behind: *before });
        }
        *before = token.max(*before);
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::excuse::Excuses;
    use crate::check::stage::{MILLI, Stage, caught};
    use crate::check::story::Story;
    use crate::record::ResourceId;

    /// The new holder writes at 200; the old one's write was let go at `sent` and arrives at 300.
    fn late_write(sent: u64, fenced: bool) -> (Vec<Violation>, u64) {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let old = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        let new = stage.at(100).release(first, old).unwrap();
        let place = Place { resource: ResourceId(0), slot: None };
        let write =
            |token, session, sent| Event::Write { place, fenced, token, session, sent, accepted: true };
        let now = TrueTime(1_000 * MILLI);
        stage.record.push(now, write(new, second, now));
        stage.record.push(now, write(old, first, TrueTime(sent * MILLI)));
        let (story, excuses) = (Story::of(&stage.record), Excuses::of(&stage.record));
        let run = Run { record: &stage.record, story: &story, excuses: &excuses };
        (check(run), losses(run))
    }

    #[test]
    fn a_stale_write_within_the_bound_is_found_and_one_beyond_is_counted() {
        let (found, losses) = late_write(501, false);
        caught(&found, "came behind token");
        assert_eq!(losses, 0);
        assert_eq!(late_write(499, false), (Vec::new(), 1));
    }

    #[test]
    fn fenced_receivers_are_not_looked_at() {
        assert_eq!(late_write(501, true), (Vec::new(), 0));
    }
}
