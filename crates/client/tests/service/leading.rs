//! Several nodes: the one that leads is preferred, and a state that is not the known one is refused.

use std::time::Duration;

use leasehold::core::Revision;
use leasehold::{Error, Unreachable};
use leasehold_kit::Timer;
use tokio::net::TcpListener;

use super::stage::{REVISION, Stage, connect, soon};

const PATIENCE: Duration = Duration::from_secs(5);

async fn nowhere() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_is_moved_to_although_it_stands_in_no_list() {
    let (follower, leader) = (Stage::new().await, Stage::new().await);
    follower.say_leader(&leader.address.to_string());
    let store = soon(connect(&follower.url(), PATIENCE)).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
    assert_eq!((follower.taken(), leader.taken()), (1, 1));
    // Only one of them is spoken with: the other may go.
    follower.stop().await;
    assert_eq!(soon(store.revision()).await.unwrap(), Revision::new(REVISION));
    assert_eq!(leader.taken(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_be_reached_is_reached_through_the_node_that_names_it() {
    let follower = Stage::new().await;
    follower.say_leader(&nowhere().await);
    let store = soon(connect(&follower.url(), PATIENCE)).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
    assert_eq!(follower.taken(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_silent_costs_little() {
    let follower = Stage::new().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    follower.say_leader(&silent.local_addr().unwrap().to_string());
    let timer = Timer::start();
    let store = soon(connect(&follower.url(), PATIENCE)).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
    let took = timer.took();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_knows_no_leader_is_used_if_there_is_no_other() {
    let (cut_off, good) = (Stage::new().await, Stage::new().await);
    cut_off.say_leader("");
    let url = format!("leasehold://{},{}", cut_off.address, good.address);
    for _ in 0..8 {
        let store = soon(connect(&url, PATIENCE)).await.unwrap();
        let before = good.taken();
        assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
        assert_eq!(good.taken(), before);
        soon(store.close()).await;
    }
    assert_eq!(good.taken(), 8);
    good.stop().await;
    let store = soon(connect(&url, PATIENCE)).await.unwrap();
    assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_does_not_hold_up_the_others() {
    let stage = Stage::new().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("leasehold://{},{}", silent.local_addr().unwrap(), stage.address);
    for _ in 0..4 {
        let timer = Timer::start();
        soon(soon(connect(&url, Duration::from_secs(10))).await.unwrap().close()).await;
        let took = timer.took();
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_life_is_refused_unless_it_is_a_later_one() {
    let stage = Stage::new().await;
    stage.say_life("first", 1);
    let store = stage.patient(Duration::from_secs(1)).await;
    assert_eq!(store.revision().await.unwrap(), Revision::new(REVISION));
    let address = stage.address.to_string();
    stage.stop().await;
    let other = Stage::at(&address).await;
    other.say_life("second", 1);
    match soon(store.revision()).await.unwrap_err() {
        Error::Unreachable(Unreachable::OtherLife { place, known, found, known_epoch, found_epoch }) => {
            assert_eq!((place, known.as_str(), found.as_str()), (address, "first", "second"));
            assert_eq!((known_epoch, found_epoch), (1, 1));
        }
        unexpected => panic!("{unexpected:?}"),
    }
    other.say_life("third", 2);
    // Whoever is out of patience is told at once, until the next attempt to connect is good.
    let found = async {
        loop {
            match store.revision().await {
                Ok(revision) => return revision,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    assert_eq!(soon(found).await, Revision::new(REVISION));
}
