//! What looks like a fence and is none, beside the right way.

use leasehold_fence::{Outcome, Receiver as _};
use leasehold_fence_cassandra::Write;
use scylla::value::Row;

use crate::world::{World, name, stamp};

/// The check is right when it is made. The write is stale when it is made.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_select_then_insert_writes_after_a_newer_holder() {
    let (world, name) = (World::new().await, name());
    let (old, new) = (stamp(&name, 33), stamp(&name, 34));
    let seen = world.fence.look(&name).await.unwrap();
    assert!(seen.highest.is_none_or(|mark| mark.token <= old.token()), "the old holder looks, and may");
    world.add(&new, "new").await.unwrap();
    world.add_anyway(&old, "old").await;
    assert_eq!(world.tokens(&name).await, [34, 33], "corrupted");
    assert_eq!(world.add(&old, "again").await.unwrap_err().outcome(), Outcome::Stale);
}

/// Null is not `<=` anything: without a seed the first holder is shut out, and it looks as if it were stale.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_a_null_fence_refuses_everybody() {
    let (world, name) = (World::new().await, name());
    let update = "UPDATE shop.log SET leasehold_token = ? WHERE name = ? IF leasehold_token <= ?";
    let result = world.session.query_unpaged(update, (5_i64, &name, 5_i64)).await.unwrap();
    let applied = result.into_rows_result().unwrap().first_row::<Row>().unwrap().columns[0].clone();
    assert_eq!(applied.unwrap().as_boolean(), Some(false), "nobody has written, and it is refused");
    world.add(&stamp(&name, 5), "x").await.unwrap();
}

/// A plain write has the time of its client. One from a clock that is ahead hides transactions that were accepted after it.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_a_plain_write_hides_a_transaction_that_was_accepted() {
    let (world, name) = (World::new().await, name());
    let body = "INSERT INTO shop.log (name, value, brought) VALUES (?, 'x', 33) USING TIMESTAMP ?";
    // Somewhere in the year 2100.
    world.session.query_unpaged(body, (&name, 4_102_444_800_000_000_i64)).await.unwrap();
    world.add(&stamp(&name, 34), "x").await.unwrap();
    assert_eq!(world.tokens(&name).await, [33], "accepted, and not there");
}

/// The fence is in the partition, so a plain deletion takes it along. In a fenced write it stays.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_way_deleting_the_partition_deletes_the_fence() {
    let (world, name) = (World::new().await, name());
    let (old, new) = (stamp(&name, 33), stamp(&name, 34));
    let delete = "DELETE FROM shop.log WHERE name = ?";
    world.add(&new, "x").await.unwrap();
    world.fence.write(&new, &Write::of(delete, (name.clone(),))).await.unwrap();
    assert!(world.log(&name).await.is_empty());
    assert_eq!(world.add(&old, "stale").await.unwrap_err().outcome(), Outcome::Stale);

    world.session.query_unpaged(delete, (&name,)).await.unwrap();
    assert_eq!(world.fence.look(&name).await.unwrap().highest, None, "forgotten");
    world.add(&old, "stale").await.unwrap();
}
