//! Entries that have to wait: not for ever, and who is in the way is named.

use std::time::Duration;

use leasehold_fence::migration::POSTGRES as MIGRATION;
use leasehold_fence::postgres::WRITE_PATIENCE;
use leasehold_fence::{Outcome, Receiver as _};
use leasehold_kit::{Receiver as _, postgres};
use sqlx::Executor as _;

use crate::postgres::world::{
    A_WHILE, NAME, SOON, World, beside, has, pid, put, run, soon, stamp, why_failed,
};

async fn setting(connection: &mut sqlx::PgConnection, name: &str) -> String {
    let setting = "SELECT coalesce(current_setting($1, true), '')";
    sqlx::query_scalar(setting).bind(name).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn an_entry_that_waited_too_long_has_failed_and_names_the_backend() {
    let world = World::new().await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let pid = pid(&mut old).await;
    let fence = world.fence.clone().with_write_patience(A_WHILE);
    let next = stamp(34);
    let mut own = world.begin().await;
    for said in [
        tokio::time::timeout(SOON, fence.transaction(&next, async |_| Ok(()))).await.expect("patience ends"),
        tokio::time::timeout(SOON, fence.begin(&next)).await.expect("patience ends").map(drop),
        tokio::time::timeout(SOON, fence.batch(&next, "SELECT 1")).await.expect("patience ends"),
        tokio::time::timeout(SOON, fence.enter(&mut own, &next)).await.expect("patience ends"),
    ] {
        let said = why_failed(said);
        has(
            &said,
            &format!("is kept by an open transaction of backend {pid} for longer than lock_timeout (200ms)"),
        );
        has(&said, &format!("SELECT pg_terminate_backend({pid}) rolls it back"));
    }
    assert_eq!(world.counts.writes(world.fence.place(), Outcome::Failed), 4);
    // An older token is stopped behind a raise that is open, in the same way.
    old.commit().await.unwrap();
    let mut raise = world.begin().await;
    world.fence.enter(&mut raise, &next).await.unwrap();
    let pid = crate::postgres::world::pid(&mut raise).await;
    has(why_failed(fence.transaction(&stamp(33), async |_| Ok(())).await), &format!("of backend {pid} for"));
}

/// Whoever knows only SQL has patience too, and can say how much.
#[tokio::test]
async fn the_patience_of_sql_is_the_setting_or_the_lock_timeout_or_five_seconds() {
    let world = World::new().await;
    assert!(MIGRATION.contains(&format!("'{}s'", WRITE_PATIENCE.as_secs())));
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    for (set, said) in [
        ("SET LOCAL lock_timeout = '150ms'", "(150ms)"),
        ("SET LOCAL lock_timeout = '20s'; SET LOCAL leasehold.patience = '160ms'", "(160ms)"),
        ("SET LOCAL leasehold.patience = 170", "(170ms)"),
        ("SET LOCAL leasehold.patience = ''", "(5s)"),
    ] {
        let mut tx = world.begin().await;
        sqlx::raw_sql(set).execute(&mut *tx).await.unwrap();
        let enter = tx.execute("SELECT leasehold_enter('reports/nightly', 34)");
        let error = tokio::time::timeout(SOON, enter).await.expect("patience ends").unwrap_err();
        has(error, said);
    }
}

#[tokio::test]
async fn an_entry_that_waited_leaves_the_lock_timeout_as_it_was() {
    let world = World::new().await;
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    let fence = world.fence.clone().with_write_patience(Duration::from_secs(20));
    let mut new = world.begin().await;
    new.execute("SET LOCAL lock_timeout = '7s'").await.unwrap();
    let waits = beside(async move {
        fence.enter(&mut new, &stamp(34)).await.unwrap();
        (setting(&mut new, "lock_timeout").await, new)
    });
    world.until_waiting(1).await;
    old.commit().await.unwrap();
    let (after, new) = soon(waits).await;
    assert_eq!(after, "7s");
    new.commit().await.unwrap();
}

/// What the hint says is run as it stands.
#[tokio::test]
async fn the_hint_for_several_backends_is_sql_that_ends_them() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    let mut pids = Vec::new();
    for tx in [&mut one, &mut two] {
        world.fence.enter(tx, &stamp(33)).await.unwrap();
        put(tx, &stamp(33), "never").await.unwrap();
        pids.push(pid(tx).await);
    }
    pids.sort_unstable();
    let said = why_failed(world.fence.clone().with_seal_patience(A_WHILE).seal(&stamp(34)).await);
    has(&said, &format!("of backend {}, {} for longer", pids[0], pids[1]));
    let from = said.find("SELECT pg_terminate_backend").expect("the hint has a statement");
    let statement = &said[from..from + said[from..].find(" rolls").expect("and says what it does")];
    let ended: Vec<bool> = sqlx::query_scalar(statement).fetch_all(&world.pool).await.unwrap();
    assert_eq!(ended, [true, true], "{statement}");
    world.fence.seal(&stamp(34)).await.unwrap();
    for gone in [one, two] {
        gone.commit().await.unwrap_err();
    }
    assert_eq!(world.entries().await, Vec::<String>::new());
}

/// A prepared transaction keeps its locks without a backend, over a restart too.
#[tokio::test]
async fn a_prepared_transaction_is_named_and_keeps_the_fence_over_a_restart() {
    let mut server = postgres::Server::start().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.migrate().await.unwrap();
    run(&world.pool, "ALTER SYSTEM SET max_prepared_transactions = 2").await;
    server.restart().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let prepare = "BEGIN; SELECT leasehold_enter('reports/nightly', 33); \
                   INSERT INTO entry (name, token, value) VALUES ('reports/nightly', 33, 'prepared'); \
                   PREPARE TRANSACTION 'it''s mine'";
    run(&world.pool, prepare).await;
    server.kill().unwrap();
    server.restart().unwrap();
    let world = World::at(server.url().parse().unwrap()).await;
    let hasty = world.fence.clone().with_seal_patience(A_WHILE);
    let said = why_failed(hasty.seal(&stamp(34)).await);
    has(&said, "is kept by a prepared transaction for longer");
    let end = "ROLLBACK PREPARED 'it''s mine'";
    has(&said, end);
    run(&world.pool, &end.replace("ROLLBACK", "COMMIT")).await;
    hasty.seal(&stamp(34)).await.unwrap();
    assert_eq!(
        (world.highest(NAME).await, world.entries().await),
        (Some(34), vec!["33 prepared".to_owned()])
    );
}
