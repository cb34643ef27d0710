//! Snapshots that are older than the raise: never a wrong accept.

use leasehold_fence::Receiver as _;
use sqlx::Executor as _;

use crate::postgres::world::{
    NAME, NO_ROW_LOCK, World, beside, has, put, refused_for, run, soon, stamp, why_failed,
};

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
    let seal = beside(async move { fence.seal(&stamp(34)).await });
    world.until_waiting(1).await;
    old.commit().await.unwrap();
    soon(seal).await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(34));
}

async fn sum(connection: &mut sqlx::PgConnection) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM entry").fetch_one(connection).await.unwrap()
}

/// A transaction of the new holder, tried again as it is told to: whoever else was in progress on this server when its snapshot was taken, in
/// whatever database, may have left the mark as far as anybody can tell.
async fn let_in(world: &World, level: &str) -> sqlx::Transaction<'static, sqlx::Postgres> {
    for _ in 0..100 {
        let mut tx = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
        match world.fence.enter(&mut tx, &stamp(34)).await {
            Ok(()) => return tx,
            Err(error) => has(why_failed::<()>(Err(error)), "could not serialize access"),
        }
        tx.rollback().await.unwrap();
    }
    panic!("{level}: it is never let in");
}

/// The statement that waits has its snapshot already; what the old holder commits meanwhile is not in it.
#[tokio::test]
async fn a_new_holder_that_waited_at_the_gate_does_not_decide_on_what_was_before() {
    for level in LEVELS {
        let world = World::new().await;
        world.fence.seal(&stamp(33)).await.unwrap();
        let mut old = world.begin().await;
        world.fence.enter(&mut old, &stamp(33)).await.unwrap();
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        let (fence, pool) = (world.fence.clone(), world.pool.clone());
        let new = beside(async move {
            let mut tx = pool.begin_with(begin).await.unwrap();
            let entered = fence.enter(&mut tx, &stamp(34)).await;
            // An error is told before its locks are given up; the end of the transaction is not.
            tx.rollback().await.unwrap();
            entered
        });
        world.until_waiting(1).await;
        put(&mut old, &stamp(33), "last").await.unwrap();
        old.commit().await.unwrap();
        has(why_failed(soon(new).await), "could not serialize access");
        let mut again = let_in(&world, level).await;
        assert_eq!(sum(&mut again).await, 1, "{level}: it sees what the old holder wrote last");
    }
}

/// Nobody had to wait here: the old holder came and went after the snapshot.
#[tokio::test]
async fn a_new_holder_with_a_snapshot_from_before_the_last_commit_of_the_old_one_is_told_to_try_again() {
    for level in LEVELS {
        // The old ones leave one mark, several marks, or the mark of a savepoint.
        for old_ones in 1..=3 {
            let world = World::new().await;
            world.fence.seal(&stamp(33)).await.unwrap();
            let mut new = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
            assert_eq!(sum(&mut new).await, 0);
            let mut olds = Vec::new();
            for nth in 0..old_ones {
                let mut old = world.begin().await;
                if old_ones == 3 {
                    old.execute("SAVEPOINT before").await.unwrap();
                }
                world.fence.enter(&mut old, &stamp(33)).await.unwrap();
                put(&mut old, &stamp(33), &nth.to_string()).await.unwrap();
                olds.push(old);
            }
            for old in olds {
                old.commit().await.unwrap();
            }
            let said = why_failed(world.fence.enter(&mut new, &stamp(34)).await);
            has(&said, "could not serialize access");
            has(&said, "seal first");
            new.rollback().await.unwrap();
            // With a snapshot of its own time it is let in, whatever marks there are.
            let mut again = let_in(&world, level).await;
            assert_eq!(sum(&mut again).await, old_ones);
        }
    }
}

/// The old holder is in progress when the snapshot is taken, under the number of a savepoint that the snapshot does not list.
#[tokio::test]
async fn an_old_holder_that_entered_in_a_savepoint_before_the_snapshot_is_noticed_too() {
    for level in LEVELS {
        let world = World::new().await;
        world.fence.seal(&stamp(33)).await.unwrap();
        let mut old = world.begin().await;
        put(&mut old, &stamp(33), "first").await.unwrap();
        old.execute("SAVEPOINT before").await.unwrap();
        world.fence.enter(&mut old, &stamp(33)).await.unwrap();
        // Something with a later number, so that the savepoint's is within the snapshot.
        run(&world.pool, "SELECT pg_current_xact_id()").await;
        let mut new = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
        assert_eq!(sum(&mut new).await, 0);
        old.commit().await.unwrap();
        has(why_failed(world.fence.enter(&mut new, &stamp(34)).await), "could not serialize access");
    }
}

/// Those who share the gate leave no mark: what tells is that somebody has committed since the snapshot.
#[tokio::test]
async fn wrong_way_without_a_look_at_who_committed_since_a_new_holder_decides_on_what_was_before() {
    let world =
        World::mutated(&[("AND had IS NOT NULL AND @schema@.leasehold_is_recent(mark)", "AND false")]).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut new = world.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert_eq!(sum(&mut new).await, 0);
    world.write(&stamp(33), "last").await.unwrap();
    world.fence.enter(&mut new, &stamp(34)).await.unwrap();
    assert_eq!(sum(&mut new).await, 0, "it does not see what the old holder wrote last");
}

/// A number that was given to somebody before the snapshot, and to whom it is does not matter.
#[tokio::test]
async fn an_old_holder_that_had_a_number_before_the_snapshot_and_entered_after_it_is_noticed() {
    for level in LEVELS {
        let world = World::new().await;
        world.fence.seal(&stamp(33)).await.unwrap();
        let mut old = world.begin().await;
        put(&mut old, &stamp(33), "before").await.unwrap();
        let mut new = world.pool.begin_with(format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
        assert_eq!(sum(&mut new).await, 0);
        // It has written itself, so that its own number is older than what it has to notice.
        put(&mut new, &stamp(34), "new").await.unwrap();
        world.fence.enter(&mut old, &stamp(33)).await.unwrap();
        old.commit().await.unwrap();
        has(why_failed(world.fence.enter(&mut new, &stamp(34)).await), "could not serialize access");
    }
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
