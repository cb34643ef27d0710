//! Members that stand in no list: learned from the service, and tried when nobody of the list answers.

use std::time::Duration;

use leasehold::core::Revision;
use leasehold::{ConnectOptions, Store};
use leasehold_kit::Timer;
use tokio::net::TcpListener;

use super::stage::{REVISION, Stage, connect, soon};

const PATIENCE: Duration = Duration::from_secs(5);

/// A store that names the first alone, and has learned of both.
async fn learned(first: &Stage, second: &Stage) -> Store {
    first.say_members(&[first, second]);
    second.say_members(&[first, second]);
    let store = soon(connect(&first.url(), PATIENCE)).await.unwrap();
    first.named_its_members().await;
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_stands_in_no_list_is_used_when_the_listed_one_is_gone() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let store = learned(&first, &second).await;
    first.stop().await;
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!(second.taken(), 1);
}

/// It may be a load balancer.
#[tokio::test(flavor = "multi_thread")]
async fn the_list_stays_first() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let store = learned(&first, &second).await;
    let address = first.address.to_string();
    first.stop().await;
    soon(store.revision()).await.unwrap();
    let first = Stage::at(&address).await;
    // What ends is the connection to the member that was learned; it still listens, and is not gone back to.
    second.silence(true);
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!((first.taken(), second.taken()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_nodes_were_all_replaced_is_no_end() {
    let (first, second, third) = (Stage::new().await, Stage::new().await, Stage::new().await);
    let store = learned(&first, &second).await;
    second.say_members(&[&second, &third]);
    first.stop().await;
    soon(store.revision()).await.unwrap();
    second.named_its_members().await;
    second.stop().await;
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!(third.taken(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_life_at_the_address_of_a_member_is_not_spoken_with() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    first.say_members(&[&first, &second]);
    let store = soon(connect(&first.url(), Duration::from_secs(1))).await.unwrap();
    first.named_its_members().await;
    let address = first.address.to_string();
    second.say_life("another one", 0);
    first.stop().await;
    // Also one of a greater epoch: the address may belong to another cluster by now. A later life is met at an address of the list.
    for epoch in [0, 3] {
        second.say_life("another one", epoch);
        let mut error = String::new();
        let found = format!("{} has another state: incarnation another one of epoch {epoch}", second.address);
        // The first words may be those of an attempt that was made before.
        for _ in 0..20 {
            error = soon(store.revision()).await.unwrap_err().to_string();
            if error.contains(&found) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(error.contains(&found), "{error}");
    }
    // Nothing of that was taken for a later life: its own is spoken with again.
    let _first = Stage::at(&address).await;
    let mut back = soon(store.revision()).await;
    for _ in 0..50 {
        if back.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        back = soon(store.revision()).await;
    }
    assert_eq!(back.unwrap(), Revision::new(REVISION));
}

/// Its address may be one that only nodes reach.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_silent_costs_those_of_the_list_little() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let store = learned(&first, &second).await;
    let (address, silent) = (first.address.to_string(), second.address.to_string());
    second.stop().await;
    let _silent = TcpListener::bind(&silent).await.unwrap();
    first.stop().await;
    let timer = Timer::start();
    let asked = tokio::spawn(async move { store.revision().await });
    // Long enough for the member to be tried once, and to be left alone since.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let _first = Stage::at(&address).await;
    assert_eq!(soon(asked).await.unwrap().unwrap(), Revision::new(REVISION));
    let took = timer.took();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_knows_who_leads_is_better_than_a_listed_one_that_does_not() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    let store = learned(&first, &second).await;
    first.say_leader("");
    // Gives up on the connection, and comes back to a node that is cut off.
    first.silence(true);
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!(second.taken(), 1);
}

/// It is to pass through a proxy, whatever happens to it.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_wants_the_list_alone_gets_nobody_else() {
    let (first, second) = (Stage::new().await, Stage::new().await);
    first.say_leader(&second.address.to_string());
    first.say_members(&[&first, &second]);
    let options = ConnectOptions::new().patience(Duration::from_secs(1)).only_listed();
    let store = soon(Store::connect_with(&first.url(), options)).await.unwrap();
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    // As long as others take to ask for the members.
    tokio::time::sleep(Duration::from_millis(200)).await;
    first.stop().await;
    assert!(soon(store.revision()).await.is_err());
    assert_eq!(second.taken(), 0);
}
