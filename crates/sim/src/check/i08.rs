//! I8, exactly once: a command with a number is carried out once, answered once, and grants each of its resources once, across
//! reconnects, failovers and snapshots.

use std::collections::{HashMap, HashSet};

use leasehold_core::{
    Command, Event as TableEvent, ItemKind, Reply, ResourceName, Sequence, SessionId, Token,
};

use super::{Id, Run, Violation};
use crate::record::{Event, ResourceId, Told};

/// Counts in the logs, and in what clients were told.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let (mut carried_out, mut answered) = (HashSet::new(), HashSet::new());
    let mut granted: HashSet<(SessionId, u64, &ResourceName)> = HashSet::new();
    for step in &run.story.steps {
        let mut wrong = |what: String| found.push(Violation::new(Id::I8, step.applied, what));
        for (command, reply) in step.entry.commands.iter().zip(&step.outcome.replies) {
            let Command::Session(command) = command else { continue };
            let (Sequence::Streamed { number, .. }, Reply::Applied { .. }) = (command.sequence, reply) else {
                continue;
            };
            if !carried_out.insert((command.session, number)) {
                wrong(format!("command {number} of session {} was carried out twice", command.session));
            }
        }
        for (session, item) in &step.outcome.items {
            if let ItemKind::Answer { command, .. } = item.kind
                && !answered.insert((*session, command))
            {
                wrong(format!("command {command} of session {session} was answered twice"));
            }
        }
        for event in &step.outcome.events {
            if let TableEvent::Granted { grant, session, command, .. } = event
                && !granted.insert((*session, command.get(), &grant.resource))
            {
                wrong(format!("command {command} of session {session} was granted {} twice", grant.resource));
            }
        }
    }
    found.extend(told_differently(run));
    found
}

fn told_differently(run: Run<'_>) -> Vec<Violation> {
    let mut tokens: HashMap<(SessionId, u64, ResourceId), Token> = HashMap::new();
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        let Event::Told { session, command, what: Told::Granted { resource, token } } = event else {
            continue;
        };
        let first = *tokens.entry((*session, *command, *resource)).or_insert(*token);
        if first != *token {
            let what =
                format!("command {command} of session {session} was told of token {first}, then of {token}");
            found.push(Violation::new(Id::I8, *now, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, acquire_of, caught, streamed};
    use crate::check::story::Story;
    use leasehold_core::Op;

    fn repeated() -> (Stage, SessionId) {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage.at(10).commit(vec![streamed(session, 1, Op::Acquire(acquire_of(0)))]);
        (stage, session)
    }

    #[test]
    fn a_repetition_that_does_nothing_is_right() {
        assert_eq!(repeated().0.check(check), []);
    }

    #[test]
    fn a_command_that_is_carried_out_again_is_found() {
        let (stage, _) = repeated();
        let again = |story: &mut Story<'_>| {
            let outcome = story.steps[2].outcome.clone();
            story.steps.last_mut().unwrap().outcome = outcome;
        };
        let found = stage.tampered(again, check);
        for part in ["carried out twice", "answered twice", "granted \"r0\" twice"] {
            let part = part.replace('"', "");
            caught(&found, &part);
        }
    }

    #[test]
    fn two_tokens_for_one_command_are_found() {
        let (mut stage, session) = repeated();
        let resource = ResourceId(0);
        stage.told(session, 1, Told::Granted { resource, token: Token::from_u64(77) });
        caught(&stage.check(check), "then of 77");
    }
}
