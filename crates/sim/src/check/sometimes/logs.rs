//! Situations that the committed logs show.

use std::collections::{BTreeSet, HashMap, HashSet};

use leasehold_core::{
    Answer, Command, Due, Ending, Event, ItemKind, Mode, Op, Operator, Refusal, Reply, ResourceName,
    SessionId, System, Unavailable,
};

use super::{Situation, Sometimes};
use crate::check::Run;
use crate::check::l7::left_behind;
use crate::check::story::Step;

/// Counts what the logs show.
pub(super) fn observe(run: Run<'_>, sometimes: &mut Sometimes) {
    let mut queues = Queues::default();
    for (nth, step) in run.story.steps.iter().enumerate() {
        let revived = revived(run, nth);
        for (command, reply) in step.entry.commands.iter().zip(&step.outcome.replies) {
            replied(run, sometimes, step, command, reply);
        }
        sometimes.add(Situation::RenewalRescues, revived.len() as u64);
        for (command, number, answer) in step.answers() {
            answered(sometimes, &command.op, answer);
            if let (Op::Acquire(acquire), Answer::Queued { .. }) = (&command.op, answer) {
                let names = acquire.requests.iter().map(|request| request.resource.clone()).collect();
                queues.join((command.session, number), names);
            }
            if let (Op::Cancel { acquire }, Answer::Cancelled) = (&command.op, answer) {
                queues.leave((command.session, acquire.get()));
            }
            if let (Op::Acquire(acquire), Answer::Granted(_)) = (&command.op, answer)
                && acquire.requests.len() > 1
            {
                sometimes.reach(Situation::UnitGranted);
            }
        }
        for event in &step.outcome.events {
            happened(sometimes, &mut queues, &revived, event);
        }
        told(sometimes, step);
    }
    sometimes.add(Situation::ExpiryLeftBehind, left_behind(run));
    slots(run, sometimes);
}

/// Sessions that were overdue and are renewed in this step.
fn revived(run: Run<'_>, nth: usize) -> HashSet<SessionId> {
    let Some(before) = nth.checked_sub(1) else { return HashSet::new() };
    let step = &run.story.steps[nth];
    let renewed = step.entry.commands.iter().zip(&step.outcome.replies).filter_map(|pair| match pair {
        (Command::Renew { session, .. } | Command::RenewPlain { session }, Reply::Renewed(_)) => {
            Some(*session)
        }
        _ => None,
    });
    let was_overdue = |session: &SessionId| {
        run.story.overdue_after(*session, before).is_some_and(|overdue| step.entry.at > overdue)
    };
    renewed.filter(was_overdue).collect()
}

fn replied(run: Run<'_>, sometimes: &mut Sometimes, step: &Step<'_>, command: &Command, reply: &Reply) {
    use Situation as S;
    sometimes.reach(match (command, reply) {
        (Command::NoRoom { .. }, _) => S::NoRoom,
        (Command::System(System::ClusterVersion { .. }), _) => S::VersionRaised,
        (Command::Renew { session, .. } | Command::RenewPlain { session }, Reply::Renewed(_))
            if is_tidied(run, step, *session) =>
        {
            S::RenewalInEntryOfExpiry
        }
        (
            Command::Renew { .. } | Command::RenewPlain { .. },
            Reply::Refused(Refusal::SessionEnded { .. }),
        ) => S::RenewalTooLate,
        (_, Reply::StaleRenewal { .. }) => S::StaleRenewal,
        (_, Reply::Opened(opened)) if opened.repeated => S::OpenRepeated,
        (_, Reply::Repeated { .. }) => S::CommandRepeated,
        (_, Reply::Refused(Refusal::CommandGap { .. })) => S::CommandGap,
        (_, Reply::Refused(Refusal::OlderAttach { .. })) => S::OlderAttach,
        (Command::Attach(attach), Reply::Attached { last_item, .. }) if attach.seen < *last_item => {
            S::MissedItemsDelivered
        }
        (_, Reply::KindChanged) => S::KindChanged,
        (Command::Operator(Operator::Revoke { now: true, .. }), Reply::Revoked { .. }) => S::RevokedAtOnce,
        (Command::Operator(Operator::Revoke { now: false, .. }), Reply::Revoked { .. }) => S::Revoked,
        (Command::System(System::Restored { .. }), _) => S::Restored,
        _ => return,
    });
}

/// Whether the entry names a session as due, or what it holds while it is overdue but for this renewal.
fn is_tidied(run: Run<'_>, step: &Step<'_>, session: SessionId) -> bool {
    let due = step.entry.commands.iter().filter_map(|command| match command {
        Command::Tidy(due) => Some(due),
        _ => None,
    });
    due.flatten().any(|due| match due {
        Due::Session(due) => *due == session,
        Due::Resource(name) => run.record.known(name).is_some_and(|resource| {
            let before = run.story.step_of(step.log, step.index).and_then(|step| step.checked_sub(1));
            let overdue = before.and_then(|before| run.story.overdue_after(session, before));
            overdue.is_some_and(|overdue| overdue < step.entry.at)
                && run.story.leases.iter().any(|lease| {
                    (lease.session, lease.place.resource) == (session, resource)
                        && run.story.steps[lease.step].index < step.index
                        && lease.end.as_ref().is_none_or(|end| run.story.steps[end.step].index >= step.index)
                })
        }),
    })
}

fn answered(sometimes: &mut Sometimes, op: &Op, answer: &Answer) {
    use Situation as S;
    sometimes.reach(match (op, answer) {
        (_, Answer::Cancelled) => S::WaitCancelled,
        (_, Answer::AlreadyGranted(_)) => S::CancelTooLate,
        (_, Answer::Refused(Refusal::NotFree { why, .. })) => match why {
            Unavailable::CoolDown { .. } => S::CoolDown,
            Unavailable::RestoreWait { .. } => S::RestoreWait,
            Unavailable::Alarm { .. } => S::AlarmStopsGrants,
            Unavailable::Held { .. } | Unavailable::Queue { .. } | Unavailable::RevokePending { .. } => {
                return;
            }
        },
        (
            Op::SetValue { .. } | Op::SetDraining { .. } | Op::WriteRegister { .. } | Op::Release { .. },
            Answer::Refused(Refusal::NotCurrent { .. } | Refusal::NotHolder { .. }),
        ) => S::OldTokenRefused,
        _ => return,
    });
}

fn happened(sometimes: &mut Sometimes, queues: &mut Queues, revived: &HashSet<SessionId>, event: &Event) {
    use Situation as S;
    match event {
        Event::Granted { grant, shared, .. } => {
            if *shared && grant.fence != grant.token {
                sometimes.reach(S::SharedGroup);
            }
            if grant.slot.is_some() {
                sometimes.reach(S::SlotGranted);
            }
        }
        Event::WaitGranted { session, command, grants } => {
            sometimes.reach(S::WaiterServed);
            if grants.len() > 1 {
                sometimes.reach(S::UnitServed);
            }
            if revived.contains(session) {
                sometimes.reach(S::RevivedWaiterServed);
            }
            if queues.passes_somebody((*session, command.get())) {
                sometimes.reach(S::WaiterPassedOver);
            }
            queues.leave((*session, command.get()));
        }
        Event::WaitEnded { session, command, why } => {
            if matches!(why, leasehold_core::WaitEnding::TimedOut) {
                sometimes.reach(S::WaitTimedOut);
            }
            queues.leave((*session, command.get()));
        }
        Event::SessionEnded { session } => queues.leave_all(*session),
        Event::Ended { how, .. } => match how {
            Ending::HandedOver { .. } => sometimes.reach(S::HandedOver),
            Ending::Taken { .. } => sometimes.reach(S::Taken),
            Ending::SessionClosed => sometimes.reach(S::SessionClosedWithLeases),
            Ending::Expired => sometimes.reach(S::SessionExpired),
            Ending::Restored => sometimes.add(S::RestoredDuringWait, u64::from(queues.drop_all())),
            Ending::Released | Ending::Drained | Ending::Revoked { .. } | Ending::Rebooted => {}
        },
        Event::AlarmRaised { .. } => sometimes.reach(S::AlarmRaised),
        Event::AlarmCleared { .. } => sometimes.reach(S::AlarmCleared),
        Event::DrainingShown { .. } => sometimes.reach(S::DrainingShown),
        Event::SessionOpened { .. }
        | Event::ValueSet { .. }
        | Event::ReadySet { .. }
        | Event::RegisterWritten { .. } => {}
    }
}

/// What only the streams show.
fn told(sometimes: &mut Sometimes, step: &Step<'_>) {
    for (_, item) in &step.outcome.items {
        match item.kind {
            ItemKind::OfferEnded { .. } => sometimes.reach(Situation::OfferEnded),
            ItemKind::OfferAccepted { .. } => sometimes.reach(Situation::OfferAccepted),
            _ => {}
        }
    }
}

/// Revokes that were acknowledged, and names all of whose slots were held at once.
fn slots(run: Run<'_>, sometimes: &mut Sometimes) {
    let mut revoked = HashSet::new();
    let mut sizes: HashMap<&ResourceName, u32> = HashMap::new();
    let mut held: HashMap<&ResourceName, BTreeSet<leasehold_core::Token>> = HashMap::new();
    for step in &run.story.steps {
        for (command, _, answer) in step.answers() {
            match (&command.op, answer) {
                (Op::Release { token, .. }, Answer::Released) if revoked.remove(token) => {
                    sometimes.reach(Situation::RevokeAcknowledged);
                }
                (Op::Acquire(acquire), _) => {
                    for request in &acquire.requests {
                        if let Mode::Slot { of } = request.mode {
                            sizes.insert(&request.resource, of);
                        }
                    }
                }
                _ => {}
            }
        }
        for event in &step.outcome.events {
            match event {
                Event::Granted { grant, .. } if grant.slot.is_some() => {
                    let held = held.entry(&grant.resource).or_default();
                    held.insert(grant.token);
                    let full = sizes.get(&grant.resource).is_some_and(|of| held.len() >= *of as usize);
                    if full {
                        sometimes.reach(Situation::SlotsFull);
                    }
                }
                Event::Ended { resource, token, how, .. } => {
                    if let Some(held) = held.get_mut(resource) {
                        held.remove(token);
                    }
                    if matches!(how, Ending::Revoked { .. }) {
                        revoked.insert(*token);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Who waits, in the order in which they came.
#[derive(Default)]
struct Queues {
    waits: Vec<((SessionId, u64), Vec<ResourceName>)>,
}

impl Queues {
    fn join(&mut self, wait: (SessionId, u64), names: Vec<ResourceName>) {
        self.waits.push((wait, names));
    }

    fn leave(&mut self, wait: (SessionId, u64)) {
        self.waits.retain(|(other, _)| *other != wait);
    }

    fn leave_all(&mut self, session: SessionId) {
        self.waits.retain(|((other, _), _)| *other != session);
    }

    /// Whether there was anybody.
    fn drop_all(&mut self) -> bool {
        !std::mem::take(&mut self.waits).is_empty()
    }

    fn passes_somebody(&self, wait: (SessionId, u64)) -> bool {
        let Some(place) = self.waits.iter().position(|(other, _)| *other == wait) else { return false };
        let (before, own) = (&self.waits[..place], &self.waits[place].1);
        before.iter().any(|(_, names)| names.iter().any(|name| own.contains(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::reached;
    use super::*;
    use crate::check::stage::{Stage, name};
    use leasehold_core::Policies;

    /// One holds, one waits; both are renewed in time but as told.
    fn held_and_waited(policies: Policies) -> (Stage, [SessionId; 2], leasehold_core::Token) {
        let mut stage = Stage::new();
        let (first, second) = (stage.open_with(1, policies), stage.open_with(2, policies));
        let token = stage.acquire(first).unwrap();
        stage.acquire(second).unwrap_err();
        (stage, [first, second], token)
    }

    fn graceful() -> Policies {
        let millis = leasehold_core::Millis::new;
        Policies { grace: millis(1_000), hard: millis(2_000), delay: millis(0) }
    }

    #[test]
    fn a_renewal_in_the_entry_of_the_expiry_is_seen() {
        let (mut stage, [first, second], _) = held_and_waited(graceful());
        let (_, renewal) = stage.at(1_500).renewal(first);
        stage.commit(vec![Command::Tidy(vec![Due::Resource(name(0))]), renewal]);
        let seen = reached(&stage);
        assert!(seen.contains(&Situation::RenewalRescues), "{seen:?}");
        assert!(seen.contains(&Situation::RenewalInEntryOfExpiry), "{seen:?}");
        assert!(!seen.contains(&Situation::SessionExpired), "{seen:?}");
        let _ = second;
    }

    #[test]
    fn a_renewal_beside_something_else_that_is_due_is_not_that() {
        let (mut stage, [first, _], _) = held_and_waited(graceful());
        let (_, renewal) = stage.at(500).renewal(first);
        stage.commit(vec![Command::Tidy(vec![Due::Resource(name(0))]), renewal]);
        let seen = reached(&stage);
        assert!(!seen.contains(&Situation::RenewalInEntryOfExpiry), "{seen:?}");
    }

    #[test]
    fn a_waiter_that_is_passed_over_and_one_that_comes_back_are_seen() {
        let (mut stage, [first, second], token) = held_and_waited(graceful());
        stage.at(900);
        let third = stage.open(3);
        stage.acquire(third).unwrap_err();
        stage.renew(first, &[token]);
        let next = stage.at(1_200).release(first, token).unwrap();
        assert!(reached(&stage).contains(&Situation::WaiterPassedOver));
        assert!(!reached(&stage).contains(&Situation::RevivedWaiterServed));
        let (_, close) = stage.command(third, Op::Close);
        stage.at(1_300).commit(vec![close]);
        stage.at(1_400).renew(second, &[]);
        let seen = reached(&stage);
        assert!(seen.contains(&Situation::RevivedWaiterServed), "{seen:?}");
        let _ = next;
    }
}
