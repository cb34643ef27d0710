//! I3, grant durability: a lease that a client was told of stands in the log, and goes to nobody else before its time is over,
//! unless it was given back or revoked.

use std::collections::HashMap;

use leasehold_core::{Ending, SessionId};

use super::story::{End, Lease};
use super::{Id, Run, Violation};
use crate::record::{Event, ResourceId, Told};

/// Checks every lease told of, every ending and every successor.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = lost(run);
    found.extend(run.story.leases.iter().filter_map(|lease| ended_early(run, lease)));
    found.extend(replaced_early(run));
    found
}

/// Leases that clients were told of and no log knows.
fn lost(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        let Event::Told { session, what: Told::Granted { resource, token }, .. } = event else { continue };
        let known = run.story.lease(*token);
        let same = known.is_some_and(|lease| (lease.session, lease.place.resource) == (*session, *resource));
        if !same && run.excuses.files.is_none_or(|from| *now < from) {
            let what = format!("session {session} was told of token {token}, and no log grants it so");
            found.push(Violation::new(Id::I3, *now, what));
        }
    }
    found
}

/// An expiry, or a taking, before its time in the log.
fn ended_early(run: Run<'_>, lease: &Lease) -> Option<Violation> {
    let end = lease.end.as_ref()?;
    let session = run.story.sessions.get(&lease.session)?;
    let overdue = run.story.overdue_after(lease.session, end.step)?;
    let after = match end.how {
        Ending::Expired => overdue.plus(session.policies.hard),
        Ending::Taken { .. } => overdue.plus(session.policies.grace),
        _ => return None,
    };
    let at = run.story.at(end.step);
    (at <= after).then(|| {
        let (token, how) = (lease.token, &end.how);
        let what = format!("token {token} ended as {how:?} at {at}, and was good until {after}");
        Violation::new(Id::I3, run.story.time(end.step), what)
    })
}

/// Grants of what somebody else still has, or may not know to have lost.
fn replaced_early(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut before: HashMap<ResourceId, Vec<&Lease>> = HashMap::new();
    for lease in &run.story.leases {
        let others = before.entry(lease.place.resource).or_default();
        let log = run.story.steps[lease.step].log;
        // A new life has ended everything of the one before, by its first entry.
        others.retain(|other| run.story.steps[other.step].log == log && !is_gone(run, other, lease));
        for other in others.iter().filter(|other| other.excludes(lease)) {
            let (token, standing) = (lease.token, other.token);
            let what = format!("token {token} was granted while token {standing} stands in its way");
            found.push(Violation::new(Id::I3, run.story.time(lease.step), what));
        }
        others.push(lease);
    }
    found
}

/// Whether a lease is out of the way of a grant: ended, and if its holder was not asked, known to the holder or overdue.
fn is_gone(run: Run<'_>, other: &Lease, grant: &Lease) -> bool {
    let Some(end) = other.end.as_ref().filter(|end| end.step <= grant.step) else { return false };
    if !matches!(end.how, Ending::Revoked { .. }) || end.at_once.is_some_and(|step| step <= grant.step) {
        return true;
    }
    let noted = run.story.overdue_after(other.session, end.step);
    noted.is_none_or(|noted| run.story.at(grant.step) > noted) || acknowledged(run, other, end, grant)
}

/// Whether the holder let go between the revoke and the grant. Within the entry of the grant any order is taken.
fn acknowledged(run: Run<'_>, other: &Lease, end: &End, grant: &Lease) -> bool {
    run.story.steps[end.step..=grant.step].iter().any(|step| {
        step.entry.commands.iter().any(|command| other.is_given_up_by(command))
            || session_is_over(step, other.session)
    })
}

fn session_is_over(step: &super::story::Step<'_>, id: SessionId) -> bool {
    step.outcome
        .events
        .iter()
        .any(|event| matches!(event, leasehold_core::Event::SessionEnded { session } if *session == id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, name};
    use leasehold_core::{Command, Label, Operator, Reason, Token};

    #[test]
    fn a_lease_that_no_log_knows_is_found() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        assert_eq!(stage.check(check), []);
        let (resource, token) = (ResourceId(0), Token::from_u64(token.get() + 1));
        stage.told(session, 1, Told::Granted { resource, token });
        caught(&stage.check(check), "no log grants it");
    }

    fn expired(after: u64) -> Stage {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        stage.at(500).renew(second, &[]);
        stage.at(after).renew(second, &[]);
        let name = leasehold_core::Due::Resource(name(0));
        let applied = stage.commit(vec![Command::Tidy(vec![name])]);
        stage.hand_out(&applied);
        stage
    }

    #[test]
    fn an_expiry_in_its_time_is_right_and_one_before_is_found() {
        let stage = expired(1_004);
        assert_eq!(stage.check(check), []);
        // The same ending, one entry earlier: within the ttl and its factor.
        let earlier = |story: &mut crate::check::story::Story<'_>| {
            let end = story.leases[0].end.as_mut().unwrap();
            end.step = story.sessions.values().nth(1).unwrap().renewals[1].step;
            story.leases[1].step = end.step;
        };
        caught(&stage.tampered(earlier, check), "was good until 1003");
    }

    fn revoked(now: bool, grant_at: u64) -> Stage {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        stage.at(500).renew(second, &[]);
        let (by, reason) = (Label::new("op").unwrap(), Reason::new("why").unwrap());
        let revoke = Operator::Revoke { resource: name(0), token, by, reason, now };
        let applied = stage.commit(vec![Command::Operator(revoke)]);
        stage.hand_out(&applied);
        stage.at(grant_at).renew(second, &[]);
        let applied = stage.commit(vec![Command::Tidy(vec![leasehold_core::Due::Resource(name(0))])]);
        stage.hand_out(&applied);
        stage
    }

    #[test]
    fn a_second_revoke_may_end_the_wait_that_the_first_began() {
        let granted_after = |second_revoke: bool| {
            let mut stage = revoked(false, 600);
            let (by, reason) = (Label::new("op").unwrap(), Reason::new("why").unwrap());
            let token = stage.table.lease(&name(0)).unwrap().holders[0].token;
            let revoke = Operator::Revoke { resource: name(0), token, by, reason, now: true };
            let commands = if second_revoke { vec![Command::Operator(revoke)] } else { Vec::new() };
            let applied = stage.at(700).commit(commands);
            stage.hand_out(&applied);
            stage
        };
        assert_eq!(granted_after(true).check(check), []);
        let between = |story: &mut crate::check::story::Story<'_>| {
            story.leases[1].step = story.leases[0].end.as_ref().unwrap().step;
        };
        caught(&granted_after(true).tampered(between, check), "stands in its way");
        assert_eq!(granted_after(false).check(check), []);
    }

    #[test]
    fn a_grant_behind_a_revoke_waits_unless_it_was_said_otherwise() {
        let stage = revoked(false, 1_010);
        assert_eq!(stage.check(check), []);
        assert_eq!(revoked(true, 1_010).check(check), []);
        let at_once = |story: &mut crate::check::story::Story<'_>| {
            story.leases[1].step = story.leases[0].end.as_ref().unwrap().step;
        };
        caught(&stage.tampered(at_once, check), "stands in its way");
    }
}
