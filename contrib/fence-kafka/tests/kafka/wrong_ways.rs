//! What looks like a fence and is none, beside the right way.

use leasehold_fence::Receiver as _;
use rdkafka::producer::Producer as _;

use crate::relay::END_TXN;
use crate::world::{LONG, World, highest, stamp};

/// A producer with the right `transactional.id` fences whoever came before it, not whoever has a smaller token.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_the_epoch_alone_lets_a_late_holder_write() {
    let world = World::new().await;
    let new = world.unfenced("a");
    world.opened(&new, &stamp("a", 34), "new");
    new.commit_transaction(LONG).unwrap();
    let late = world.unfenced("a");
    world.opened(&late, &stamp("a", 33), "late");
    late.commit_transaction(LONG).unwrap();
    assert_eq!(world.tokens("a"), [34, 33], "corrupted");

    let (new, late) = (world.fence().await, world.fence().await);
    world.add(&new, &stamp("b", 34), "new").await.unwrap();
    assert_eq!(highest(world.add(&late, &stamp("b", 33), "late").await), Some(34));
    assert_eq!(world.tokens("b"), [34]);
}

/// Reading the topic and writing with a producer of any other name: the look is right, and the write is stale when it is made.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_look_then_write() {
    let world = World::new().await;
    let fence = world.fence().await;
    let seen = fence.look("a").await.unwrap();
    assert!(seen.highest.is_none(), "the old holder looks, and may");
    world.add(&fence, &stamp("a", 34), "new").await.unwrap();
    let late = world.unfenced("a");
    world.opened(&late, &stamp("a", 33), "late");
    late.commit_transaction(LONG).unwrap();
    assert_eq!(world.tokens("a"), [34, 33], "corrupted");
}

/// A transaction that was refused leaves its records in the log. Only readers with isolation pass over them.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_readers_without_isolation_see_what_was_refused() {
    let world = World::new().await;
    let ((old, way), new) = (world.relayed().await, world.fence().await);
    old.seal(&stamp("a", 33)).await.unwrap();
    way.hold(END_TXN);
    let paused = tokio::spawn({
        let (world, old) = (world.clone(), old.clone());
        async move { world.add(&old, &stamp("a", 33), "open").await }
    });
    way.holds().await;
    world.add(&new, &stamp("a", 34), "new").await.unwrap();
    way.release();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    assert_eq!(world.tokens_without_isolation("a"), [33, 34], "what was refused is there");
    assert_eq!(world.tokens("a"), [34]);
}
