//! Who comes first: interleavings that are staged, one step after the other.

use leasehold_fence::{Error, LARGEST_TOKEN, Mark, Outcome, Receiver as _, Seen};

use crate::relay::{END_TXN, INIT_PRODUCER_ID};
use crate::world::{World, highest, stamp};

#[tokio::test]
async fn a_stale_write_is_refused_before_the_first_write_of_the_new_holder() {
    let world = World::new().await;
    let (old, new) = (world.fence().await, world.fence().await);
    world.add(&old, &stamp("a", 33), "one").await.unwrap();
    new.seal(&stamp("a", 34)).await.unwrap();
    let error = world.add(&old, &stamp("a", 33), "late").await.unwrap_err();
    assert_eq!(error.to_string(), "token 33 of a is stale: the receiver has seen 34; nothing was written");
    world.add(&new, &stamp("a", 34), "two").await.unwrap();
    world.add(&new, &stamp("a", 34), "equal tokens pass").await.unwrap();
    assert_eq!(world.tokens("a"), [33, 34, 34]);
}

#[tokio::test]
async fn a_seal_is_refused_below_the_highest_token_and_may_be_repeated() {
    let world = World::new().await;
    let (one, other) = (world.fence().await, world.fence().await);
    one.seal(&stamp("a", 34)).await.unwrap();
    one.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(highest(one.seal(&stamp("a", 33)).await), Some(34), "by what the process knows");
    assert_eq!(highest(other.seal(&stamp("a", 33)).await), Some(34), "by what it reads");
    other.seal(&stamp("a", 35)).await.unwrap();
    assert_eq!(highest(one.seal(&stamp("a", 34)).await), Some(35), "by the broker");
    let mark = Mark { token: 35, holder: Some("holder-35".to_owned()) };
    assert_eq!(one.look("a").await.unwrap(), Seen { highest: Some(mark), refusals: None });
    assert_eq!(one.look("b").await.unwrap(), Seen::default());
}

#[tokio::test]
async fn neighbours_above_doubles_and_the_largest_token_differ() {
    let world = World::new().await;
    let (old, new) = (world.fence().await, world.fence().await);
    world.add(&old, &stamp("a", LARGEST_TOKEN - 1), "old").await.unwrap();
    world.add(&new, &stamp("a", LARGEST_TOKEN), "new").await.unwrap();
    assert_eq!(highest(world.add(&old, &stamp("a", LARGEST_TOKEN - 1), "late").await), Some(LARGEST_TOKEN));
    assert_eq!(world.tokens("a"), [LARGEST_TOKEN - 1, LARGEST_TOKEN]);
}

/// One process under two leases, one after the other: the raise goes with the write, and the old thread has its own token.
#[tokio::test]
async fn a_greater_token_of_the_same_process_raises_with_its_write() {
    let world = World::new().await;
    let fence = world.fence().await;
    world.add(&fence, &stamp("a", 7), "first").await.unwrap();
    world.add(&fence, &stamp("a", 8), "second").await.unwrap();
    assert_eq!(highest(world.add(&fence, &stamp("a", 7), "paused").await), Some(8));
    assert_eq!(world.fence().await.look("a").await.unwrap().highest.unwrap().token, 8, "others see it too");
    assert_eq!(world.tokens("a"), [7, 8]);
}

/// Delivered, and paused before the commit is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_open_when_the_new_holder_seals_is_not_committed() {
    let world = World::new().await;
    let ((old, way), new) = (world.relayed().await, world.fence().await);
    old.seal(&stamp("a", 33)).await.unwrap();
    way.hold(END_TXN);
    let paused = tokio::spawn({
        let (world, old) = (world.clone(), old.clone());
        async move { world.add(&old, &stamp("a", 33), "open").await }
    });
    way.holds().await;
    new.seal(&stamp("a", 34)).await.unwrap();
    way.release();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    world.add(&new, &stamp("a", 34), "new").await.unwrap();
    assert_eq!(world.tokens("a"), [34]);
}

/// The old holder has read the topic, is paused, and begins its epoch after the new one's.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_epoch_writes_nothing_and_the_new_holder_goes_on() {
    let world = World::new().await;
    let ((old, way), new) = (world.relayed().await, world.fence().await);
    way.hold(INIT_PRODUCER_ID);
    let paused = tokio::spawn({
        let (world, old) = (world.clone(), old.clone());
        async move { world.add(&old, &stamp("a", 33), "late").await }
    });
    way.holds().await;
    world.add(&new, &stamp("a", 34), "one").await.unwrap();
    way.release();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    world.add(&new, &stamp("a", 34), "two").await.unwrap();
    assert_eq!(world.tokens("a"), [34, 34]);
}

/// The old holder has compared, and is paused before the commit of its seal.
#[tokio::test(flavor = "multi_thread")]
async fn a_seal_that_was_overtaken_before_its_commit_is_stale() {
    let world = World::new().await;
    let ((old, way), new) = (world.relayed().await, world.fence().await);
    way.hold(END_TXN);
    let paused = tokio::spawn(async move { old.seal(&stamp("a", 33)).await });
    way.holds().await;
    new.seal(&stamp("a", 34)).await.unwrap();
    way.release();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    assert_eq!(new.look("a").await.unwrap().highest.unwrap().token, 34);
}

/// Whoever ends an epoch without a greater token costs its owner a few steps, and no write.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_was_disturbed_by_a_smaller_token_is_made_once() {
    let world = World::new().await;
    let (fence, way) = world.relayed().await;
    fence.seal(&stamp("a", 34)).await.unwrap();
    way.hold(END_TXN);
    let disturbed = tokio::spawn({
        let (world, fence) = (world.clone(), fence.clone());
        async move { world.add(&fence, &stamp("a", 34), "mine").await }
    });
    way.holds().await;
    drop(world.unfenced("a"));
    way.release();
    disturbed.await.unwrap().unwrap();
    assert_eq!(world.tokens("a"), [34], "sent twice, committed once");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_with_one_token_take_turns() {
    let world = World::new().await;
    let fences = [world.fence().await, world.fence().await];
    for turn in 0..6 {
        world.add(&fences[turn % 2], &stamp("a", 34), &turn.to_string()).await.unwrap();
    }
    let values: Vec<String> = world.log("a").into_iter().map(|written| written.value).collect();
    assert_eq!(values, ["0", "1", "2", "3", "4", "5"]);
}

/// What is open under another name in the fence topic hides nothing from this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_seal_that_hangs_does_not_keep_other_names_from_sealing() {
    let world = World::new().await;
    let ((hanging, way), fence) = (world.relayed().await, world.fence().await);
    way.hold(END_TXN);
    let paused = tokio::spawn(async move { hanging.seal(&stamp("b", 1)).await });
    way.holds().await;
    world.add(&fence, &stamp("a", 34), "x").await.unwrap();
    assert_eq!(highest(world.fence().await.seal(&stamp("a", 33)).await), Some(34));
    way.release();
    paused.await.unwrap().unwrap();
}

/// A group of several records and topics is one transaction.
#[tokio::test]
async fn all_records_of_a_write_are_written_or_none() {
    let world = World::new().await;
    let fence = world.fence().await;
    let good = || world.record("a", "good");
    let bad = world.record("a", &"x".repeat(2_000_000));
    let error = fence.write(&stamp("a", 34), vec![good(), bad]).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    assert!(world.tokens("a").is_empty());
    fence.write(&stamp("a", 34), vec![good(), good()]).await.unwrap();
    assert_eq!(world.tokens("a"), [34, 34]);
}

/// The answer was lost, and the commit is sent again when its epoch is over. It had been taken the first time.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_was_lost_is_accepted_if_it_is_found() {
    let world = World::new().await;
    let ((old, way), new) = (world.relayed().await, world.fence().await);
    old.seal(&stamp("a", 33)).await.unwrap();
    way.lose_and_hold(END_TXN);
    let written = tokio::spawn({
        let (world, old) = (world.clone(), old.clone());
        async move { world.add(&old, &stamp("a", 33), "taken").await }
    });
    way.has_lost().await;
    way.holds().await;
    new.seal(&stamp("a", 34)).await.unwrap();
    way.release();
    written.await.unwrap().unwrap();
    assert_eq!(world.tokens("a"), [33]);
    assert_eq!(highest(world.add(&old, &stamp("a", 33), "late").await), Some(34));
}

/// The commit is held until patience ends: nobody can say. What is sent afterwards is in order all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_without_an_answer_is_unknown() {
    let world = World::new().await;
    let (fence, way) = world.relayed().await;
    fence.seal(&stamp("a", 34)).await.unwrap();
    way.hold(END_TXN);
    let hasty = fence.clone().patience(std::time::Duration::from_secs(2));
    let error = world.add(&hasty, &stamp("a", 34), "held").await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    way.release();
    world.add(&world.fence().await, &stamp("a", 34), "next").await.unwrap();
    let log = world.log("a");
    assert!(log.len() <= 2 && log.last().unwrap().value == "next", "{log:?}");
}

/// Somebody began an epoch, for whatever reason, and did nothing in it.
#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_that_somebody_else_ended_is_begun_again() {
    let world = World::new().await;
    let fence = world.fence().await;
    world.add(&fence, &stamp("a", 34), "one").await.unwrap();
    drop(world.unfenced("a"));
    world.add(&fence, &stamp("a", 34), "two").await.unwrap();
    assert_eq!(world.tokens("a"), [34, 34]);
}

/// The client was paused for longer than a transaction may last. The broker has ended its epoch with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_lasted_too_long_is_made_again() {
    let world = World::new().await;
    let (fence, way) = world.relayed_with(&[("transaction.timeout.ms", "4000")]).await;
    fence.seal(&stamp("a", 34)).await.unwrap();
    way.hold(END_TXN);
    let paused = tokio::spawn({
        let (world, fence) = (world.clone(), fence.clone());
        async move { world.add(&fence, &stamp("a", 34), "again").await }
    });
    way.holds().await;
    assert_eq!(world.tokens("a"), [0; 0], "readers are let past it");
    way.release();
    paused.await.unwrap().unwrap();
    assert_eq!(world.tokens("a"), [34]);
}
