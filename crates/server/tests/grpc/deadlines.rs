//! Callers that do not wait any longer, and requests that are too long.

use std::time::Duration;

use leasehold_wire::messages as pb;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use super::support::{Running, acquire, assert_status, held, open, renew};

#[tokio::test]
async fn a_deadline_that_passes_takes_the_wait_with_it() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    held(&mut client, &first, "jobs").await;
    let request = pb::AcquireRequest { wait_ms: Some(60_000), ..acquire(&second, "jobs") };
    let answer = by_hand(&running, "Acquire", "grpc-timeout: 50m\r\n", &request).await;
    for line in ["grpc-status: 4\r\n", "leasehold-code: outcome-unknown\r\n", "leasehold-kind: unknown\r\n"] {
        assert!(answer.contains(line), "{line:?} is missing in {answer}");
    }
    until_nothing_waits(&mut client, &second).await;
}

/// A call without a client of gRPC, which would end the call by itself: over HTTP/1.1, where a status without an answer is a head.
async fn by_hand(running: &Running, call: &str, header: &str, message: &impl Message) -> String {
    let length = u32::try_from(message.encoded_len()).expect("a short message");
    let body = [&[0][..], &length.to_be_bytes(), &message.encode_to_vec()].concat();
    let head = format!(
        "POST /leasehold.v1.Leasehold/{call} HTTP/1.1\r\nhost: test\r\ncontent-type: application/grpc\r\n\
         content-length: {}\r\nconnection: close\r\n{header}\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(running.address()).await.expect("the service listens");
    stream.write_all(head.as_bytes()).await.expect("the head is taken");
    stream.write_all(&body).await.expect("the body is taken");
    let mut answer = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut answer)).await;
    read.expect("the call ends in time").expect("the answer is text");
    answer
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_wait_with_it() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    held(&mut client, &first, "jobs").await;
    let mut waiter = client.clone();
    let request = pb::AcquireRequest { wait_ms: Some(60_000), ..acquire(&second, "jobs") };
    let waiting = tokio::spawn(async move { waiter.acquire(request).await });
    while renew(&mut client, &second).await.waits.is_empty() {
        assert!(!waiting.is_finished());
    }
    waiting.abort();
    until_nothing_waits(&mut client, &second).await;
}

/// The cancel goes through the log, so it is not there at once.
async fn until_nothing_waits(client: &mut super::support::Client, key: &str) {
    let gone = async {
        while !renew(client, key).await.waits.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("the wait is cancelled");
}

#[tokio::test]
async fn a_value_is_taken_up_to_its_limit_and_a_message_up_to_its_own() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let token = held(&mut client, &key, "jobs").await;
    let set = |length| pb::SetValueRequest {
        session_key: key.clone(),
        resource: "jobs".into(),
        token,
        value: vec![1; length],
        ..Default::default()
    };
    client.set_value(set(65_536)).await.unwrap();
    let status = client.set_value(set(65_537)).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    let status = client.set_value(set(4 * 1024 * 1024)).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    renew(&mut client, &key).await;
}

#[tokio::test]
async fn a_service_that_stops_answers_whoever_waits() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    held(&mut client, &first, "jobs").await;
    let mut waiter = client.clone();
    let request = pb::AcquireRequest { wait_ms: Some(60_000), ..acquire(&second, "jobs") };
    let waiting = tokio::spawn(async move { waiter.acquire(request).await });
    while renew(&mut client, &second).await.waits.is_empty() {
        assert!(!waiting.is_finished());
    }
    running.drain();
    let answered = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("it is answered");
    let status = answered.unwrap().unwrap_err();
    assert_status(&status, Code::Unavailable, "unavailable", "failed");
}
