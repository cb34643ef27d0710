//! I5, no resurrection: once a lease has ended, nothing that names its token succeeds, no renewal lists it, and it is not granted
//! again. (A session that is only overdue may come back; one that has ended may not.) A release may acknowledge a revoke, once.

use std::collections::{HashMap, HashSet};

use leasehold_core::{Answer, Ending, Event as TableEvent, Op, Reply, SessionId, Token};

use super::story::Step;
use super::{Id, Run, Violation};

/// Follows every lease past its end. Within the entry of the end any order is taken.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut past = Past::default();
    for step in &run.story.steps {
        for (command, _, answer) in step.answers() {
            if let Some(token) = past.revived(command.session, &command.op, answer) {
                let what = format!("{:?} with ended token {token} was answered {answer:?}", command.op);
                found.push(Violation::new(Id::I5, step.applied, what));
            }
        }
        found.extend(past.listed(step).into_iter().chain(past.granted_again(step)).map(|token| {
            let what = format!("ended token {token} is held again in entry {}", step.index);
            Violation::new(Id::I5, step.applied, what)
        }));
        for event in &step.outcome.events {
            if let TableEvent::Ended { token, session, how, .. } = event {
                past.ended.insert(*token, (*session, matches!(how, Ending::Revoked { .. })));
            }
        }
    }
    found
}

#[derive(Default)]
struct Past {
    /// With whose it was, and whether it was revoked.
    ended: HashMap<Token, (SessionId, bool)>,
    acknowledged: HashSet<Token>,
}

impl Past {
    /// The ended token that a command succeeded with.
    fn revived(&mut self, session: SessionId, op: &Op, answer: &Answer) -> Option<Token> {
        let (token, succeeded) = match op {
            Op::SetValue { token, .. } => (*token, matches!(answer, Answer::ValueSet)),
            Op::SetReady { token, .. } => (*token, matches!(answer, Answer::ReadySet)),
            Op::SetDraining { token, .. } => (*token, matches!(answer, Answer::DrainingShown)),
            Op::WriteRegister { token, .. } => (*token, matches!(answer, Answer::RegisterWritten)),
            Op::Offer(offer) => (offer.token, matches!(answer, Answer::Offered { .. })),
            Op::Accept { token, .. } => (*token, matches!(answer, Answer::Accepted { .. })),
            Op::Release { token, .. } => (*token, matches!(answer, Answer::Released)),
            Op::Acquire(_) | Op::Cancel { .. } | Op::CancelCall { .. } | Op::Close => return None,
        };
        let (holder, revoked) = *self.ended.get(&token)?;
        let acknowledges = matches!(op, Op::Release { .. }) && revoked && holder == session && succeeded;
        if acknowledges && self.acknowledged.insert(token) {
            return None;
        }
        succeeded.then_some(token)
    }

    fn listed(&self, step: &Step<'_>) -> Vec<Token> {
        let holdings = step.outcome.replies.iter().filter_map(|reply| match reply {
            Reply::Renewed(renewed) => renewed.holdings.as_ref(),
            _ => None,
        });
        let tokens = holdings.flat_map(|holdings| holdings.leases.iter().map(|lease| lease.grant.token));
        tokens.filter(|token| self.ended.contains_key(token)).collect()
    }

    fn granted_again(&self, step: &Step<'_>) -> Vec<Token> {
        let tokens = step.outcome.events.iter().filter_map(|event| match event {
            TableEvent::Granted { grant, .. } => Some(grant.token),
            _ => None,
        });
        tokens.filter(|token| self.ended.contains_key(token)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, name, release_of};
    use crate::check::story::Story;
    use leasehold_core::{Command, ItemKind, Label, Operator, Reason, Value};

    /// Two leases, and after the end of the first something that names it.
    fn afterwards(op: impl FnOnce(Token) -> Op) -> Stage {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        stage.release(session, token);
        stage.acquire(session).unwrap();
        let (_, command) = stage.command(session, op(token));
        stage.commit(vec![command]);
        stage
    }

    fn succeeds(answer: Answer) -> impl FnOnce(&mut Story<'_>) {
        |story| {
            let item = &mut story.steps.last_mut().unwrap().outcome.items[0].1;
            if let ItemKind::Answer { answer: given, .. } = &mut item.kind {
                *given = answer;
            }
        }
    }

    #[test]
    fn a_release_of_an_ended_lease_is_refused_and_a_success_is_found() {
        let stage = afterwards(release_of);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(succeeds(Answer::Released), check), "with ended token");
    }

    #[test]
    fn a_value_shown_with_an_ended_lease_is_found() {
        let op = |token| Op::SetValue { resource: name(0), token, value: Value::default() };
        let stage = afterwards(op);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(succeeds(Answer::ValueSet), check), "with ended token");
    }

    #[test]
    fn a_revoke_is_acknowledged_once() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        let (by, reason) = (Label::new("op").unwrap(), Reason::new("why").unwrap());
        let revoke = Operator::Revoke { resource: name(0), token, by, reason, now: false };
        stage.at(10).commit(vec![Command::Operator(revoke)]);
        stage.at(20).release(session, token);
        assert_eq!(stage.check(check), []);
        let (_, again) = stage.command(session, release_of(token));
        stage.at(30).commit(vec![again]);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(succeeds(Answer::Released), check), "with ended token");
    }

    #[test]
    fn a_token_that_is_granted_again_is_found() {
        let stage = afterwards(release_of);
        let again = |story: &mut Story<'_>| {
            let grant = story.steps[2].outcome.events[0].clone();
            story.steps.last_mut().unwrap().outcome.events.push(grant);
        };
        caught(&stage.tampered(again, check), "is held again");
    }
}
