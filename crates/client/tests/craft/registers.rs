//! Registers: the service itself is the receiver, and judges the token in its log.

use std::future::IntoFuture;

use leasehold::fence::Outcome;
use leasehold::testing::World;
use leasehold::{Error, Label, Reason};

use super::{MOMENT, SECOND, named};

#[test]
fn a_register_is_written_by_the_holder_and_read_by_everybody() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let session = world.run(one.session_with(&named("first"))).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let name = lease.resource().clone();
    let read = |key: &str| world.run(two.register(&name, key)).unwrap();
    assert_eq!(read("cursor"), None);
    let guard = lease.guard(SECOND).unwrap();
    world.run(guard.register("cursor").write(b"4711")).unwrap();
    world.run(guard.register("address").with_lease().write(b"here")).unwrap();
    let cursor = read("cursor").unwrap();
    assert_eq!((cursor.value.as_slice(), cursor.token), (b"4711".as_slice(), lease.token().unwrap()));
    assert_eq!(read("address").unwrap().value, b"here");

    world.run(guard.register("gone").write(b"")).unwrap();
    assert_eq!(read("gone").unwrap().value, b"", "nothing is a value too");
    world.run(guard.register("gone").remove()).unwrap();
    assert_eq!(read("gone"), None);

    world.run(lease.release()).unwrap();
    assert!(read("cursor").is_some());
    assert_eq!(read("address"), None, "it went with the lease");
}

#[test]
fn a_holder_that_does_not_know_of_its_loss_is_refused_without_any_seal() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let first = world.run(one.session_with(&named("first"))).unwrap();
    let second = world.run(two.session_with(&named("second"))).unwrap();
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND * 8).unwrap();
    // It hears nothing while the lease is taken from it; the next holder has not written anything.
    one.hold_back_answers();
    let (by, reason) = (Label::new("me").unwrap(), Reason::new("test").unwrap());
    world.run(two.revoke(lease.resource(), lease.granted().token, by, reason, true)).unwrap();
    let taken = world.run(second.acquire("job").into_future()).unwrap();
    let mut writing = Box::pin(guard.register("cursor").write(b"old"));
    assert!(world.run_for(MOMENT, writing.as_mut()).is_none(), "sent under a guard that still lives");
    one.deliver();
    let refused = world.run_for(MOMENT, writing).expect("it is answered").unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Stale, "{refused}");
    assert_eq!(world.run(two.register(taken.resource(), "cursor")).unwrap(), None);
}

#[test]
fn every_end_of_a_register_is_told_apart() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session_with(&named("first"))).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let guard = lease.guard(SECOND * 8).unwrap();
    for number in 0..16 {
        world.run(guard.register(&number.to_string()).write(b"x")).unwrap();
    }
    let refused = world.run(guard.register("one more").write(b"x")).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Failed);
    assert!(
        refused.to_string().starts_with("register one more of job: nothing was written: refused: "),
        "{refused}"
    );
    let refused = world.run(guard.register("").write(b"x")).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Failed, "{refused}");
    let refused = world.run(guard.register("0").write(&[0; 65_537])).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Failed, "{refused}");
    let bad = world.run(store.register(lease.resource(), "")).unwrap_err();
    assert!(matches!(bad, Error::Text(_)), "{bad}");

    // No answer within the patience of the store: nobody can say.
    store.hold_back_answers();
    let writing = guard.register("0").write(b"y");
    let unknown = world.run_for(SECOND * 11, writing).expect("the patience is over").unwrap_err();
    assert_eq!(unknown.outcome(), Outcome::Unknown, "{unknown}");
    // By then the guard is over, and nothing is sent.
    let refused = world.run(guard.register("0").write(b"z")).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Lapsed, "{refused}");
}

#[test]
fn shared_holders_write_with_their_own_token() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let sessions = [
        world.run(one.session_with(&named("first"))).unwrap(),
        world.run(two.session_with(&named("second"))).unwrap(),
    ];
    let leases =
        sessions.each_ref().map(|session| world.run(session.acquire("log").shared().into_future()).unwrap());
    for lease in &leases {
        let guard = lease.guard(SECOND).unwrap();
        world.run(guard.register("last").write(b"x")).unwrap();
        let seen = world.run(one.register(lease.resource(), "last")).unwrap().unwrap();
        assert_eq!(seen.token, lease.granted().token);
    }
}
