//! Drain: no new work, finish, give back, name the successor.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::World;
use leasehold::{Drain, Draining, Ending, Error, Termination};

use super::{MOMENT, Running, SECOND, named};

#[test]
fn a_drain_finishes_what_is_in_flight_then_gives_back_and_names_the_successor() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = world.run(one.session_with(&named("first"))).unwrap();
    let second = world.run(two.session_with(&named("second"))).unwrap();
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    let (resource, token) = (lease.resource().clone(), lease.granted().token);
    let mut waiting = Running::new(&world, second.acquire("job").wait(SECOND * 60).into_future());
    assert!(waiting.go_on(MOMENT).is_none());

    let drain = Drain::new();
    let work = drain.begin().unwrap();
    let mut draining = Running::new(&world, drain.run(&lease, SECOND * 30));
    assert!(draining.go_on(SECOND * 2).is_none());
    assert_eq!(drain.begin().unwrap_err(), Draining, "input is stopped before anything else");
    assert!(waiting.go_on(MOMENT).is_none(), "not given back while work is in flight");

    drop(work);
    let resigned = draining.go_on(SECOND).expect("nothing is left").unwrap();
    let taken = waiting.go_on(MOMENT).unwrap().unwrap();
    let successor = resigned.successor.expect("somebody waited");
    assert_eq!((successor.label.as_str(), successor.token), ("second", taken.granted().token));
    let past = world.run(one.history(&resource)).unwrap();
    assert_eq!((past[0].token, &past[0].how), (token, &Ending::Drained));
}

#[test]
fn a_drain_that_runs_out_of_time_keeps_the_lease_and_says_what_is_left() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let drain = Drain::new();
    let (one, two) = (drain.begin().unwrap(), drain.begin().unwrap());
    let over = world.run_for(SECOND * 6, drain.run(&lease, SECOND * 5)).expect("the budget is over");
    assert!(matches!(over.unwrap_err(), Error::Unfinished(left) if left.in_flight == 2));
    assert!(lease.token().is_ok(), "what still runs is still protected");
    drop((one, two));
    assert_eq!(drain.in_flight(), 0);
}

#[test]
fn without_a_waiter_the_time_runs_out_and_is_said_to() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let mut resigning = Running::new(&world, lease.resign(SECOND));
    assert!(resigning.go_on(Duration::from_millis(990)).is_none());
    assert_eq!(resigning.go_on(MOMENT * 2).unwrap().unwrap().successor, None);
}

#[tokio::test]
async fn a_grace_period_too_short_for_the_work_is_refused_at_start() {
    let refused = Termination::listen(SECOND * 30, SECOND * 30).unwrap_err();
    assert!(matches!(refused, Error::GraceTooShort { .. }));
    assert_eq!(
        refused.to_string(),
        "a grace period of 30s is below the 30.5s that a drain needs: 30s for the work, the rest to give the lease back; \
         raise the grace period, or shorten the work"
    );
    let termination = Termination::listen(SECOND * 30, SECOND * 10).unwrap();
    assert_eq!(termination.budget(), Duration::from_millis(29_500));
}
