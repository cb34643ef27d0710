//! What people write first, shown to corrupt; beside it the right way.

use leasehold_fence::Receiver as _;
use sqlx::Executor as _;

use crate::postgres::world::{NAME, World, beside, put, refused_for, run, soon, stamp};

/// Old checks, new commits, old writes.
#[tokio::test]
async fn wrong_way_select_the_token_and_then_write_corrupts() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.begin().await;
    let seen = "SELECT token FROM leasehold_fence WHERE name = 'reports/nightly'";
    let seen: i64 = sqlx::query_scalar(seen).fetch_one(&mut *old).await.unwrap();
    assert!(seen <= 33, "the check is passed");
    world.write(&stamp(34), "new").await.unwrap();
    put(&mut old, &stamp(33), "old").await.unwrap();
    old.commit().await.unwrap();
    assert_eq!(world.entries().await, ["34 new", "33 old"], "the stale write came last");
}

#[tokio::test]
async fn right_way_the_same_order_of_events_with_an_entry_keeps_the_new_one_out_until_the_old_has_ended() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone();
    let new = beside(async move {
        fence.transaction(&stamp(34), async |tx| Ok(put(tx, &stamp(34), "new").await?)).await
    });
    world.until_waiting(1).await;
    put(&mut old, &stamp(33), "old").await.unwrap();
    old.commit().await.unwrap();
    soon(new).await.unwrap();
    assert_eq!(world.entries().await, ["33 old", "34 new"]);
}

/// Without a seal a stale write that comes before the first one of the new holder is taken.
#[tokio::test]
async fn wrong_way_a_new_holder_that_does_not_seal_lets_a_stale_write_in() {
    let world = World::new().await;
    world.write(&stamp(33), "old").await.unwrap();
    // 34 was granted, and its holder thinks about what to write.
    world.write(&stamp(33), "stale").await.unwrap();
    world.write(&stamp(34), "new").await.unwrap();
    assert_eq!(world.entries().await, ["33 old", "33 stale", "34 new"]);
}

/// An UPDATE of a row that is missing touches nothing: the same as a refusal, and if nobody looks the same as an accept.
#[tokio::test]
async fn wrong_way_a_plain_update_on_a_missing_row_refuses_the_first_holder_and_guards_nothing() {
    let world = World::new().await;
    let mut tx = world.begin().await;
    let guard = "UPDATE leasehold_fence SET token = 34 WHERE name = 'reports/nightly' AND token <= 34";
    assert_eq!(tx.execute(guard).await.unwrap().rows_affected(), 0, "it looks stale, and is the first");
    put(&mut tx, &stamp(34), "new").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.highest(NAME).await, None, "and the fence knows nothing of it");
    world.write(&stamp(33), "stale").await.unwrap();
    assert_eq!(world.entries().await, ["34 new", "33 stale"]);
}

#[tokio::test]
async fn right_way_the_first_entry_makes_the_row() {
    let world = World::new().await;
    world.write(&stamp(34), "new").await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(34));
    assert_eq!(refused_for(world.write(&stamp(33), "stale").await), 34);
    // An operator who empties the table takes the fence away; the next entry makes it again.
    run(&world.pool, "DELETE FROM leasehold_fence").await;
    world.write(&stamp(34), "again").await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(34));
}

/// A trigger that compares the column of the row does not see a write that leaves the column out.
#[tokio::test]
async fn wrong_way_a_trigger_on_the_column_does_not_notice_a_write_that_omits_the_token() {
    let world = World::new().await;
    run(
        &world.pool,
        "CREATE TABLE doc (id int PRIMARY KEY, body text, fence bigint NOT NULL DEFAULT 0); INSERT INTO doc VALUES (7, 'new', 34); \
         CREATE FUNCTION rises() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF NEW.fence < OLD.fence THEN RAISE EXCEPTION 'stale'; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER rises BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION rises()",
    )
    .await;
    world.pool.execute("UPDATE doc SET body = 'stale', fence = 33 WHERE id = 7").await.unwrap_err();
    world.pool.execute("UPDATE doc SET body = 'forgot' WHERE id = 7").await.unwrap();
    let body: String = sqlx::query_scalar("SELECT body FROM doc").fetch_one(&world.pool).await.unwrap();
    assert_eq!(body, "forgot");
}
