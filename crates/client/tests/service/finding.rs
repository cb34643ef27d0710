//! Several addresses, and services that go and come.

use std::time::Duration;

use leasehold::core::Revision;
use tokio::net::TcpListener;

use super::stage::{REVISION, Stage, connect, soon};

const PATIENCE: Duration = Duration::from_secs(5);

/// An address at which nobody listens.
async fn nowhere() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_does_not_answer_does_not_keep_the_others_from_being_tried() {
    let (stage, bad, worse) = (Stage::new().await, nowhere().await, nowhere().await);
    let url = format!("leasehold://{bad},{},{worse}", stage.address);
    // The first to be tried is drawn: whichever it is, the good one is found.
    for _ in 0..8 {
        let store = soon(connect(&url, PATIENCE)).await.unwrap();
        assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
        soon(store.close()).await;
    }
    assert_eq!(stage.taken(), 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_addresses_are_somebodys_first() {
    let stages = [Stage::new().await, Stage::new().await];
    let url = format!("leasehold://{},{}", stages[0].address, stages[1].address);
    for _ in 0..64 {
        soon(soon(connect(&url, PATIENCE)).await.unwrap().close()).await;
    }
    assert!(stages.iter().all(|stage| stage.taken() > 0), "one in 2^63 does not happen");
    assert_eq!(stages[0].taken() + stages[1].taken(), 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_asked_again_at_another_address_when_the_first_is_gone() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let url = format!("leasehold://{},{}", first.address, second.address);
    let store = soon(connect(&url, PATIENCE)).await.unwrap();
    let (used, other) = if first.taken() == 1 { (first, second) } else { (second, first) };
    assert_eq!((used.taken(), other.taken()), (1, 0));
    used.stop().await;
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!(other.taken(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_begins_late_is_found_within_patience() {
    let address = nowhere().await;
    let url = format!("leasehold://{address}");
    let connecting = tokio::spawn(async move { connect(&url, PATIENCE).await });
    // Nothing to be seen from outside tells that the first attempts have failed.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let stage = Stage::at(&address).await;
    soon(connecting).await.unwrap().unwrap();
    assert_eq!(stage.taken(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_says_hello_and_no_more_is_left_for_another() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let url = format!("leasehold://{},{}", first.address, second.address);
    let store = soon(connect(&url, Duration::from_secs(2))).await.unwrap();
    let (used, other) = if first.taken() == 1 { (first, second) } else { (second, first) };
    used.silence(true);
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!((used.taken(), other.taken()), (1, 1));
}
