//! What a holder sees when things go wrong, in a world whose clock is moved by hand.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::{TestStore, World};
use leasehold::{
    EndedWhy, Ending, Error, Label, Lease, LeaseState, NoGuard, Reason, Session, SessionOptions,
};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

fn open(world: &World, store: &TestStore, ttl: u32) -> Session {
    world.run(store.session_with(&SessionOptions::new().ttl(SECOND * ttl))).unwrap()
}

fn take(world: &World, session: &Session) -> Lease {
    world.run(session.acquire("job").into_future()).unwrap()
}

#[test]
fn a_held_lease_is_renewed_and_stays() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 10);
    let lease = take(&world, &session);
    world.advance(SECOND * 60);
    assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
    assert!(lease.guard(SECOND * 5).is_ok());
}

#[test]
fn a_guard_is_given_only_for_what_fits_before_the_deadline() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 10);
    let lease = take(&world, &session);
    assert!(lease.guard(SECOND * 8).is_ok());
    assert!(matches!(lease.guard(SECOND * 10), Err(NoGuard::TooLong { .. })));
}

#[test]
fn a_paused_holder_learns_it_before_any_guard_and_the_other_has_a_greater_token() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 10));
    let lease = take(&world, &first);
    one.pause();
    let taken = world.run_for(SECOND * 30, second.acquire("job").wait(SECOND * 60).into_future());
    let taken = taken.expect("a dead holder is replaced").unwrap();
    assert!(taken.granted().token > lease.granted().token);
    // Its driver has not run since, and still no guard is given: the clocks are looked at here.
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Lapsed);
    one.unpause();
    world.advance(SECOND);
    assert!(matches!(lease.state(), LeaseState::Ended { .. }), "{:?}", lease.state());
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Ended);
}

#[test]
fn belief_ends_before_the_service_grants_to_another() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 2), open(&world, &two, 2));
    let lease = take(&world, &first);
    one.cut();
    let waiting = second.acquire("job").wait(SECOND * 60).into_future();
    let mut waiting = std::pin::pin!(waiting);
    loop {
        let granted = world.run_for(Duration::from_millis(10), waiting.as_mut());
        let believes = lease.state().is_held();
        if let Some(granted) = granted {
            assert!(!believes, "two holders believe at once");
            assert!(granted.unwrap().granted().token > lease.granted().token);
            return;
        }
    }
}

#[test]
fn a_cut_shorter_than_the_ttl_costs_nothing() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 10);
    let lease = take(&world, &session);
    store.cut();
    world.advance(SECOND * 5);
    assert!(matches!(lease.state(), LeaseState::Retrying { .. }), "{:?}", lease.state());
    store.heal();
    world.advance(SECOND);
    assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
}

#[test]
fn strict_sessions_get_no_guard_while_a_renewal_is_unanswered() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session_with(&SessionOptions::new().strict())).unwrap();
    let lease = take(&world, &session);
    store.cut();
    world.advance(SECOND * 5);
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Retrying);
}

#[test]
fn an_answer_delayed_by_more_than_the_ttl_gives_no_belief() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 2);
    let lease = take(&world, &session);
    store.hold_back_answers();
    world.advance(SECOND * 2);
    assert!(!lease.state().is_held(), "{:?}", lease.state());
    store.deliver();
    // Answers to renewals that were sent long ago have arrived all at once; only those sent lately count.
    let state = lease.state();
    if let LeaseState::Held { remaining } = state {
        assert!(remaining < SECOND * 2, "{remaining:?} counted from receipt");
    }
}

#[test]
fn suspend_makes_the_holder_uncertain_until_a_renewal_confirms() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 10);
    let lease = take(&world, &session);
    store.hold_back_answers();
    store.suspend(SECOND * 3);
    assert!(matches!(lease.state(), LeaseState::Uncertain { .. }), "{:?}", lease.state());
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Uncertain);
    store.deliver();
    world.advance(SECOND);
    assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
}

#[test]
fn a_revoked_holder_is_told_and_the_next_waits_for_its_acknowledgement() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 10));
    let lease = take(&world, &first);
    let (by, reason) = (Label::new("me").unwrap(), Reason::new("test").unwrap());
    world.run(two.revoke(lease.resource(), lease.granted().token, by, reason, false)).unwrap();
    let LeaseState::Ended { why: EndedWhy::ByService(Ending::Revoked { .. }), .. } = lease.state() else {
        panic!("{:?}", lease.state())
    };
    // Something may still act under it: only the holder knows when not.
    let error = world.run(second.acquire("job").into_future()).unwrap_err();
    assert!(error.to_string().contains("revoked"), "{error}");
    let token = lease.granted().token;
    drop(lease);
    world.advance(MOMENT);
    // Acknowledged: the resource is free without waiting for the ttl.
    let next = world.run(second.acquire("job").into_future()).unwrap();
    assert!(next.granted().token > token);
}

#[test]
fn a_dropped_wait_is_given_up_and_a_dropped_lease_given_back() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 10));
    let lease = take(&world, &first);
    assert!(world.run_for(SECOND, second.acquire("job").wait(SECOND * 60).into_future()).is_none());
    world.advance(MOMENT);
    let view = world.run(one.lease(lease.resource())).unwrap().unwrap();
    assert_eq!(view.waiting, 0, "the wait was dropped");
    drop(lease);
    world.advance(MOMENT);
    assert!(world.run(second.acquire("job").into_future()).is_ok());
}

#[test]
fn without_a_wait_the_answer_names_the_holder() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 10));
    let lease = take(&world, &first);
    let error = world.run(second.acquire("job").into_future()).unwrap_err();
    assert!(matches!(error, Error::NotFree { .. }), "{error}");
    assert!(error.to_string().contains(&format!("token {}", lease.granted().token)), "{error}");
}

#[test]
fn the_holder_is_asked_to_release_and_the_waiter_gets_it() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 10));
    let lease = take(&world, &first);
    world.run(two.ask_release(lease.resource(), None, None, Label::new("me").unwrap())).unwrap();
    let request = world.run(lease.release_requested());
    assert_eq!(request.by.as_str(), "me");
    world.run(lease.release_drained()).unwrap();
    assert!(world.run(second.acquire("job").into_future()).is_ok());
}

#[test]
fn a_stopped_service_costs_no_live_holder_its_lease() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 2);
    let lease = take(&world, &session);
    world.stop_service();
    world.advance(SECOND * 6);
    assert!(matches!(lease.state(), LeaseState::Lapsed { .. }), "{:?}", lease.state());
    world.continue_service();
    world.advance(SECOND);
    assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
}

#[test]
fn a_renewal_that_is_waited_for_has_moved_the_deadline_when_it_is_told() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 10);
    let lease = take(&world, &session);
    let before = lease.deadline().unwrap();
    world.advance(SECOND);
    world.run(session.renew()).unwrap();
    assert!(lease.deadline().unwrap().boot >= before.boot + 1_000_000_000);
    // Several at once are told by the same, or by one each if the first was sent before the second was asked for.
    let sent = store.figures().renewals_sent;
    let (one, two) = world.run(async { tokio::join!(session.renew(), session.renew()) });
    assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
    assert!((1..=2).contains(&(store.figures().renewals_sent - sent)));
}

/// There to find: one that waits for ever, and one that says that nothing was sent when something was.
#[test]
fn a_renewal_that_is_not_confirmed_says_what_is_known_of_it() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, 100);
    let lease = take(&world, &session);
    store.cut();
    let unsent = world.run_for(SECOND * 60, session.renew()).unwrap().unwrap_err();
    assert!(matches!(unsent, Error::Unreachable(_)), "{unsent}");
    assert!(lease.state().is_held(), "it is held until its deadline: {:?}", lease.state());
    store.heal();
    world.run(session.renew()).unwrap();
    world.stop_service();
    let sent = world.run_for(SECOND * 60, session.renew()).unwrap().unwrap_err();
    assert!(matches!(sent, Error::OutcomeUnknown), "{sent}");
    world.continue_service();
    world.run(session.renew()).unwrap();

    let mut waiting = Box::pin(session.renew());
    world.stop_service();
    assert!(world.run_for(MOMENT, waiting.as_mut()).is_none());
    drop(waiting);
    world.continue_service();
    world.run(lease.release()).unwrap();
    world.run(session.renew()).unwrap();
}

#[test]
fn the_outcome_of_what_was_sent_and_never_answered_is_unknown() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 2), open(&world, &two, 2));
    one.hold_back_answers();
    let asked = first.acquire("job").into_future();
    let mut asked = std::pin::pin!(asked);
    assert!(world.run_for(MOMENT, asked.as_mut()).is_none());
    one.cut();
    world.advance(SECOND * 4);
    one.heal();
    let outcome = world.run_for(SECOND, asked).expect("the session has ended").unwrap_err();
    assert!(matches!(outcome, Error::OutcomeUnknown), "{outcome}");
    drop(second);
}

#[test]
fn a_guard_is_over_when_its_lease_is() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let session = open(&world, &one, 10);
    let lease = take(&world, &session);
    let guard = lease.guard(SECOND * 5).unwrap();
    assert!(guard.remaining().is_some());
    let (by, reason) = (Label::new("me").unwrap(), Reason::new("test").unwrap());
    world.run(two.revoke(lease.resource(), lease.granted().token, by, reason, false)).unwrap();
    assert_eq!(guard.remaining(), None);
}

#[test]
fn a_call_of_several_steps_runs_to_its_end_without_time() {
    let world = World::new();
    let store = world.store();
    let token = world.run(async {
        let session = store.session().await?;
        let lease = session.acquire("job").wait(SECOND * 30).await?;
        Ok::<_, Error>(lease.granted().token)
    });
    assert!(token.is_ok());
}

#[test]
fn a_waiter_whose_session_the_service_ended_is_told_so() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let (first, second) = (open(&world, &one, 10), open(&world, &two, 2));
    let lease = take(&world, &first);
    let waiting = second.acquire("job").wait(SECOND * 600).into_future();
    let mut waiting = std::pin::pin!(waiting);
    assert!(world.run_for(SECOND, waiting.as_mut()).is_none());
    two.cut();
    world.advance(SECOND * 4);
    two.heal();
    let error = world.run_for(SECOND, waiting).expect("the session is over").unwrap_err();
    assert!(error.to_string().contains("has ended"), "{error}");
    assert!(!error.to_string().contains("was closed"), "{error}");
    drop(lease);
}
