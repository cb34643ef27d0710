//! The broker is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_fence::{Error, Outcome, Receiver as _};
use leasehold_kit::Receiver as _;

use crate::relay::END_TXN;
use crate::world::{World, alone, highest, stamp};

/// Delivered, then the broker is killed, then the commit arrives at its next life.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_between_delivery_and_commit_has_all_or_nothing_and_the_fence() {
    let mut server = alone().await;
    let world = World::on(&server);
    let (fence, way) = world.relayed_with(&[("transaction.timeout.ms", "60000")]).await;
    fence.seal(&stamp("a", 34)).await.unwrap();
    way.hold(END_TXN);
    let records = ["left", "right"].map(|value| world.record("a", value)).to_vec();
    let writing = tokio::spawn({
        let fence = fence.clone();
        async move { fence.write(&stamp("a", 34), records).await }
    });
    way.holds().await;
    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        server.restart().unwrap();
    });
    way.release();
    let written = Outcome::of(&writing.await.unwrap());

    assert_eq!(highest(world.fence().await.seal(&stamp("a", 33)).await), Some(34), "the fence is kept");
    world.add(&world.fence().await, &stamp("a", 34), "next").await.unwrap();
    let log: Vec<String> = world.log("a").into_iter().map(|written| written.value).collect();
    println!("killed between delivery and commit: {written}, and {log:?} is there");
    match written {
        Outcome::Accepted => assert_eq!(log, ["left", "right", "next"]),
        Outcome::Failed => assert_eq!(log, ["next"]),
        Outcome::Unknown => assert!(log == ["left", "right", "next"] || log == ["next"], "{log:?}"),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_under_load_keeps_what_it_accepted() {
    let mut server = alone().await;
    let world = World::on(&server);
    let ends = Arc::new([const { AtomicU64::new(0) }; 2]);
    let over = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for name in ["a", "b"] {
        let fence = world.fence().await.patience(Duration::from_secs(3));
        fence.seal(&stamp(name, 34)).await.unwrap();
        let (world, ends, over) = (world.clone(), Arc::clone(&ends), Arc::clone(&over));
        tasks.spawn(async move {
            while over.load(Ordering::SeqCst) == 0 {
                match world.add(&fence, &stamp(name, 34), "x").await {
                    Ok(()) => ends[0].fetch_add(1, Ordering::SeqCst),
                    Err(Error::Unknown { .. }) => ends[1].fetch_add(1, Ordering::SeqCst),
                    Err(Error::Failed { .. }) => continue,
                    Err(other) => panic!("{other}"),
                };
            }
        });
    }
    while ends[0].load(Ordering::SeqCst) < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        over.store(1, Ordering::SeqCst);
        server.restart().unwrap();
    });
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let fence = world.fence().await;
    for name in ["a", "b"] {
        assert_eq!(highest(fence.seal(&stamp(name, 33)).await), Some(34));
        // Whatever is open is ended by the next epoch.
        fence.seal(&stamp(name, 35)).await.unwrap();
    }
    let written = u64::try_from(world.log("a").len() + world.log("b").len()).unwrap();
    let [accepted, unknown] = [ends[0].load(Ordering::SeqCst), ends[1].load(Ordering::SeqCst)];
    println!("killed under load: {accepted} accepted, {unknown} unknown, {written} are there");
    assert!((accepted..=accepted + unknown).contains(&written), "{accepted} {unknown} {written}");
}
