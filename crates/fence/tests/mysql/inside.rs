//! What happens inside a fenced transaction: ends that nobody asked for, and the session that is left behind.

use std::time::Duration;

use leasehold_fence::{Error, Outcome, Receiver};
use sqlx::{Connection as _, Executor as _, MySqlConnection, MySqlPool};

use super::{database, highest, insert, stamp, tokens, write};

#[tokio::test]
async fn without_a_transaction_nobody_is_let_in() {
    let (pool, fence, _alive) = database(1).await;
    let mut conn = pool.acquire().await.unwrap();
    let error = fence.enter(&mut conn, &stamp("a", 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(error.to_string().contains("is in no transaction"), "{error}");
    // One that the driver does not know of is one all the same. The pool has no other connection, and none is needed.
    conn.execute("START TRANSACTION").await.unwrap();
    fence.enter(&mut conn, &stamp("a", 1)).await.unwrap();
    conn.execute("COMMIT").await.unwrap();
    drop(conn);
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 1);
}

#[tokio::test]
async fn a_transaction_inside_is_a_savepoint() {
    let (pool, fence, _alive) = database(2).await;
    let stamp = &stamp("a", 1);
    fence
        .transaction(stamp, async |tx| {
            insert(tx, stamp, "kept").await?;
            let mut inner = tx.begin().await?;
            insert(&mut inner, stamp, "given up").await?;
            inner.rollback().await?;
            let mut inner = tx.begin().await?;
            insert(&mut inner, stamp, "kept too").await?;
            inner.commit().await?;
            let mut dropped = tx.begin().await?;
            insert(&mut dropped, stamp, "dropped").await?;
            Ok(())
        })
        .await
        .unwrap();
    let values: Vec<String> = sqlx::query_scalar("SELECT value FROM written").fetch_all(&pool).await.unwrap();
    assert_eq!(values, ["kept", "kept too"]);
}

/// Makes the server end the transaction of `tx` by a deadlock, and gives back what `tx` is told.
async fn deadlock(pool: &MySqlPool, tx: &mut MySqlConnection) -> sqlx::Error {
    // The other one has written more, so this one is the victim.
    let mut other = pool.begin().await.unwrap();
    other.execute("UPDATE rows_of_others SET n = n + 1 WHERE id > 1").await.unwrap();
    tx.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 1").await.unwrap();
    let waiting = tokio::spawn(async move {
        let ended = other.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 1").await.map(drop);
        other.rollback().await.unwrap();
        ended
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let error = tx.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 2").await.unwrap_err();
    waiting.await.unwrap().unwrap();
    error
}

pub(super) async fn rows_of_others(pool: &MySqlPool) {
    pool.execute("CREATE TABLE rows_of_others (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB")
        .await
        .unwrap();
    for id in 1..20 {
        pool.execute(format!("INSERT INTO rows_of_others VALUES ({id}, 0)").as_str()).await.unwrap();
    }
}

#[tokio::test]
async fn a_deadlock_is_a_failure_that_may_be_tried_again() {
    let (pool, fence, _alive) = database(4).await;
    rows_of_others(&pool).await;
    let stamp = &stamp("a", 1);
    let pool = &pool;
    let error = fence
        .transaction(stamp, async |tx| {
            insert(tx, stamp, "x").await?;
            Err::<(), _>(deadlock(pool, tx).await.into())
        })
        .await
        .unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    assert!(error.to_string().contains("1213"), "{error}");
    assert_eq!(tokens(pool, "a").await, [] as [u64; 0]);
    write(&fence, stamp, "again").await.unwrap();
}

/// The right way beside `wrong_way_going_on_after_a_deadlock_writes_without_the_fence`.
#[tokio::test]
async fn a_deadlock_that_was_passed_over_writes_nothing_without_the_fence() {
    let (pool, fence, _alive) = database(4).await;
    rows_of_others(&pool).await;
    let (old, pool, fence) = (&stamp("a", 33), &pool, &fence);
    let result = fence
        .transaction(old, async |tx| {
            insert(tx, old, "one").await?;
            let deadlock = deadlock(pool, tx).await.to_string();
            assert!(deadlock.contains("1213"), "{deadlock}");
            // The server has let go of the fence, and somebody newer comes.
            fence.seal(&stamp("a", 34)).await?;
            insert(tx, old, "two").await?;
            Ok(())
        })
        .await;
    match result {
        Err(Error::Unknown { source, .. }) => {
            assert!(source.to_string().contains("ended before its commit"), "{source}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(tokens(pool, "a").await, [] as [u64; 0]);
}

#[tokio::test]
async fn a_statement_that_commits_by_itself_is_seen() {
    let (pool, fence, _alive) = database(4).await;
    let stamp = &stamp("a", 33);
    for fails in [false, true] {
        let error = fence
            .transaction(stamp, async |tx| {
                insert(tx, stamp, "before").await?;
                tx.execute("CREATE TABLE IF NOT EXISTS surprise (id INT)").await?;
                insert(tx, stamp, "behind").await?;
                if fails { Err("no paper".into()) } else { Ok(()) }
            })
            .await
            .unwrap_err();
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    }
    let values: Vec<String> = sqlx::query_scalar("SELECT value FROM written").fetch_all(&pool).await.unwrap();
    assert_eq!(values, ["before", "before"]);
}

#[tokio::test]
async fn the_session_is_left_as_it_was() {
    let (pool, fence, _alive) = database(1).await;
    let asked = "SELECT CAST(@@autocommit AS SIGNED), CAST(@@innodb_lock_wait_timeout AS SIGNED),
        CAST(@@lock_wait_timeout AS SIGNED), CAST(CONNECTION_ID() AS SIGNED)";
    let before: (i64, i64, i64, i64) = sqlx::query_as(asked).fetch_one(&pool).await.unwrap();
    fence.seal(&stamp("a", 5)).await.unwrap();
    highest(fence.seal(&stamp("a", 4)).await);
    write(&fence, &stamp("a", 5), "x").await.unwrap();
    highest(write(&fence, &stamp("a", 4), "x").await);
    fence.transaction(&stamp("a", 5), async |_| Err::<(), _>("no paper".into())).await.unwrap_err();
    let after: (i64, i64, i64, i64) = sqlx::query_as(asked).fetch_one(&pool).await.unwrap();
    // The same connection, too: none of these costs one.
    assert_eq!(after, before);
    assert_eq!(before.0, 1);
}

#[tokio::test]
async fn a_write_that_is_dropped_half_way_writes_nothing() {
    let (pool, fence, _alive) = database(1).await;
    let stamp = &stamp("a", 5);
    let never = fence.transaction(stamp, async |tx| {
        insert(tx, stamp, "x").await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    tokio::time::timeout(Duration::from_millis(300), never).await.unwrap_err();
    fence.seal(&super::stamp("a", 6)).await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [] as [u64; 0]);
    let by_itself: i64 =
        sqlx::query_scalar("SELECT CAST(@@autocommit AS SIGNED)").fetch_one(&pool).await.unwrap();
    assert_eq!(by_itself, 1);
}
