//! I7, queue honesty: a waiter is granted only while its session is not overdue, nobody passes a live waiter but a named
//! successor, and who has cancelled is not granted.

use std::collections::{BTreeMap, HashSet};

use leasehold_core::{Answer, Ending, Event as TableEvent, LogTime, Op, ResourceName, SessionId};

use super::story::Step;
use super::{Id, Run, Violation};
use crate::record::LogId;

/// Keeps the queues anew and looks at every grant. Within one entry any order is taken, but for renewals, which come first.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut queues = Queues::default();
    for (nth, step) in run.story.steps.iter().enumerate() {
        if queues.log != step.log {
            queues = Queues { log: step.log, ..Queues::default() };
        }
        let places = queues.leave(step);
        for event in &step.outcome.events {
            let TableEvent::Granted { grant, session, command, .. } = event else { continue };
            let waiter = (*session, command.get());
            let mut wrong = |what: String| found.push(Violation::new(Id::I7, step.applied, what));
            if run.story.overdue_after(*session, nth).is_some_and(|overdue| step.entry.at > overdue) {
                wrong(format!("token {} went to session {session}, which is overdue", grant.token));
            }
            if queues.cancelled.contains(&waiter) {
                wrong(format!("token {} went to a wait of {session} that was cancelled", grant.token));
            }
            let place = places.get(&waiter).copied().unwrap_or(u64::MAX);
            let passed = queues.first_live(run, nth, &grant.resource).filter(|first| first.place < place);
            if let Some(passed) = passed.filter(|_| !is_successor(step, &grant.resource, *session)) {
                let (token, first) = (grant.token, passed.session);
                wrong(format!("token {token} of {} went past session {first}", grant.resource));
            }
        }
        queues.join(step);
    }
    found
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    session: SessionId,
    command: u64,
    /// Its rank among all waits.
    place: u64,
    until: LogTime,
}

#[derive(Default)]
struct Queues {
    log: LogId,
    joined: u64,
    by_resource: BTreeMap<ResourceName, Vec<Waiter>>,
    cancelled: HashSet<(SessionId, u64)>,
}

impl Queues {
    /// Takes out whoever leaves a queue in this step, and says where they stood.
    fn leave(&mut self, step: &Step<'_>) -> BTreeMap<(SessionId, u64), u64> {
        let (mut waits, mut sessions) = (HashSet::new(), HashSet::new());
        for event in &step.outcome.events {
            match event {
                TableEvent::WaitGranted { session, command, .. }
                | TableEvent::WaitEnded { session, command, .. } => {
                    waits.insert((*session, command.get()));
                }
                TableEvent::SessionEnded { session } => {
                    sessions.insert(*session);
                }
                _ => {}
            }
        }
        let mut cancelled = Vec::new();
        for (command, _, answer) in step.answers() {
            if let (Op::Cancel { acquire }, Answer::Cancelled) = (&command.op, answer) {
                cancelled.push((command.session, acquire.get()));
            }
        }
        waits.extend(cancelled.iter().copied());
        let mut places = BTreeMap::new();
        if !waits.is_empty() || !sessions.is_empty() {
            for queue in self.by_resource.values_mut() {
                queue.retain(|waiter| {
                    let wait = (waiter.session, waiter.command);
                    let leaves = waits.contains(&wait) || sessions.contains(&waiter.session);
                    if leaves {
                        places.insert(wait, waiter.place);
                    }
                    !leaves
                });
            }
        }
        // A wait granted in the entry of its cancel was granted first.
        let granted = step.outcome.events.iter().filter_map(|event| match event {
            TableEvent::Granted { session, command, .. } => Some((*session, command.get())),
            _ => None,
        });
        let granted: HashSet<_> = granted.collect();
        self.cancelled.extend(cancelled.into_iter().filter(|wait| !granted.contains(wait)));
        places
    }

    fn join(&mut self, step: &Step<'_>) {
        for (command, number, answer) in step.answers() {
            let (Op::Acquire(acquire), Answer::Queued { .. }) = (&command.op, answer) else { continue };
            self.joined += 1;
            let left = step.outcome.events.iter().any(|event| match event {
                TableEvent::WaitGranted { session, command: of, .. }
                | TableEvent::WaitEnded { session, command: of, .. } => {
                    (*session, of.get()) == (command.session, number)
                }
                TableEvent::SessionEnded { session } => *session == command.session,
                _ => false,
            });
            if left || self.cancelled.contains(&(command.session, number)) {
                continue;
            }
            let until = step.entry.at.plus(acquire.wait.unwrap_or_default());
            for request in &acquire.requests {
                let waiter = Waiter { session: command.session, command: number, place: self.joined, until };
                self.by_resource.entry(request.resource.clone()).or_default().push(waiter);
            }
        }
    }

    /// The first waiter that is not overdue and whose wait is not over.
    fn first_live(&self, run: Run<'_>, step: usize, resource: &ResourceName) -> Option<Waiter> {
        let at = run.story.at(step);
        let queue = self.by_resource.get(resource)?;
        let is_live = |waiter: &&Waiter| {
            let overdue = run.story.overdue_after(waiter.session, step);
            at < waiter.until && overdue.is_some_and(|overdue| at <= overdue)
        };
        queue.iter().find(is_live).copied()
    }
}

fn is_successor(step: &Step<'_>, resource: &ResourceName, session: SessionId) -> bool {
    step.outcome.events.iter().any(|event| match event {
        TableEvent::Ended { resource: of, how: Ending::HandedOver { to }, .. } => {
            (of, *to) == (resource, session)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Stage, caught};
    use crate::check::story::Story;
    use leasehold_core::CommandNumber;

    /// One holds, two wait, all renew; then the holder releases.
    fn queue(second_renews: bool) -> (Stage, [SessionId; 3]) {
        let mut stage = Stage::new();
        let sessions = [stage.open(1), stage.open(2), stage.open(3)];
        let token = stage.acquire(sessions[0]).unwrap();
        stage.acquire(sessions[1]).unwrap_err();
        stage.acquire(sessions[2]).unwrap_err();
        stage.at(900).renew(sessions[0], &[token]);
        if second_renews {
            stage.renew(sessions[1], &[]);
        }
        stage.renew(sessions[2], &[]);
        stage.at(1_100).release(sessions[0], token);
        (stage, sessions)
    }

    fn goes_to(to: SessionId) -> impl FnOnce(&mut Story<'_>) {
        move |story| {
            for event in &mut story.steps.last_mut().unwrap().outcome.events {
                match event {
                    TableEvent::Granted { session, command, .. }
                    | TableEvent::WaitGranted { session, command, .. } => {
                        (*session, *command) = (to, CommandNumber::new(1));
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn first_come_is_first_served() {
        let (stage, sessions) = queue(true);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(goes_to(sessions[2]), check), "went past session");
    }

    #[test]
    fn an_overdue_waiter_is_passed_over_and_a_grant_to_it_is_found() {
        let (stage, sessions) = queue(false);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(goes_to(sessions[1]), check), "which is overdue");
    }

    #[test]
    fn a_newcomer_that_is_served_before_the_queue_is_found() {
        let (stage, sessions) = queue(true);
        let newcomer = |story: &mut Story<'_>| {
            goes_to(sessions[0])(story);
            let events = &mut story.steps.last_mut().unwrap().outcome.events;
            events.retain(|event| !matches!(event, TableEvent::WaitGranted { .. }));
        };
        caught(&stage.tampered(newcomer, check), "went past session");
    }

    #[test]
    fn a_grant_to_a_cancelled_wait_is_found() {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.acquire(first).unwrap();
        let wait = stage.acquire(second).unwrap_err();
        let (_, cancel) = stage.command(second, Op::Cancel { acquire: CommandNumber::new(wait) });
        stage.at(100).commit(vec![cancel]);
        let third = stage.open(3);
        stage.acquire(third).unwrap_err();
        stage.at(200).release(first, token);
        assert_eq!(stage.check(check), []);
        caught(&stage.tampered(goes_to(second), check), "was cancelled");
    }
}
