//! Facts about leases, waits and belief.

use crate::answer::{Answer, ItemKind, Refusal};
use crate::client::{
    EndedWhy, Event, Incoming, Input, LeaseState, Outcome, SessionEnd, SubmitError, WaitOver,
};
use crate::command::Op;
use crate::holder::NoGuard;
use crate::id::{CommandNumber, SessionId};
use crate::name::{Label, Value};
use crate::time::Millis;

use super::play::*;

#[test]
fn belief_ends_when_the_release_is_submitted() {
    let mut play = Play::holding();
    assert_eq!(play.guard(10), Ok(()));
    play.machine.submit(release()).unwrap();
    assert_eq!(play.guard(10), Err(NoGuard::Ended));
    play.poll(10);
    let why = EndedWhy::Released;
    let ended = Event::LeaseEnded { resource: name(), token: TOKEN, why, confirmed_until: Some(at(9_000)) };
    assert_eq!(play.events, [ended]);
}

#[test]
fn a_revoke_ends_belief_and_is_acknowledged_by_the_applications_release_alone() {
    let mut play = Play::holding();
    play.item(revoked(), 100);
    assert_eq!(play.guard(100), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [], "something may still act under the lease");
    play.submit(release(), 200);
    assert_eq!(play.commands(), [(2, release())]);
}

#[test]
fn a_revoke_that_crosses_a_release_is_acknowledged_by_that_release() {
    let mut play = Play::holding();
    play.submit(release(), 90);
    play.item(revoked(), 100);
    assert_eq!(play.commands(), [(2, release())]);
}

#[test]
fn a_cancel_that_crosses_the_grant_gives_the_lease_back() {
    let mut play = Play::waiting();
    let cancel = Op::Cancel { acquire: CommandNumber::new(1) };
    play.submit(cancel.clone(), 50);
    play.item(wait_granted(), 60);
    assert_eq!(play.guard(60), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [(2, cancel), (3, release())]);
    play.answer(2, Answer::AlreadyGranted(granted()), 70);
    play.answer(3, Answer::Released, 80);
    let command = CommandNumber::new(1);
    let over = Event::WaitOver { command, how: WaitOver::Cancelled };
    let outcome = Outcome::Answered(Answer::AlreadyGranted(granted()));
    assert_eq!(play.events, [over, Event::Resolved { command: CommandNumber::new(2), outcome }]);
}

#[test]
fn an_accept_by_one_who_waits_leaves_nothing_behind_it() {
    for wait in [1, 2] {
        let mut play = Play::waiting();
        let accept = Op::Accept { resource: name(), token: TOKEN, value: Value::default() };
        play.submit(accept, 50);
        play.answer(2, Answer::Accepted { wait: CommandNumber::new(wait) }, 60);
        let waits = play.machine.waits.iter().map(|command| command.get());
        assert!(waits.eq(1..=wait));
    }
}

#[test]
fn a_cancel_behind_the_grant_gives_the_lease_back() {
    let mut play = Play::waiting();
    play.item(wait_granted(), 50);
    assert_eq!(play.guard(50), Ok(()));
    let cancel = Op::Cancel { acquire: CommandNumber::new(1) };
    play.submit(cancel.clone(), 60);
    assert_eq!(play.guard(60), Err(NoGuard::Ended));
    assert_eq!(play.commands(), [(2, cancel), (3, release())]);
}

#[test]
fn an_acquire_granted_after_its_cancel_is_cancelled() {
    let mut play = Play::attached();
    play.submit(acquire(Some(1_000)), 0);
    play.submit(Op::Cancel { acquire: CommandNumber::new(1) }, 1);
    play.answer(1, Answer::Granted(granted()), 10);
    assert_eq!(play.resolved(), [(1, Outcome::Cancelled)]);
    assert_eq!(play.guard(10), Err(NoGuard::Ended));
    assert_eq!(play.commands().last(), Some(&(3, release())));
}

#[test]
fn a_cancelled_wait_is_over_once() {
    let mut play = Play::waiting();
    play.submit(Op::Cancel { acquire: CommandNumber::new(1) }, 50);
    play.answer(2, Answer::Cancelled, 60);
    let over = play.events.iter().filter(|event| matches!(event, Event::WaitOver { .. })).count();
    assert_eq!(over, 1);
}

#[test]
fn a_grant_after_the_deadline_is_not_held_until_a_later_renewal_is_confirmed() {
    let mut play = Play::waiting();
    play.poll(3_333);
    play.item(wait_granted(), 9_000);
    assert!(matches!(play.machine.state(TOKEN, at(9_000)), Some(LeaseState::Lapsed { .. })));
    assert_eq!(play.renewals(), [1, 2]);
    play.receive(renewed(1, 2), 9_050);
    assert_eq!(play.guard(9_050), Err(NoGuard::Lapsed), "sent before the grant came");
    play.receive(renewed(2, 2), 9_060);
    assert_eq!(play.guard(9_060), Ok(()));
}

#[test]
fn a_renewal_answered_behind_a_lost_item_counts_only_after_it() {
    let mut play = Play::holding();
    play.poll(3_333);
    play.forget();
    play.receive(renewed(1, 2), 3_400);
    assert_eq!(play.machine.lease(TOKEN).unwrap().until(), at(9_000));
    play.poll(3_800);
    assert_eq!(play.attaches(), [(2, 1)], "the lost item is asked for");
    play.receive(attached(2, 1, 2), 3_810);
    play.item(revoked(), 3_820);
    assert_eq!(play.guard(3_820), Err(NoGuard::Ended));
}

#[test]
fn an_ended_session_leaves_unknown_what_was_sent_and_nothing_refused() {
    let mut play = Play::holding();
    play.submit(acquire(None), 10);
    play.input(Input::Disconnected, 20);
    play.submit(acquire(None), 30);
    play.input(Input::Connected, 40);
    play.forget();
    play.refuse(Refusal::SessionEnded { session: SESSION }, 50);
    assert_eq!(play.resolved(), [(2, Outcome::Unknown), (3, Outcome::NotSent)]);
    let why = EndedWhy::SessionEnded;
    let lost = Event::LeaseEnded { resource: name(), token: TOKEN, why, confirmed_until: Some(at(9_000)) };
    assert_eq!(play.events.first(), Some(&lost));
    assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::ByService(SESSION) }));
    assert_eq!(play.machine.submit(acquire(None)), Err(SubmitError::SessionEnded));
    assert_eq!(play.machine.next_wake(at(60)), None);
}

#[test]
fn a_wait_ends_with_its_session() {
    let mut play = Play::waiting();
    play.refuse(Refusal::SessionEnded { session: SESSION }, 50);
    let over = Event::WaitOver { command: CommandNumber::new(1), how: WaitOver::SessionEnded };
    assert!(play.events.contains(&over));
}

#[test]
fn a_close_ends_belief_and_renewals_and_takes_no_grant() {
    let mut play = Play::waiting();
    play.submit(Op::Close, 10);
    assert_eq!(play.machine.submit(acquire(None)), Err(SubmitError::Closing));
    play.item(wait_granted(), 20);
    assert_eq!(play.guard(20), Err(NoGuard::Ended));
    play.poll(3_333);
    assert!(play.renewals().is_empty());
    play.receive(Incoming::Closed { session: SESSION }, 3_400);
    assert_eq!(play.resolved(), [(2, Outcome::Closed)]);
    assert_eq!(play.events.last(), Some(&Event::SessionEnded { why: SessionEnd::Closed }));
}

#[test]
fn a_command_in_whose_place_something_else_stood_is_told_as_not_in_use_yet() {
    let mut play = Play::holding();
    let drains = Op::SetDraining { resource: name(), token: TOKEN, in_flight: 1, within: Millis::new(5) };
    play.submit(drains.clone(), 50);
    assert_eq!(play.commands(), [(2, drains)]);
    let command = CommandNumber::new(2);
    play.answer(2, Answer::Refused(Refusal::NoSuchWait { acquire: command }), 60);
    let outcome = Outcome::Answered(Answer::Refused(Refusal::NotYetInUse));
    assert_eq!(play.events, [Event::Resolved { command, outcome }]);
    assert_eq!(play.guard(60), Ok(()), "the lease is held as before");
}

#[test]
fn word_of_an_accepted_offer_reaches_whoever_still_holds() {
    let (by, label) = (SessionId::from_u64(9), Label::new("b").unwrap());
    let accepted = || ItemKind::OfferAccepted { resource: name(), token: TOKEN, by, label: label.clone() };
    let mut play = Play::holding();
    play.item(accepted(), 50);
    let told = Event::OfferAccepted { resource: name(), token: TOKEN, by, label: label.clone() };
    assert_eq!(play.events, [told]);
    let mut play = Play::holding();
    play.submit(release(), 40);
    play.events.clear();
    play.item(accepted(), 50);
    assert_eq!(play.events, [], "it was given back before");
}
