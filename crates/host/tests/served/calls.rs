//! Single calls: each is answered, and one that nobody waits for any more leaves no wait behind.

use std::time::Duration;

use leasehold_core::protocol::{Failure, Response};
use leasehold_core::{Answer, Op, Reply};

use crate::person::{Person, look, served, token, until_waiting};

#[tokio::test]
async fn a_session_opens_renews_acquires_and_closes() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let person = Person::open(served.caller()).await;
    let token = person.take("job").await;
    let renewed = person.renew().await;
    assert_eq!(renewed.number.get(), 1);
    let holdings = renewed.holdings.unwrap();
    assert_eq!(holdings.leases[0].grant.token, token);
    let released = person.release("job", token).await;
    assert!(
        matches!(released, Response::Reply(Reply::Plain { answer: Answer::Released, .. })),
        "{released:?}"
    );
    assert_eq!(person.op(Op::Close).await, Response::Reply(Reply::Closed));
    let inspection = served.caller().inspect().await.unwrap();
    assert!(inspection.serving && inspection.sync_micros.count() > 4);
    assert_eq!((inspection.sessions, inspection.stats.held_calls, inspection.connections), (0, 0, 0));
}

#[tokio::test]
async fn a_held_acquire_is_answered_when_the_holder_releases() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let (first, second) = (Person::open(served.caller()).await, Person::open(served.caller()).await);
    let held = first.take("job").await;
    let waiter = second.clone();
    let call = tokio::spawn(async move { waiter.hold("job").await });
    until_waiting(served.caller(), "job", 1).await;
    assert!(!call.is_finished());
    first.release("job", held).await;
    assert!(token(&call.await.unwrap()) > held);
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_wait_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let (first, second) = (Person::open(served.caller()).await, Person::open(served.caller()).await);
    let held = first.take("job").await;
    // At once, before the loop can have seen it, and when it waits.
    for patience in [Duration::ZERO, Duration::from_millis(100)] {
        assert!(tokio::time::timeout(patience, second.hold("job")).await.is_err());
    }
    until_waiting(served.caller(), "job", 0).await;
    first.release("job", held).await;
    assert!(look(served.caller(), "job").await.1.unwrap().holders.is_empty());
    assert!(second.renew().await.holdings.unwrap().waits.is_empty());
}

/// Callers come and go while the resource passes from hand to hand. Whoever gave up may have been granted, and then has it: its
/// renewal says so. Nothing is lost, and nothing stands still.
#[tokio::test]
async fn callers_that_give_up_at_any_moment_leave_nothing_behind() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = served(directory.path());
    let (first, second) = (Person::open(served.caller()).await, Person::open(served.caller()).await);
    let (mut granted, mut late, mut gone) = (0, 0, 0);
    for round in 0..300_u64 {
        let held = first.take("job").await;
        let waiter = second.clone();
        let call = tokio::spawn(async move { waiter.hold("job").await });
        // Sooner or later than the release takes: before it is sent, on its way, and when it is known.
        let giving_up = async {
            for _ in 0..round % 60 * 20 {
                tokio::task::yield_now().await;
            }
            call.abort();
        };
        tokio::join!(giving_up, first.release("job", held));
        let known = call.await.ok().map(|response| token(&response));
        until_waiting(served.caller(), "job", 0).await;
        let listed = second.renew().await.holdings.unwrap().leases;
        match (known, listed.first()) {
            (Some(known), Some(lease)) => {
                assert_eq!(lease.grant.token, known);
                granted += 1;
            }
            (None, Some(_)) => late += 1,
            (None, None) => gone += 1,
            (Some(known), None) => panic!("{known} was granted and is gone"),
        }
        for lease in listed {
            second.release("job", lease.grant.token).await;
        }
    }
    println!("{granted} granted and heard of, {late} granted to callers that had gone, {gone} given up");
    assert!(granted + late > 0 && gone > 0);
}

#[tokio::test]
async fn a_call_to_a_service_that_has_ended_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let served = served(directory.path());
    let caller = served.caller().clone();
    let person = Person::open(&caller).await;
    served.stop();
    assert_eq!(served.wait(), Ok(()));
    let response = person.hold("job").await;
    assert!(matches!(response, Response::Failed(Failure::Unavailable { .. })), "{response:?}");
    assert!(caller.inspect().await.is_none());
}
