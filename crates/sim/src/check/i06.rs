//! I6, owner-only release: a lease ends as given back, handed over, closed or revoked only by a command that names this very
//! lease (or its session, or the change of its kind). A late or repeated one never touches another.

use leasehold_core::{
    Command, Ending, Event as TableEvent, Op, Operator, ResourceName, SessionId, System, Token,
};

use super::{Id, Run, Violation};

/// Looks for the command behind every ending.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for step in &run.story.steps {
        for event in &step.outcome.events {
            let TableEvent::Ended { resource, token, session, how, .. } = event else { continue };
            let lease = Named { resource, token: *token, session: *session };
            let asked_for = step.entry.commands.iter().any(|command| lease.is_ended_by(command, how));
            if !asked_for && !matches!(how, Ending::Expired | Ending::Taken { .. }) {
                let what = format!(
                    "token {token} of {resource} ended as {how:?} in entry {}, by nobody's command",
                    step.index
                );
                found.push(Violation::new(Id::I6, step.applied, what));
            }
        }
    }
    found
}

struct Named<'a> {
    resource: &'a ResourceName,
    token: Token,
    session: SessionId,
}

impl Named<'_> {
    fn is_ended_by(&self, command: &Command, how: &Ending) -> bool {
        match (command, how) {
            (
                Command::Session(command),
                Ending::Released | Ending::Drained | Ending::HandedOver { .. } | Ending::SessionClosed,
            ) => {
                let names = match &command.op {
                    Op::Release { resource, token, .. } => {
                        !matches!(how, Ending::SessionClosed)
                            && (resource, *token) == (self.resource, self.token)
                    }
                    Op::Close => matches!(how, Ending::SessionClosed),
                    _ => false,
                };
                names && command.session == self.session
            }
            (Command::Operator(Operator::Revoke { resource, token, .. }), Ending::Revoked { .. }) => {
                (resource, *token) == (self.resource, self.token)
            }
            (Command::Operator(Operator::ChangeKind { resource, .. }), Ending::Revoked { .. }) => {
                resource == self.resource
            }
            (Command::System(System::Rebooted), Ending::Rebooted)
            | (Command::System(System::Restored { .. }), Ending::Restored) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught, ended, release_of};
    use crate::check::story::Story;

    #[test]
    fn a_late_release_that_ends_the_successor_is_found() {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let old = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        let new = stage.release(first, old).unwrap();
        let (_, late) = stage.command(first, release_of(old));
        stage.commit(vec![late]);
        assert_eq!(stage.check(check), []);
        let touched = |how: Ending| {
            move |story: &mut Story<'_>| {
                story.steps.last_mut().unwrap().outcome.events.push(ended(second, new, how));
            }
        };
        caught(&stage.tampered(touched(Ending::Released), check), "by nobody's command");
        caught(&stage.tampered(touched(Ending::SessionClosed), check), "by nobody's command");
        let by = Ending::Taken { by: new };
        assert_eq!(stage.tampered(touched(by), check), [], "its time is I3's business");
    }

    #[test]
    fn a_close_ends_its_own_leases_only() {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        let (_, close) = stage.command(first, Op::Close);
        stage.commit(vec![close]);
        assert_eq!(stage.check(check), []);
        let of_another = move |story: &mut Story<'_>| {
            let events = &mut story.steps.last_mut().unwrap().outcome.events;
            events.push(ended(second, token, Ending::SessionClosed));
        };
        caught(&stage.tampered(of_another, check), "by nobody's command");
    }
}
