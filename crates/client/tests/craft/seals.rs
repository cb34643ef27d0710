//! Seal on grant: nobody acts before every receiver refuses older tokens, and what cannot be sealed is given back.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::fence::{Authority, Error as FenceError, Outcome, Stamp};
use leasehold::testing::{TestStore, World};
use leasehold::{Error, Lease, ResourceName, Session, SessionEvent, SessionOptions, Successor};

use super::scripted::{Say, Scripted};
use super::{MOMENT, Running, SECOND, named};

/// ttl less margin: sealing is tried for so long.
const USABLE: Duration = Duration::from_secs(9);

fn open(world: &World, store: &TestStore, options: &SessionOptions) -> Session {
    world.run(store.session_with(options)).unwrap()
}

fn holder(world: &World, store: &TestStore, name: &str) -> Option<(String, u64)> {
    let view = world.run(store.lease(&ResourceName::new(name).unwrap())).unwrap()?;
    view.holders.first().map(|holder| (holder.label.to_string(), holder.token.get()))
}

fn is_free(world: &World, store: &TestStore, name: &str) -> bool {
    holder(world, store, name).is_none()
}

/// Which receiver, how it ended, and the whole message.
fn not_sealed(error: Error) -> (String, Outcome, String) {
    let said = error.to_string();
    let Error::NotSealed { receiver, source, .. } = error else { panic!("{said}") };
    (receiver, source.outcome(), said)
}

fn acquire(session: &Session, wait: Duration) -> impl Future<Output = Result<Lease, Error>> {
    session.acquire("job").wait(wait).into_future()
}

#[test]
fn a_lease_is_given_out_only_when_its_receiver_refuses_the_tokens_before_it() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[Say::Rule], Say::AtTheGate);
    let first = open(&world, &one, &named("first").seal_at(database.clone()));
    let second = open(&world, &two, &named("second").seal_at(database.clone()));
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    let old = lease.guard(SECOND).unwrap().stamp().unwrap();
    let old_guard = lease.guard(SECOND).unwrap();

    // The first one is paused for good; the second is granted the lease, and its seal is under way.
    one.pause();
    let mut waiting = Running::new(&world, acquire(&second, SECOND * 60));
    assert!(waiting.go_on(SECOND * 11).is_none(), "granted, and not given out");
    let (label, token) = holder(&world, &two, "job").unwrap();
    assert_eq!(label, "second");
    assert_eq!(database.tried(), [("job".to_owned(), old.token()), ("job".to_owned(), token)]);
    assert!(database.write(&old).is_ok(), "the receiver knows no better yet, so nobody else may act");

    database.open_the_gate();
    let taken = waiting.go_on(MOMENT * 20).expect("it is sealed").unwrap();
    assert!(taken.state().is_held());
    assert_eq!((database.highest("job"), database.holder("job").as_deref()), (Some(token), Some("second")));
    // Before the second one has written anything.
    assert!(matches!(database.write(&old), Err(FenceError::Stale(stale)) if stale.highest == Some(token)));
    assert!(matches!(database.write(&old_guard), Err(FenceError::NoAuthority(_))), "its own clock tells it");
    database.write(&taken.guard(SECOND).unwrap()).unwrap();
}

#[test]
fn a_stale_seal_gives_the_lease_back_at_once_and_says_what_to_do() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::honest("postgres://db/orders");
    database.write(&Stamp::new("job", 4711).unwrap()).unwrap();
    let first = open(&world, &one, &named("first").seal_at(database));
    let second = open(&world, &two, &named("second"));
    let granted = Running::new(&world, acquire(&first, SECOND)).go_on(Duration::ZERO);
    let (receiver, outcome, said) = not_sealed(granted.expect("no time has to pass").unwrap_err());
    assert_eq!((receiver.as_str(), outcome), ("postgres://db/orders", Outcome::Stale));
    assert_eq!(
        said,
        "postgres://db/orders could not be sealed with token 3 of job, so the lease was given back: token 3 of job is stale: the \
         receiver has seen 4711; nothing was written; tokens fell: greater ones came from another store, or from this one before it was set \
         back. Use that store, or raise the tokens of this one: leasehold data recover --data DIR --above 4711 (add --holders-are-stopped if no \
         holder runs, else nothing is granted for its longest ttl)"
    );
    assert!(is_free(&world, &two, "job"));
    assert!(world.run(second.acquire("job").into_future()).is_ok());
}

#[test]
fn a_receiver_that_fails_is_tried_until_the_time_is_over_and_the_next_in_line_has_it_at_once() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::Failed);
    let first = open(&world, &one, &named("first").seal_at(database.clone()));
    let second = open(&world, &two, &named("second"));
    let mut sealing = Running::new(&world, acquire(&first, SECOND));
    assert!(sealing.go_on(MOMENT).is_none());
    let mut waiting = Running::new(&world, acquire(&second, SECOND * 60));
    assert!(waiting.go_on(MOMENT).is_none());
    assert!(sealing.go_on(USABLE / 2).is_none());
    let failed = sealing.go_on(USABLE / 2).expect("not longer than a renewal carries").unwrap_err();
    let (receiver, outcome, said) = not_sealed(failed);
    assert_eq!((receiver.as_str(), outcome), ("database", Outcome::Failed));
    assert_eq!(
        said,
        "database could not be sealed with token 3 of job, so the lease was given back: database: nothing was written: connection refused; \
         see that database answers, then ask for the lease again"
    );
    let tries = database.tried().len();
    assert!((10..40).contains(&tries), "with back-off: {tries}");
    let taken = waiting.go_on(Duration::ZERO).expect("the release was waited for").unwrap();
    assert!(taken.token().is_ok());
}

#[test]
fn a_receiver_that_answers_is_mended_and_not_looked_for() {
    let world = World::new();
    let store = world.store();
    let session = open(&world, &store, &named("first").seal_at(Scripted::new("database", &[], Say::Busy)));
    let failed = world.run_for(USABLE * 2, acquire(&session, SECOND)).expect("its time is over").unwrap_err();
    let (_, outcome, said) = not_sealed(failed);
    assert_eq!(outcome, Outcome::Failed);
    assert!(said.ends_with("others have the lock; mend that, then ask for the lease again"), "{said}");
}

#[test]
fn what_time_does_not_change_is_tried_once_and_the_next_in_line_has_it_at_once() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::Missing);
    let first = open(&world, &one, &named("first").seal_at(database.clone()));
    let failed = world.run_for(SECOND, acquire(&first, SECOND)).expect("at once").unwrap_err();
    let (_, outcome, said) = not_sealed(failed);
    assert_eq!((outcome, database.tried().len()), (Outcome::Failed, 1));
    assert!(said.ends_with("there is no table; mend that, then ask for the lease again"), "{said}");
    assert!(is_free(&world, &two, "job"));
}

/// The first attempt may have sealed it, whatever is wrong now.
#[test]
fn a_failure_behind_an_attempt_that_is_unknown_is_unknown() {
    let world = World::new();
    let store = world.store();
    let database = Scripted::new("database", &[Say::Unknown], Say::Missing);
    let session = open(&world, &store, &named("first").seal_at(database.clone()));
    let failed = world.run_for(SECOND, acquire(&session, SECOND)).expect("at once").unwrap_err();
    let (_, outcome, said) = not_sealed(failed);
    assert_eq!((outcome, database.tried().len()), (Outcome::Unknown, 2));
    assert!(said.contains("there is no table"), "{said}");
}

#[test]
fn a_seal_that_failed_or_is_unknown_is_tried_again() {
    let world = World::new();
    let store = world.store();
    let script = [Say::Unknown, Say::Failed, Say::Unknown];
    let database = Scripted::new("database", &script, Say::Rule);
    let session = open(&world, &store, &named("first").seal_at(database.clone()));
    let lease = world.run_for(SECOND, acquire(&session, SECOND)).expect("it is tried soon").unwrap();
    let token = lease.granted().fence.get();
    assert_eq!(database.tried(), vec![("job".to_owned(), token); 4]);
    assert!(lease.token().is_ok());
}

#[test]
fn a_seal_that_is_never_answered_does_not_outlive_its_time() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let first = open(&world, &one, &named("first").seal_at(database));
    let second = open(&world, &two, &named("second"));
    let mut sealing = Running::new(&world, acquire(&first, SECOND));
    assert!(sealing.go_on(USABLE - MOMENT).is_none());
    let (_, outcome, said) = not_sealed(sealing.go_on(MOMENT * 2).expect("it is over").unwrap_err());
    assert_eq!(outcome, Outcome::Unknown);
    assert!(said.contains("no answer within 9s"), "{said}");
    assert!(world.run(second.acquire("job").into_future()).is_ok());
}

#[test]
fn the_answer_to_the_release_is_waited_for_and_not_for_long() {
    let world = World::new();
    let store = world.store();
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let session = open(&world, &store, &named("first").seal_at(database));
    let mut sealing = Running::new(&world, acquire(&session, SECOND));
    assert!(sealing.go_on(USABLE - MOMENT).is_none());
    store.hold_back_answers();
    assert!(sealing.go_on(Duration::from_millis(490)).is_none(), "nobody says that it is given back");
    not_sealed(sealing.go_on(MOMENT * 4).expect("the ttl does the rest").unwrap_err());
}

#[test]
fn a_lease_that_lapsed_while_it_was_sealed_is_given_out_only_when_a_renewal_confirms_it() {
    for heals in [true, false] {
        let world = World::new();
        let store = world.store();
        let database = Scripted::new("database", &[], Say::AtTheGate);
        let session = open(&world, &store, &named("first").seal_at(database.clone()));
        // The deadline counts from the open, so it comes before the time to seal is over.
        world.advance(SECOND * 2);
        let mut sealing = Running::new(&world, acquire(&session, SECOND));
        assert!(sealing.go_on(MOMENT).is_none());
        store.cut();
        assert!(sealing.go_on(USABLE - SECOND * 2).is_none());
        database.open_the_gate();
        assert!(sealing.go_on(MOMENT * 20).is_none(), "the receiver would, and the lease is not believed");
        if heals {
            store.heal();
            let lease = sealing.go_on(SECOND).expect("the same token was confirmed").unwrap();
            assert!(lease.state().is_held());
            assert_eq!(database.highest("job"), Some(lease.granted().fence.get()));
        } else {
            let over = sealing.go_on(SECOND * 3).expect("it is not waited for without end").unwrap_err();
            let (_, outcome, said) = not_sealed(over);
            assert_eq!(outcome, Outcome::Lapsed);
            assert!(said.contains("the deadline has passed without a confirmed renewal"), "{said}");
        }
    }
}

#[test]
fn a_seal_answered_after_the_deadline_gives_nobody_a_lease_that_is_not_believed() {
    let world = World::new();
    let store = world.store();
    // Two receivers: the first name is sealed in time, and the lease lapses while the other one takes long.
    let (quick, slow) = (Scripted::honest("quick"), Scripted::new("slow", &[], Say::AtTheGate));
    let options = named("first").seal_at(slow.clone()).seal_at(quick.clone());
    let session = open(&world, &store, &options);
    world.advance(SECOND * 2);
    let mut sealing = Running::new(&world, acquire(&session, SECOND));
    assert!(sealing.go_on(SECOND).is_none());
    assert_eq!((quick.tried().len(), slow.tried().len()), (1, 1), "receivers are sealed side by side");
    // The machine sleeps past the deadline, and the receiver answers before anybody looks at a clock.
    store.hold_back_answers();
    store.suspend(SECOND * 7);
    slow.open_the_gate();
    assert!(sealing.go_on(MOMENT).is_none(), "sealed, and lapsed");
}

#[test]
fn a_call_that_is_given_up_while_it_seals_gives_the_lease_back() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let first = open(&world, &one, &named("first").seal_at(database));
    let second = open(&world, &two, &named("second"));
    let mut sealing = Running::new(&world, acquire(&first, SECOND));
    assert!(sealing.go_on(SECOND).is_none());
    assert_eq!(holder(&world, &two, "job").unwrap().0, "first");
    drop(sealing);
    world.advance(MOMENT);
    assert!(world.run(second.acquire("job").into_future()).is_ok());
}

#[test]
fn a_lease_that_is_revoked_while_it_is_sealed_is_given_up_at_once() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let first = open(&world, &one, &named("first").seal_at(database));
    let mut sealing = Running::new(&world, acquire(&first, SECOND));
    assert!(sealing.go_on(SECOND).is_none());
    let name = ResourceName::new("job").unwrap();
    let token = leasehold::Token::from_u64(holder(&world, &two, "job").unwrap().1);
    let (by, reason) = (leasehold::Label::new("me").unwrap(), leasehold::Reason::new("test").unwrap());
    world.run(two.revoke(&name, token, by, reason, false)).unwrap();
    let (_, outcome, _) = not_sealed(sealing.go_on(MOMENT * 10).expect("it is over").unwrap_err());
    assert_eq!(outcome, Outcome::Lapsed);
    assert!(is_free(&world, &two, "job"), "nothing acted under it: acknowledged");
}

#[test]
fn slots_seal_under_their_own_names_and_shared_holders_with_the_token_of_their_group() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::honest("database");
    let first = open(&world, &one, &named("first").seal_at(database.clone()));
    let second = open(&world, &two, &named("second").seal_at(database.clone()));
    let slots: Vec<Lease> = [&first, &second]
        .map(|session| world.run(session.acquire("shard").slots(2).into_future()).unwrap())
        .into();
    let expected: Vec<(String, u64)> =
        slots.iter().map(|lease| (lease.fence_name(), lease.granted().token.get())).collect();
    assert_eq!(database.tried(), expected);
    let mut names: Vec<String> = expected.into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(names, ["shard#0", "shard#1"]);
    let guard = slots[0].guard(SECOND).unwrap();
    assert_eq!(guard.stamp().unwrap().name(), slots[0].fence_name());

    let [founder, member] =
        [&first, &second].map(|session| world.run(session.acquire("log").shared().into_future()).unwrap());
    assert!(member.granted().token > founder.granted().token);
    let group = founder.granted().token.get();
    assert_eq!(database.tried()[2..], [("log".to_owned(), group), ("log".to_owned(), group)]);
    let stamp = member.guard(SECOND).unwrap().stamp().unwrap();
    assert_eq!((stamp.token(), stamp.holder()), (group, Some("second")));
    database.write(&founder.guard(SECOND).unwrap()).unwrap();
    database.write(&member.guard(SECOND).unwrap()).unwrap();
}

#[test]
fn several_names_are_sealed_everywhere_or_all_are_given_back() {
    let world = World::new();
    let store = world.store();
    let (database, queue) = (Scripted::honest("database"), Scripted::honest("queue"));
    let session = open(&world, &store, &named("first").seal_at(database.clone()));
    let leases = world.run(session.acquire_all(["a", "b"]).seal_at(queue.clone()).into_future()).unwrap();
    let expected: Vec<(String, u64)> =
        leases.iter().map(|lease| (lease.fence_name(), lease.granted().fence.get())).collect();
    assert_eq!((database.tried(), queue.tried()), (expected.clone(), expected));
    drop(leases);
    world.advance(MOMENT);

    queue.write(&Stamp::new("b", 4711).unwrap()).unwrap();
    let refused = world.run(session.acquire_all(["a", "b"]).seal_at(queue).into_future()).unwrap_err();
    let (receiver, outcome, said) = not_sealed(refused);
    assert_eq!((receiver.as_str(), outcome), ("queue", Outcome::Stale));
    assert!(said.contains("of b is stale"), "{said}");
    assert!(is_free(&world, &store, "a") && is_free(&world, &store, "b"));
    // One request alone names its own receiver; the session's goes with every lease.
    let before = database.tried().len();
    world.run(session.acquire("c").into_future()).unwrap();
    assert_eq!(database.tried().len(), before + 1);
}

#[test]
fn what_is_handed_over_is_sealed_too() {
    let world = World::new();
    let (one, two) = (world.store(), world.store());
    let database = Scripted::new("database", &[], Say::AtTheGate);
    let first = open(&world, &one, &named("first"));
    let second = open(&world, &two, &named("second").seal_at(database.clone()));
    let lease = world.run(first.acquire("job").into_future()).unwrap();
    let mut events = second.events();
    let mut offering = Running::new(&world, lease.offer(Successor::Session(second.id()), SECOND * 5));
    assert!(offering.go_on(MOMENT).is_none());
    let SessionEvent::Offered { resource, token, .. } = world.run(events.next()).unwrap() else {
        panic!("an offer was made")
    };
    let mut accepting = Running::new(&world, second.accept(&resource, token, b""));
    assert!(accepting.go_on(MOMENT).is_none());
    offering.go_on(MOMENT).expect("it was taken up").unwrap();
    drop(offering);
    world.run(lease.release()).unwrap();
    assert!(accepting.go_on(SECOND).is_none(), "granted, and not sealed");
    assert_eq!(holder(&world, &one, "job").unwrap().0, "second");
    database.open_the_gate();
    let taken = accepting.go_on(MOMENT * 20).expect("it is sealed").unwrap();
    assert_eq!(database.highest("job"), Some(taken.token().unwrap().get()));
}

#[test]
fn a_guard_vouches_while_its_own_time_runs_and_its_lease_is_believed() {
    let world = World::new();
    let store = world.store();
    let database = Scripted::honest("database");
    let session = open(&world, &store, &named("first"));
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    let (short, long) = (lease.guard(SECOND).unwrap(), lease.guard(SECOND * 8).unwrap());
    database.write(&short).unwrap();
    assert_eq!(short.stamp().unwrap(), long.stamp().unwrap());
    world.advance(SECOND);
    let refused = database.write(&short).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Lapsed);
    assert_eq!(
        refused.to_string(),
        "may not act on job: the time that the guard was given for is over; ask for another guard; nothing was sent"
    );
    database.write(&long).unwrap();
    // A suspended machine: the guard's time is not over by one clock, and nothing may be believed.
    store.hold_back_answers();
    store.suspend(SECOND * 3);
    let refused = long.stamp().unwrap_err();
    assert_eq!(refused.why, "the clocks of this machine disagree; a renewal must be confirmed first");
    world.run_for(MOMENT, lease.release());
}

#[test]
fn programs_without_a_runtime_seal_too() {
    use leasehold::blocking::{Store, wait};
    let directory = tempfile::tempdir().unwrap();
    let store = Store::connect(&format!("dir:{}", directory.path().display())).unwrap();
    let database = Scripted::new("database", &[Say::Failed], Say::Rule);
    let session = store.session_with(&SessionOptions::new().seal_at(database.clone())).unwrap();
    let lease = wait(session.acquire("job").into_future()).unwrap();
    assert_eq!(database.highest("job"), Some(lease.token().unwrap().get()));
    wait(lease.release()).unwrap();

    // In a runtime that this very call keeps from running, too.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    database.answer_with(Say::Failed);
    let options = SessionOptions::new().ttl(SECOND).seal_at(database.clone());
    let refused = runtime.block_on(async {
        let session = store.session_with(&options).unwrap();
        wait(session.acquire("job").into_future()).unwrap_err()
    });
    // On a machine that stands still for a ttl the lease has lapsed.
    let (_, outcome, said) = not_sealed(refused);
    assert!(matches!(outcome, Outcome::Failed | Outcome::Lapsed), "{said}");
    let session = store.session().unwrap();
    assert!(wait(acquire(&session, SECOND * 30)).is_ok(), "it was given back");
    wait(session.close()).unwrap();
    store.close();
}
