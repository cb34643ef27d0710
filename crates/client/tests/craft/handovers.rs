//! Handover to somebody named: past the queue, drained first, and bounded when either side dies at any step.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::{TestStore, World};
use leasehold::{Error, Label, Lease, Refusal, Session, SessionEvent, Successor};

use super::{MOMENT, Running, SECOND, named};

struct Cast {
    world: World,
    stores: [TestStore; 3],
    sessions: [Session; 3],
}

/// One holds, two wait: `second` is first in line, `third` is the one that is named.
fn cast() -> Cast {
    let world = World::new();
    let stores = [world.store(), world.store(), world.store()];
    let open = |store: &TestStore, label| world.run(store.session_with(&named(label))).unwrap();
    let sessions = [open(&stores[0], "first"), open(&stores[1], "second"), open(&stores[2], "third")];
    Cast { world, stores, sessions }
}

type Waiting<'a> = Running<'a, Result<Lease, Error>>;

impl Cast {
    fn waiting(&self, number: usize) -> Waiting<'_> {
        let acquire = self.sessions[number].acquire("job").wait(SECOND * 600).into_future();
        let mut waiting = Running::new(&self.world, acquire);
        assert!(waiting.go_on(MOMENT).is_none());
        waiting
    }

    fn third() -> Successor {
        Successor::Labelled(Label::new("third").unwrap())
    }
}

/// Lets two waiters go on until one of them has the lease: which, and after how long.
fn first_of(waiting: &mut [&mut Waiting<'_>], limit: Duration) -> Option<(usize, Lease, Duration)> {
    let mut waited = Duration::ZERO;
    while waited <= limit {
        for (number, waiter) in waiting.iter_mut().enumerate() {
            if let Some(lease) = waiter.go_on(MOMENT) {
                return Some((number, lease.unwrap(), waited));
            }
            waited += MOMENT;
        }
    }
    None
}

/// A dead holder's lease ends after the ttl and its drift factor, and the service looks at its clock every few milliseconds.
const AFTER_A_DEATH: Duration = Duration::from_millis(10_200);

#[test]
fn a_named_successor_that_waits_takes_up_the_offer_by_itself() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let (mut second, mut third) = (cast.waiting(1), cast.waiting(2));
    let taker = cast.world.run(lease.offer(Cast::third(), SECOND * 5)).unwrap();
    assert_eq!(taker.label.as_str(), "third");
    assert!(lease.token().is_ok(), "it is held until it is released");
    let resigned = cast.world.run(lease.resign(SECOND)).unwrap();
    assert_eq!(resigned.successor.unwrap().label.as_str(), "third");
    let (number, taken, waited) = first_of(&mut [&mut second, &mut third], SECOND).unwrap();
    assert_eq!((number, waited <= MOMENT * 2), (1, true), "past the queue, and at once");
    drop(taken);
}

#[test]
fn an_operator_names_a_successor_and_the_holder_is_asked_only_when_that_one_is_ready() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let (mut second, mut third) = (cast.waiting(1), cast.waiting(2));
    let mut asked = Running::new(&cast.world, lease.release_requested());
    let by = || Label::new("operator").unwrap();
    cast.stores[2].pause();
    let ask = cast.stores[1].ask_release(lease.resource(), None, Some(Cast::third()), by());
    cast.world.run(ask).unwrap();
    assert!(asked.go_on(SECOND).is_none(), "the successor has not answered yet");
    cast.stores[2].unpause();
    let request = asked.go_on(SECOND).expect("it is ready now");
    assert_eq!((request.by.as_str(), request.successor), ("operator", Some(Cast::third())));
    drop(asked);
    cast.world.run(lease.release_drained()).unwrap();
    assert_eq!(first_of(&mut [&mut second, &mut third], SECOND).unwrap().0, 1);
}

#[test]
fn an_offer_that_was_asked_for_is_shown_as_long_as_the_holder_goes_by_it() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let (_second, mut third) = (cast.waiting(1), cast.waiting(2));
    let mut asked = Running::new(&cast.world, lease.release_requested());
    let shown = || {
        let view = cast.world.run(cast.stores[1].lease(lease.resource())).unwrap().unwrap();
        view.holders[0].offer.clone().map(|offer| (offer.ready, offer.remaining.duration()))
    };
    cast.stores[2].pause();
    let by = Label::new("operator").unwrap();
    let ask = cast.stores[1].ask_release(lease.resource(), None, Some(Cast::third()), by);
    cast.world.run(ask).unwrap();
    cast.world.advance(MOMENT);
    let (ready, remaining) = shown().expect("it is offered");
    assert!(
        !ready && remaining <= SECOND * 60,
        "not taken up, it is acted upon for a minute, not for {remaining:?}"
    );
    cast.stores[2].unpause();
    asked.go_on(SECOND).expect("it is ready now");
    let (ready, remaining) = shown().expect("it still is");
    assert!(ready && remaining > SECOND * 60 * 50, "a drain may take long: {remaining:?}");
    drop(asked);
    cast.world.run(lease.release_drained()).unwrap();
    assert!(third.go_on(SECOND).expect("it was handed over").is_ok());
}

#[test]
fn a_successor_that_does_not_exist_disturbs_nobody() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let refused = cast.world.run(lease.offer(Cast::third(), SECOND)).unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::NoSuchSuccessor)), "{refused}");
    let by = Label::new("operator").unwrap();
    cast.world.run(cast.stores[1].ask_release(lease.resource(), None, Some(Cast::third()), by)).unwrap();
    let mut asked = Running::new(&cast.world, lease.release_requested());
    assert!(asked.go_on(SECOND * 5).is_none());
    assert!(lease.token().is_ok());
}

#[test]
fn one_that_was_not_waiting_takes_up_an_offer_by_word() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let mut events = cast.sessions[2].events();
    let to = Successor::Session(cast.sessions[2].id());
    let mut offering = Running::new(&cast.world, lease.offer(to, SECOND * 5));
    assert!(offering.go_on(MOMENT).is_none());
    let SessionEvent::Offered { resource, token, .. } = cast.world.run(events.next()).unwrap() else {
        panic!("an offer was made")
    };
    let mut accepting = Running::new(&cast.world, cast.sessions[2].accept(&resource, token, b"here"));
    assert!(accepting.go_on(MOMENT).is_none(), "not before the holder lets go");
    assert_eq!(offering.go_on(MOMENT).unwrap().unwrap().label.as_str(), "third");
    drop(offering);
    cast.world.run(lease.release()).unwrap();
    assert!(accepting.go_on(MOMENT).unwrap().unwrap().token().is_ok());
}

#[test]
fn what_is_granted_in_another_mode_than_was_waited_for_is_given_back() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let mut second = cast.waiting(1);
    // It waits to share, and the holder's place is an exclusive one.
    let shared = cast.sessions[2].acquire("job").shared().wait(SECOND * 600).into_future();
    let mut third = Running::new(&cast.world, shared);
    assert!(third.go_on(MOMENT).is_none());
    cast.world.run(lease.offer(Cast::third(), SECOND * 5)).unwrap();
    cast.world.run(lease.release_drained()).unwrap();
    let taken = second.go_on(SECOND).expect("it does not stay with one that does not want it").unwrap();
    cast.world.run(taken.release()).unwrap();
    assert!(third.go_on(SECOND).expect("its own wait goes on").unwrap().token().is_ok());
}

#[test]
fn an_accept_that_is_given_up_leaves_nobody_with_a_lease_it_does_not_know() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let token = lease.granted().token;
    let resource = lease.resource().clone();
    let to = Successor::Session(cast.sessions[2].id());
    let mut offering = Running::new(&cast.world, lease.offer(to, SECOND * 60));
    assert!(offering.go_on(MOMENT).is_none());
    let mut accepting = Running::new(&cast.world, cast.sessions[2].accept(&resource, token, b""));
    assert!(accepting.go_on(MOMENT).is_none());
    offering.go_on(MOMENT).expect("it was taken up").unwrap();
    drop((accepting, offering));
    cast.world.advance(MOMENT);
    cast.world.run(lease.release()).unwrap();
    let taken = cast.world.run_for(SECOND, cast.sessions[1].acquire("job").wait(SECOND * 60).into_future());
    taken.expect("it was given back").unwrap();
}

#[test]
fn an_offer_that_nobody_takes_up_ends_and_the_lease_is_held_as_before() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let to = Successor::Session(cast.sessions[2].id());
    let over = cast.world.run_for(SECOND * 3, lease.offer(to, SECOND * 2)).expect("it has a length");
    assert!(matches!(over.unwrap_err(), Error::NotTakenUp { .. }));
    assert!(lease.token().is_ok());
}

/// How far a handover has come when somebody dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    BeforeTheOffer,
    Offered,
    Accepted,
    Released,
}

const STEPS: [Step; 4] = [Step::BeforeTheOffer, Step::Offered, Step::Accepted, Step::Released];

/// Plays a handover to `third` up to a step and kills one of the two. Says who has the lease then, and how long that took.
fn killed(step: Step, kills_holder: bool) -> (usize, Duration) {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let token = lease.granted().token;
    let (mut second, mut third) = (cast.waiting(1), cast.waiting(2));
    let mut lease = Some(lease);
    if step == Step::Offered {
        // The offer is made, and the successor does not hear of it before the death.
        cast.stores[2].hold_back_answers();
        let offering = lease.as_ref().unwrap().offer(Cast::third(), SECOND * 60);
        assert!(cast.world.run_for(MOMENT, offering).is_none());
    }
    if matches!(step, Step::Accepted | Step::Released) {
        cast.world.run(lease.as_ref().unwrap().offer(Cast::third(), SECOND * 60)).unwrap();
    }
    if step == Step::Released {
        // The grant is on its way to the successor when the death comes.
        cast.stores[2].hold_back_answers();
        cast.world.run(lease.take().unwrap().release_drained()).unwrap();
    }
    let victim = if kills_holder { 0 } else { 2 };
    cast.stores[victim].pause();
    if kills_holder {
        cast.stores[2].deliver();
    } else if let Some(lease) = lease.take() {
        // The holder goes on with the handover that it began.
        cast.world.run(lease.release_drained()).unwrap();
    }
    let waiting: &mut [&mut Waiting<'_>] =
        if kills_holder { &mut [&mut second, &mut third] } else { &mut [&mut second] };
    let (number, taken, waited) = first_of(waiting, SECOND * 30).expect("nobody stays without it");
    assert!(taken.granted().token > token);
    if let Some(lease) = &lease {
        assert!(!lease.state().is_held(), "two believe at once");
    }
    drop(taken);
    std::mem::forget(lease);
    (number, waited)
}

#[test]
fn when_the_holder_dies_at_any_step_the_next_has_it_within_the_ttl() {
    for step in STEPS {
        let (number, waited) = killed(step, true);
        if step == Step::Released {
            assert_eq!((number, waited <= MOMENT * 2), (1, true), "{step:?}: {waited:?}");
        } else {
            // The offer dies with the lease: the queue decides.
            assert_eq!(number, 0, "{step:?}");
            assert!(waited <= AFTER_A_DEATH, "{step:?}: {waited:?}");
        }
    }
}

#[test]
fn when_the_successor_dies_at_any_step_the_queue_has_it() {
    for step in STEPS {
        let (number, waited) = killed(step, false);
        assert_eq!(number, 0, "{step:?}");
        if matches!(step, Step::BeforeTheOffer | Step::Offered) {
            assert!(
                waited <= MOMENT * 2,
                "{step:?}: one that is not ready is passed over at once, not after {waited:?}"
            );
        } else {
            // It had said that it was ready, and its session lives until its ttl is over: the lease went to it and ends with it.
            assert!(waited <= AFTER_A_DEATH, "{step:?}: {waited:?}");
        }
    }
}

#[test]
fn a_service_that_stands_still_in_a_handover_loses_nothing() {
    let cast = cast();
    let lease = cast.world.run(cast.sessions[0].acquire("job").into_future()).unwrap();
    let (mut second, mut third) = (cast.waiting(1), cast.waiting(2));
    cast.world.run(lease.offer(Cast::third(), SECOND * 60)).unwrap();
    cast.world.stop_service();
    let mut releasing = Running::new(&cast.world, lease.release_drained());
    assert!(releasing.go_on(SECOND * 5).is_none());
    cast.world.continue_service();
    assert!(releasing.go_on(SECOND * 2).unwrap().is_ok());
    assert_eq!(first_of(&mut [&mut second, &mut third], SECOND * 2).unwrap().0, 1);
}
