//! Watches: order, resuming, and what cannot be watched.

use std::time::Duration;

use leasehold_core::protocol::{Change, Changes, Failure};
use leasehold_core::{Ending, Revision};
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use tonic::{Code, Status, Streaming};

use super::support::{Client, Running, acquire, assert_status, failure, held, open, release};

type Stream = Streaming<pb::WatchResponse>;

async fn watch(client: &mut Client, prefix: &str, after: Option<u64>) -> Result<Stream, Status> {
    let request = pb::WatchRequest { prefix: prefix.into(), after };
    client.watch(request).await.map(tonic::Response::into_inner)
}

/// The next message, which must come soon.
async fn next(stream: &mut Stream) -> Result<Changes, Status> {
    let message = tokio::time::timeout(Duration::from_secs(10), stream.message()).await.expect("it comes");
    let message = message?.expect("the watch goes on");
    assert!(!message.more, "so little fits one message");
    Ok(Changes::from_wire(message.changes.expect("changes are there")).expect("they can be"))
}

/// The next changes, each as one word with its resource.
async fn told(stream: &mut Stream) -> Vec<String> {
    let changes = next(stream).await.expect("the watch goes on").changes;
    changes
        .iter()
        .map(|change| match change {
            Change::Granted { grant, .. } => format!("granted {}", grant.resource),
            Change::ValueSet { resource, .. } => format!("value-set {resource}"),
            Change::RegisterWritten { resource, key, .. } => format!("register-written {resource} {key}"),
            Change::Ended { resource, how: Ending::Released, .. } => format!("released {resource}"),
            Change::Ended { resource, how, .. } => format!("ended {resource} {how:?}"),
            Change::AlarmRaised { resource, .. } => format!("alarm-raised {resource}"),
            Change::AlarmCleared { resource, .. } => format!("alarm-cleared {resource}"),
            Change::DrainingShown { resource, .. } => format!("draining-shown {resource}"),
            Change::ReadySet { resource, .. } => format!("ready-set {resource}"),
        })
        .collect()
}

#[tokio::test]
async fn changes_come_in_the_order_of_the_log() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "web-1").await;
    let mut stream = watch(&mut client, "", None).await.unwrap();
    let start = next(&mut stream).await.unwrap();
    assert!(start.changes.is_empty() && start.revision > Revision::new(0));
    let token = held(&mut client, &key, "jobs").await;
    let first = next(&mut stream).await.unwrap();
    assert!(first.revision > start.revision);
    let [Change::Granted { grant, label, shared: false, .. }] = &first.changes[..] else {
        panic!("{first:?}");
    };
    assert_eq!((grant.token.get(), label.as_str()), (token, "web-1"));
    let set = pb::SetValueRequest {
        session_key: key.clone(),
        resource: "jobs".into(),
        token,
        value: b"v".to_vec(),
        ..Default::default()
    };
    client.set_value(set).await.unwrap();
    let write = pb::WriteRegisterRequest {
        session_key: key.clone(),
        resource: "jobs".into(),
        token,
        key: "k".into(),
        content: Some(pb::write_register_request::Content::Value(Vec::new())),
        with_lease: true,
        ..Default::default()
    };
    client.write_register(write).await.unwrap();
    client.release(release(&key, "jobs", token)).await.unwrap();
    assert_eq!(told(&mut stream).await, ["value-set jobs"]);
    assert_eq!(told(&mut stream).await, ["register-written jobs k"]);
    assert_eq!(told(&mut stream).await, ["released jobs"]);
}

#[tokio::test]
async fn a_watch_resumes_after_what_was_seen_and_sees_only_its_prefix() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    held(&mut client, &key, "a/1").await;
    let seen = client.list_leases(pb::ListLeasesRequest::default()).await.unwrap().into_inner().revision;
    let unit = pb::AcquireRequest {
        requests: ["a/2", "b/1", "a/3"].map(|name| acquire(&key, name).requests.remove(0)).to_vec(),
        ..acquire(&key, "")
    };
    client.acquire(unit).await.unwrap();
    held(&mut client, &key, "b/2").await;
    held(&mut client, &key, "a/4").await;
    let mut stream = watch(&mut client, "a/", Some(seen)).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().revision, Revision::new(seen));
    let unit = next(&mut stream).await.unwrap();
    let names: Vec<_> = unit.changes.iter().map(|change| change.resource().as_str()).collect();
    assert_eq!(names, ["a/2", "a/3"]);
    assert_eq!(told(&mut stream).await, ["granted a/4"]);
    let mut again = watch(&mut client, "a/", Some(unit.revision.get())).await.unwrap();
    assert!(next(&mut again).await.unwrap().changes.is_empty());
    assert_eq!(told(&mut again).await, ["granted a/4"]);
}

#[tokio::test]
async fn a_revision_that_does_not_exist_is_refused() {
    let running = Running::start();
    let mut client = running.client().await;
    let status = watch(&mut client, "", Some(1_000_000)).await.unwrap_err();
    assert_status(&status, Code::OutOfRange, "revision-ahead", "refused");
    assert!(matches!(failure(&status), Failure::RevisionAhead { after, .. } if after.get() == 1_000_000));
    let status = watch(&mut client, &"p".repeat(513), None).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
}

#[tokio::test]
async fn a_revision_that_is_not_kept_any_more_is_refused_with_the_oldest() {
    let running = Running::start();
    let mut client = running.client().await;
    // Eight megabytes of changes are kept; each unit brings a quarter of one.
    for round in 0..40 {
        let key = open(&mut client, "a").await;
        let unit = pb::AcquireRequest {
            requests: (0..64).map(|i| acquire(&key, &format!("r/{i}")).requests.remove(0)).collect(),
            value: vec![round; 4096],
            ..acquire(&key, "")
        };
        client.acquire(unit).await.unwrap();
        client
            .close_session(pb::CloseSessionRequest { session_key: key, ..Default::default() })
            .await
            .unwrap();
    }
    let status = watch(&mut client, "", Some(1)).await.unwrap_err();
    assert_status(&status, Code::OutOfRange, "revision-too-old", "refused");
    let Failure::RevisionTooOld { after, oldest } = failure(&status) else { panic!("{status:?}") };
    assert!(after.get() == 1 && oldest > after);
    let mut stream = watch(&mut client, "", Some(oldest.get())).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().revision, oldest);
    assert!(next(&mut stream).await.unwrap().revision > oldest);
}

#[tokio::test]
async fn watches_are_limited_and_one_that_ends_makes_room() {
    let running = Running::with(|config| {
        config.limits.max_watches = 2;
        config.limits.max_watches_per_connection = 2;
    });
    let mut client = running.client().await;
    let first = watch(&mut client, "", None).await.unwrap();
    let _second = watch(&mut client, "", None).await.unwrap();
    let status = watch(&mut client, "", None).await.unwrap_err();
    assert_status(&status, Code::ResourceExhausted, "too-many-watches", "failed");
    assert_eq!(failure(&status), Failure::TooManyWatches { limit: 2 });
    drop(first);
    let room = async {
        while watch(&mut client, "", None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), room).await.expect("the place is free again");
}

#[tokio::test]
async fn a_service_that_stops_ends_its_watches_with_a_word() {
    let running = Running::start();
    let mut client = running.client().await;
    let mut stream = watch(&mut client, "", None).await.unwrap();
    next(&mut stream).await.unwrap();
    running.drain();
    let status = next(&mut stream).await.unwrap_err();
    assert_status(&status, Code::Unavailable, "unavailable", "failed");
}
