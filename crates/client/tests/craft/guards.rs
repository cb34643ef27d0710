//! Guards and tokens: nothing is given that the deadline does not cover.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::World;
use leasehold::{NoGuard, SessionOptions};

use super::{MOMENT, Running, SECOND};

#[test]
fn a_token_is_given_by_a_held_lease_only() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    assert_eq!(lease.token().unwrap(), lease.granted().fence);
    store.cut();
    world.advance(SECOND * 9);
    assert_eq!(lease.token().unwrap_err(), NoGuard::Lapsed);
    store.heal();
    world.advance(MOMENT);
    assert_eq!(lease.token().unwrap(), lease.granted().fence, "the service still had it");
}

#[test]
fn a_guard_gives_its_token_until_its_own_time_is_over() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND).unwrap();
    world.advance(Duration::from_millis(990));
    assert_eq!(guard.token().unwrap(), lease.granted().fence);
    world.advance(MOMENT);
    assert_eq!(guard.token().unwrap_err(), NoGuard::Over, "the lease is held, the guard is not");
    assert_eq!(guard.remaining(), None);
    assert!(lease.token().is_ok());
}

#[test]
fn strict_leases_give_no_token_while_a_renewal_is_unanswered() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session_with(&SessionOptions::new().strict())).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND * 8).unwrap();
    store.cut();
    world.advance(SECOND * 5);
    assert_eq!(lease.token().unwrap_err(), NoGuard::Retrying);
    assert_eq!(guard.token().unwrap_err(), NoGuard::Retrying);
}

#[test]
fn waiting_out_takes_the_clock_bound_and_looks_again() {
    let world = World::new();
    let store = world.store();
    let options = SessionOptions::new().clock_bound(Duration::from_millis(70));
    let session = world.run(store.session_with(&options)).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND).unwrap();
    let mut waiting = Running::new(&world, guard.wait_out());
    assert!(waiting.go_on(Duration::from_millis(60)).is_none(), "before the bound nothing is shown");
    waiting.go_on(MOMENT).expect("the bound has passed").unwrap();
    drop(waiting);

    let short = lease.guard(Duration::from_millis(50)).unwrap();
    let refused = world.run(short.wait_out()).unwrap_err();
    assert!(matches!(refused, NoGuard::TooLong { .. }), "{refused}");
}

#[test]
fn an_effect_is_not_shown_when_the_lease_was_lost_while_waiting_out() {
    let world = World::new();
    let (store, other) = (world.store(), world.store());
    let options = SessionOptions::new().clock_bound(Duration::from_millis(500));
    let session = world.run(store.session_with(&options)).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND).unwrap();
    let mut waiting = Running::new(&world, guard.wait_out());
    assert!(waiting.go_on(Duration::from_millis(100)).is_none());
    let by = leasehold::Label::new("an operator").unwrap();
    let reason = leasehold::Reason::new("a test").unwrap();
    world.run(other.revoke(lease.resource(), lease.granted().token, by, reason, false)).unwrap();
    assert_eq!(waiting.go_on(SECOND).unwrap().unwrap_err(), NoGuard::Ended);
}
