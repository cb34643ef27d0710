//! The end: everything that was taken in is answered, and what was answered is there afterwards.

use std::time::Duration;

use leasehold_core::protocol::{Failure, Response};
use leasehold_host::Ended;

use crate::peer::Peer;
use crate::person::{PATIENCE, Person, look, served, token, until_waiting};

fn is_withdrawn(response: &Response) -> bool {
    matches!(response, Response::Failed(Failure::Unavailable { why }) if why.contains("withdrawn"))
}

#[tokio::test]
async fn drain_answers_everybody_and_ends() {
    let directory = tempfile::tempdir().unwrap();
    let running = served(directory.path());
    let (first, second) = (Person::open(running.caller()).await, Person::open(running.caller()).await);
    let held = first.take("job").await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let waiter = second.clone();
            tokio::spawn(async move { waiter.hold("job").await })
        })
        .collect();
    until_waiting(running.caller(), "job", 20).await;
    running.drain();
    for call in calls {
        let response = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
        assert!(is_withdrawn(&response), "{response:?}");
    }
    assert_eq!(running.wait(), Ok(()));

    let running = served(directory.path());
    // Reads wait for the start.
    let lease = look(running.caller(), "job").await.1.unwrap();
    assert_eq!((lease.holders[0].token, lease.queue.len()), (held, 0));
}

/// Callers work while the service is told to stop. Each hears what became of its call, and what was granted is held.
#[tokio::test]
async fn drain_in_the_middle_of_work_answers_everybody() {
    for round in 0..10_u64 {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let running = served(directory.path());
        let holder = Person::open(running.caller()).await;
        let mut calls = Vec::new();
        for number in 0..20 {
            let (person, holder) = (Person::open(running.caller()).await, holder.clone());
            calls.push(tokio::spawn(async move {
                let resource = format!("job-{}", number % 4);
                let mut last = None;
                loop {
                    match person.hold(&resource).await {
                        Response::Failed(failure) => return (resource, person.session, last, failure),
                        response => last = Some(token(&response)),
                    }
                    match person.release(&resource, last.unwrap()).await {
                        Response::Failed(failure) => return (resource, person.session, last, failure),
                        _ => last = None,
                    }
                    holder.caller.inspect().await;
                }
            }));
        }
        tokio::time::sleep(Duration::from_millis(5 + round * 3)).await;
        running.drain();
        let mut held = Vec::new();
        for call in calls {
            let (resource, session, last, failure) =
                tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
            let told = match &failure {
                Failure::Unavailable { .. } => true,
                // Sent in the moment between the last turn and the end of the loop.
                Failure::OutcomeUnknown => false,
                other => panic!("{other:?}"),
            };
            held.push((resource, session, last, told));
        }
        assert_eq!(running.wait(), Ok(()));
        let running = served(directory.path());
        for (resource, session, last, told) in held {
            let lease = look(running.caller(), &resource).await.1;
            assert_eq!(lease.as_ref().map_or(0, |lease| lease.queue.len()), 0, "a wait was left behind");
            let holds =
                lease.is_some_and(|lease| lease.holders.iter().any(|holder| holder.session == session));
            assert!(!told || holds == last.is_some(), "{resource} of {session}: {last:?}, held: {holds}");
        }
    }
}

#[tokio::test]
async fn a_service_that_was_told_to_stop_takes_in_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let running = served(directory.path());
    let (caller, door) = (running.caller().clone(), running.door().clone());
    let person = Person::open(&caller).await;
    running.drain();
    let response = person.hold("job").await;
    assert!(
        matches!(response, Response::Failed(Failure::Unavailable { .. } | Failure::OutcomeUnknown)),
        "{response:?}"
    );
    assert_eq!(running.wait(), Ok(()));
    assert_eq!(door.open().err(), Some(Ended));
    let running = served(directory.path());
    assert!(look(running.caller(), "job").await.1.is_none());
}

#[tokio::test]
async fn a_stream_hears_its_answers_before_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    let running = served(directory.path());
    let (first, second) = (Person::open(running.caller()).await, Person::open(running.caller()).await);
    first.take("job").await;
    let mut peer = Peer::new(running.door()).await;
    let id = peer.send(second.held("job")).await;
    until_waiting(running.caller(), "job", 1).await;
    running.drain();
    let response = peer.response(id).await;
    assert!(is_withdrawn(&response), "{response:?}");
    assert!(peer.receive().await.is_none(), "and then the stream ends");
    assert_eq!(running.wait(), Ok(()));
}
