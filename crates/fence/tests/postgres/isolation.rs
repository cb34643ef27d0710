//! Snapshots that are older than the raise: never a wrong accept.

use leasehold_fence::Receiver as _;

use crate::world::{NAME, NO_ROW_LOCK, World, has, put, refused_for, run, stamp, why_failed};

const LEVELS: [&str; 2] = ["REPEATABLE READ", "SERIALIZABLE"];

/// A transaction reads something, so that it has a snapshot; then the fence is raised; then it enters.
async fn enters_with_an_old_snapshot(
    world: &World,
    level: &str,
    token: u64,
) -> Result<(), leasehold_fence::Error> {
    let mut tx = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
    sqlx::query("SELECT * FROM entry").execute(&mut *tx).await.unwrap();
    world.fence.seal(&stamp(34)).await.unwrap();
    world.fence.enter(&mut tx, &stamp(token)).await?;
    put(&mut tx, &stamp(token), "old snapshot").await.unwrap();
    tx.commit().await.map_err(|error| leasehold_fence::Error::failed("test", error))
}

#[tokio::test]
async fn an_entry_with_a_snapshot_from_before_the_raise_fails_and_is_refused_when_tried_again() {
    for level in LEVELS {
        for before in [None, Some(33), Some(20)] {
            let world = World::new().await;
            if let Some(before) = before {
                world.fence.seal(&stamp(before)).await.unwrap();
            }
            let said = why_failed(enters_with_an_old_snapshot(&world, level, 33).await);
            has(&said, "could not serialize access");
            assert_eq!(
                refused_for(enters_with_an_old_snapshot(&world, level, 33).await),
                34,
                "{level} {before:?}"
            );
            assert_eq!(world.entries().await, Vec::<String>::new());
        }
    }
}

#[tokio::test]
async fn the_new_holder_with_an_old_snapshot_is_told_to_try_again() {
    for level in LEVELS {
        let world = World::new().await;
        has(why_failed(enters_with_an_old_snapshot(&world, level, 34).await), "could not serialize access");
        enters_with_an_old_snapshot(&world, level, 34).await.unwrap();
    }
}

#[tokio::test]
async fn a_snapshot_after_the_raise_is_judged_at_once() {
    for level in LEVELS {
        let world = World::new().await;
        world.fence.seal(&stamp(34)).await.unwrap();
        let mut tx = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
        assert_eq!(refused_for(world.fence.enter(&mut tx, &stamp(33)).await), 34);
    }
}

#[tokio::test]
async fn a_seal_does_not_mind_the_default_isolation() {
    let world = World::new().await;
    let default = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', \
                   current_database()); END $$";
    run(&world.pool, default).await;
    let world = World::at((*world.pool.connect_options()).clone()).await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone();
    let seal = crate::world::beside(async move { fence.seal(&stamp(34)).await });
    world.until_waiting(1).await;
    old.commit().await.unwrap();
    crate::world::soon(seal).await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(34));
}

/// The lock on the row is what finds an old snapshot out: without it, this is what would happen.
#[tokio::test]
async fn wrong_way_without_the_row_lock_an_old_snapshot_lets_a_stale_token_in() {
    let world = World::mutated(&[NO_ROW_LOCK]).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    enters_with_an_old_snapshot(&world, "REPEATABLE READ", 33).await.unwrap();
    assert_eq!(
        (world.highest(NAME).await, world.entries().await),
        (Some(34), vec!["33 old snapshot".to_owned()])
    );
}
