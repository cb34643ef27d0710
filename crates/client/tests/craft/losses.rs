//! Losses: a holder learns of them before its next guard, and is told up to when it was confirmed.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::World;
use leasehold::{EndedWhy, Ending, LeaseState, NoGuard};

use super::{MOMENT, SECOND, named};

/// The last renewal before the pause was sent at most a third of the ttl before it, so the deadline lies between these.
const LATEST_CONFIRMATION: Duration = Duration::from_secs(9);

#[test]
fn a_holder_paused_in_a_guarded_action_learns_of_the_loss_before_its_next_guard() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = world.run(one.session_with(&named("first"))).unwrap();
    let second = world.run(two.session_with(&named("second"))).unwrap();
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    world.advance(SECOND * 13);

    // In the middle of a guarded action the process stands still for two ttls.
    let guard = lease.guard(SECOND * 2).unwrap();
    let before = guard.token().unwrap();
    let deadline = lease.deadline().unwrap();
    one.pause();
    let taken = world.run_for(SECOND * 20, second.acquire("job").wait(SECOND * 60).into_future());
    let taken = taken.expect("the waiter has it within two ttls").unwrap();
    world.advance(SECOND * 8);

    // It goes on. Before its driver has heard anything, neither the old guard nor a new one gives a token.
    assert_eq!(guard.token().unwrap_err(), NoGuard::Lapsed);
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Lapsed);
    one.unpause();
    world.advance(MOMENT);
    let LeaseState::Ended { why, confirmed_until } = lease.state() else { panic!("{:?}", lease.state()) };
    assert!(
        matches!(why, EndedWhy::SessionEnded | EndedWhy::ByService(Ending::Taken { .. } | Ending::Expired)),
        "{why:?}"
    );
    let ago = confirmed_until.expect("it was confirmed once");
    assert_eq!(
        ago,
        one.now().since(deadline).smaller(),
        "confirmed up to the deadline that it had, and not longer"
    );
    assert!(taken.granted().token > before);
    assert_eq!(lease.guard(MOMENT).unwrap_err(), NoGuard::Ended);
}

#[test]
fn when_every_answer_is_lost_the_holder_lapses_at_its_deadline_and_not_later() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let deadline = lease.deadline().unwrap();
    // Renewals arrive and are applied; not one answer comes back.
    store.hold_back_answers();
    while deadline.since(store.now()).greater() > MOMENT {
        assert!(lease.state().is_held(), "{:?}", lease.state());
        world.advance(MOMENT);
    }
    world.advance(MOMENT);
    assert!(matches!(lease.state(), LeaseState::Lapsed { .. }), "{:?}", lease.state());
    let token = lease.granted().token;

    // The service had renewed it all the time, so the same token comes back as soon as one answer does.
    world.advance(SECOND * 5);
    store.deliver();
    world.advance(SECOND);
    assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
    assert_eq!(lease.token().unwrap(), token);
}

#[test]
fn when_answers_and_requests_are_lost_the_holder_is_told_what_superseded_it() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    // A hard limit far away: the session outlives the lease, and is told who took it.
    let first = named("first").hard(SECOND * 60);
    let first = world.run(one.session_with(&first)).unwrap();
    let second = world.run(two.session_with(&named("second"))).unwrap();
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    one.cut();
    let taken = world.run_for(SECOND * 15, second.acquire("job").wait(SECOND * 60).into_future());
    let taken = taken.expect("a silent holder is replaced").unwrap();
    one.heal();
    world.advance(SECOND);
    let LeaseState::Ended { why, confirmed_until } = lease.state() else { panic!("{:?}", lease.state()) };
    assert_eq!(why, EndedWhy::ByService(Ending::Taken { by: taken.granted().token }));
    assert!(confirmed_until.unwrap() < LATEST_CONFIRMATION);
}

#[test]
fn when_every_push_is_lost_no_resource_stays_held_by_nobody() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = world.run(one.session_with(&named("first"))).unwrap();
    let second = world.run(two.session_with(&named("second"))).unwrap();
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    let mut waiting = Box::pin(second.acquire("job").wait(SECOND * 600).into_future());
    assert!(world.run_for(MOMENT, waiting.as_mut()).is_none());

    // From here on nothing that the service says reaches the waiter. It is granted the lease and does not know it.
    two.hold_back_answers();
    world.run(lease.release()).unwrap();
    world.advance(SECOND * 5);
    assert!(world.run_for(MOMENT, waiting.as_mut()).is_none());
    // The connection is made anew: the grant was kept, and is brought by the attach.
    two.cut();
    two.heal();
    let granted = world.run_for(SECOND, waiting.as_mut()).expect("nobody would hold it otherwise").unwrap();
    assert!(granted.state().is_held(), "{:?}", granted.state());
}
