//! Deadlines: belief in a lease reaches at most to the sending of a confirmed renewal, plus ttl - margin by the slowest clock within
//! the bound. The renewal must have counted before the lease ended for the table, and its answer must have arrived. This finds
//! in one belief what [`i01`](super::i01) finds only if somebody else holds the same at that very time.

use std::collections::HashSet;

use leasehold_core::{SessionId, Token};

use super::story::Session;
use super::{Id, Run, Violation};
use crate::record::{Event, TrueTime};

/// Turning readings of clocks into true time rounds.
const ROUNDING: u64 = 1_000;

/// Checks every belief, and that every sending has a number of its own.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut sent: HashSet<(SessionId, u64)> = HashSet::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::RenewalSent { session, number } if !sent.insert((session, number)) => {
                let what = format!("session {session} sent renewal {number} twice");
                found.push(Violation::new(Id::Deadline, *now, what));
            }
            Event::Belief { session, token, until: Some(until), .. } => {
                found.extend(too_long(run, *now, session, token, until));
            }
            _ => {}
        }
    }
    found
}

fn too_long(run: Run<'_>, now: TrueTime, id: SessionId, token: Token, until: TrueTime) -> Option<Violation> {
    let session = run.story.sessions.get(&id)?;
    let last = run.story.lease(token)?.end.as_ref().map_or(usize::MAX, |end| end.step);
    let let_go = run.story.let_go.get(&token).is_some_and(|let_go| *let_go <= now);
    let limit = believable(run, session, last, now);
    let wrong = until > limit || let_go;
    (wrong && run.excuses.covers(session.client, now)).then(|| {
        let what = if let_go {
            format!("session {id} believes in token {token}, which it had given back")
        } else {
            let beyond = until.since(limit);
            format!("session {id} believes in token {token} for {beyond} ns longer than it may")
        };
        Violation::new(Id::Deadline, now, what)
    })
}

/// Up to when a lease may be believed in that ended at `last`, by what was heard up to `now`.
fn believable(run: Run<'_>, session: &Session, last: usize, now: TrueTime) -> TrueTime {
    let usable = session.usable_ms.unwrap_or(session.ttl.get());
    let drift = u128::from(run.record.config.drift.ppm());
    let carried = u128::from(usable) * 1_000_000 * 1_000_000 / (1_000_000 - drift);
    let carried = u64::try_from(carried).unwrap_or(u64::MAX).saturating_add(ROUNDING);
    let before = session.renewals.partition_point(|renewal| renewal.step <= last);
    // Later sendings count later, so the last one that was heard is the one to count from.
    let heard = session.renewals[..before].iter().rev().find(|r| r.heard.is_some_and(|heard| heard <= now));
    match heard {
        // What nobody noted as sent renews nothing.
        Some(renewal) => renewal.sent.map_or(TrueTime::ZERO, |sent| sent.plus(carried)),
        None => TrueTime::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{MILLI, Stage, USABLE, caught, name};
    use crate::record::{ClientId, Fault, Machine, RequestKey};
    use leasehold_core::{Command, Label, Operator, Reason};

    fn held() -> (Stage, SessionId, Token) {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        (stage, session, token)
    }

    /// A renewal sent at 300 and answered at 400; belief counts from `from`.
    fn renewed(from: u64) -> Vec<Violation> {
        let (mut stage, session, token) = held();
        let (number, command) = stage.at(300).renewal(session);
        let applied = stage.at(400).commit(vec![command]);
        stage.record.replied(stage.now, RequestKey::Renew(session, number), applied.replies[0].clone());
        stage.believe(session, token, Some(TrueTime((from + USABLE) * MILLI)));
        stage.check(check)
    }

    #[test]
    fn a_deadline_counts_from_the_sending() {
        assert_eq!(renewed(300), []);
        caught(&renewed(400), "longer than it may");
        caught(&renewed(302), "longer than it may");
    }

    #[test]
    fn a_slow_clock_within_the_bound_may_believe_a_little_longer() {
        let (mut stage, session, token) = held();
        let slowest = USABLE * MILLI * 1_000 / 999;
        stage.at(1).believe(session, token, Some(TrueTime(slowest)));
        assert_eq!(stage.check(check), []);
        stage.believe(session, token, Some(TrueTime(slowest + 2 * ROUNDING)));
        caught(&stage.check(check), "longer than it may");
        let (machine, what) = (Machine::Client(ClientId(1)), Fault::Clock);
        let fault = Event::Fault { machine, what, within: false, begins: true };
        stage.record.events.insert(0, (TrueTime::ZERO, fault));
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn a_renewal_that_counted_behind_the_end_moves_nothing() {
        let (mut stage, session, token) = held();
        let (by, reason) = (Label::new("op").unwrap(), Reason::new("why").unwrap());
        let revoke = Operator::Revoke { resource: name(0), token, by, reason, now: false };
        stage.at(100).commit(vec![Command::Operator(revoke)]);
        stage.at(300).renew(session, &[]);
        assert_eq!(stage.check(check), []);
        stage.at(301).believe(session, token, Some(TrueTime((300 + USABLE) * MILLI)));
        caught(&stage.check(check), "longer than it may");
    }

    #[test]
    fn belief_in_what_was_given_back_and_a_number_used_twice_are_found() {
        let (mut stage, session, token) = held();
        stage.at(100).release(session, token);
        assert_eq!(stage.check(check), []);
        stage.believe(session, token, Some(TrueTime(200 * MILLI)));
        caught(&stage.check(check), "had given back");
        let (mut stage, session, _) = held();
        stage.push(Event::RenewalSent { session, number: 1 });
        assert_eq!(stage.check(check), []);
        stage.push(Event::RenewalSent { session, number: 1 });
        caught(&stage.check(check), "renewal 1 twice");
    }
}
