//! Seals, and transactions that are in their way.

use std::time::Duration;

use leasehold_fence::{Error, Outcome, Receiver as _};

use crate::postgres::world::{
    A_WHILE, NAME, NO_GATE, SOON, World, beside, has, pid, put, refused_for, run, soon, stamp, why_failed,
};

#[tokio::test]
async fn a_seal_waits_for_an_open_transaction_and_refuses_its_later_ones() {
    let world = World::new().await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone();
    let seal = beside(async move { fence.seal(&stamp(34)).await });
    world.until_waiting(1).await;
    assert!(!seal.is_finished());
    put(&mut old, &stamp(33), "in time").await.unwrap();
    old.commit().await.unwrap();
    soon(seal).await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "late").await), 34);
    assert_eq!(world.entries().await, ["33 in time"]);
}

#[tokio::test]
async fn a_seal_that_waited_too_long_names_the_backend_and_what_ends_it() {
    let world = World::new().await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let pid = pid(&mut old).await;
    let fence = world.fence.clone().with_seal_patience(A_WHILE);
    let seal = stamp(34);
    let said = tokio::time::timeout(SOON, fence.seal(&seal)).await.expect("its patience ends");
    let said = why_failed(said);
    println!("{said}");
    has(
        &said,
        &format!(
            "the fence of {NAME} is kept by an open transaction of backend {pid} for longer than lock_timeout (200ms)"
        ),
    );
    has(&said, &format!("backend {pid}: user postgres, application"));
    has(&said, "idle in transaction");
    has(&said, &format!("SELECT pg_terminate_backend({pid})"));
    assert_eq!(world.highest(NAME).await, None, "the old one is not committed, and nothing was raised");

    // What the error says helps, and the transaction that was in the way has written nothing.
    put(&mut old, &stamp(33), "never").await.unwrap();
    run(&world.pool, &format!("SELECT pg_terminate_backend({pid})")).await;
    world.fence.seal(&stamp(34)).await.unwrap();
    old.commit().await.unwrap_err();
    assert_eq!(world.entries().await, Vec::<String>::new());
    assert_eq!(world.counts.seals(world.fence.place(), Outcome::Failed), 1);
    assert_eq!(world.counts.seals(world.fence.place(), Outcome::Accepted), 1);
}

#[tokio::test]
async fn a_lock_that_nobody_entered_for_is_named_or_told_apart() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut somebody = world.begin().await;
    sqlx::query("SELECT * FROM leasehold_fence FOR UPDATE").execute(&mut *somebody).await.unwrap();
    let (fence, seal) = (world.fence.clone().with_seal_patience(A_WHILE), stamp(34));
    let said = tokio::time::timeout(SOON, fence.seal(&seal)).await.expect("its patience ends");
    let said = why_failed(said);
    has(&said, &format!("of backend {} for longer than lock_timeout (200ms)", pid(&mut somebody).await));
    drop(somebody);

    // Several that share the row leave a mark that nobody can read while it is locked: then it is said how to look.
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    for tx in [&mut one, &mut two] {
        sqlx::query("SELECT * FROM leasehold_fence FOR SHARE").execute(&mut **tx).await.unwrap();
    }
    let said = tokio::time::timeout(SOON, fence.seal(&seal)).await.expect("its patience ends");
    let said = why_failed(said);
    has(&said, "was locked for longer than lock_timeout (200ms)");
    has(&said, "pg_blocking_pids");
}

#[tokio::test]
async fn sealing_twice_is_sealing_once_and_does_not_wait_for_writers_of_the_token() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    let mut own = world.begin().await;
    world.fence.enter(&mut own, &stamp(34)).await.unwrap();
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(world.fence.seal(&stamp(33)).await), 34);
}

/// PostgreSQL lets a further sharer pass whoever waits to lock a row exclusively. With old writers whose transactions overlap, a
/// seal would not come to its turn; the gate is there for that.
#[tokio::test]
async fn old_writers_that_come_while_a_seal_waits_come_after_it() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone();
    let seal = beside(async move { fence.seal(&stamp(34)).await });
    world.until_waiting(1).await;
    let fence = world.fence.clone();
    let next = beside(async move {
        fence.transaction(&stamp(33), async |tx| Ok(put(tx, &stamp(33), "next").await?)).await
    });
    world.until_waiting(2).await;
    old.commit().await.unwrap();
    soon(seal).await.unwrap();
    assert_eq!(refused_for(soon(next).await), 34);
}

#[tokio::test]
async fn wrong_way_without_the_gate_old_writers_pass_a_waiting_seal() {
    let world = World::mutated(&NO_GATE).await;
    // Where the gate alone decides, a seal would not even wait.
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.pool.begin_with(begin).await.unwrap();
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone().with_seal_patience(Duration::from_secs(20));
    let seal = beside(async move { fence.seal(&stamp(34)).await });
    world.until_waiting(1).await;
    for nth in 0..20 {
        // The next one enters before the last one ends: there is always one.
        let mut next = world.pool.begin_with(begin).await.unwrap();
        world.fence.enter(&mut next, &stamp(33)).await.unwrap();
        put(&mut next, &stamp(33), &nth.to_string()).await.unwrap();
        std::mem::replace(&mut old, next).commit().await.unwrap();
        assert!(!seal.is_finished(), "{nth}");
    }
    old.commit().await.unwrap();
    soon(seal).await.unwrap();
}

#[tokio::test]
async fn a_seal_whose_caller_goes_away_leaves_a_connection_that_works() {
    let world = World::new().await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let alone = crate::postgres::world::pool((*world.pool.connect_options()).clone(), 1).await;
    let fence = leasehold_fence::postgres::Fence::new(alone.clone());
    assert!(tokio::time::timeout(A_WHILE, fence.seal(&stamp(34))).await.is_err());
    old.rollback().await.unwrap();
    fence.seal(&stamp(35)).await.unwrap();
    assert!(matches!(fence.seal(&stamp(33)).await, Err(Error::Stale(_))));
}
