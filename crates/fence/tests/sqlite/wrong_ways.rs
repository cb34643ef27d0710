//! Ways that look right and are not. Each shows what it corrupts or how it fails, next to the right way.

use leasehold_fence::Receiver;
use sqlx::sqlite::SqliteJournalMode;
use sqlx::{Connection as _, SqliteConnection};

use super::{file, highest, insert, stamp, tokens, wal, write};

async fn token_read(conn: &mut SqliteConnection) -> i64 {
    sqlx::query_scalar("SELECT token FROM leasehold_fence WHERE name = 'a'").fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn wrong_way_looking_first_and_writing_without_a_transaction() {
    let file = wal().await;
    let old = stamp("a", 33);
    write(&file.fence, &old, "x").await.unwrap();
    let mut conn = file.pool.acquire().await.unwrap();
    assert!(token_read(&mut conn).await <= old.signed_token());
    write(&file.fence, &stamp("a", 34), "new").await.unwrap();
    insert(&mut conn, &old, "stale").await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [33, 34, 33], "the stale write stands behind the new one");

    assert_eq!(highest(write(&file.fence, &old, "stale").await), Some(34));
}

/// It corrupts nothing, and fails whenever somebody was faster: also for a holder that is not stale at all.
#[tokio::test]
async fn wrong_way_a_deferred_transaction_that_looks_first_cannot_write_any_more() {
    let file = wal().await;
    let holder = stamp("a", 33);
    write(&file.fence, &holder, "x").await.unwrap();
    let mut conn = file.pool.acquire().await.unwrap();
    let mut tx = conn.begin().await.unwrap();
    assert_eq!(token_read(&mut tx).await, 33);
    // Another thread of the same holder writes.
    write(&file.fence, &holder, "y").await.unwrap();
    let error = insert(&mut tx, &holder, "z").await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "517", "SQLITE_BUSY_SNAPSHOT: {error}");
    tx.rollback().await.unwrap();

    // The same through the fence: it says what to do.
    let mut tx = conn.begin().await.unwrap();
    token_read(&mut tx).await;
    write(&file.fence, &holder, "y").await.unwrap();
    let said = file.fence.enter(&mut tx, &holder).await.unwrap_err().to_string();
    assert!(said.contains("begin it with BEGIN IMMEDIATE and try again"), "{said}");
    tx.rollback().await.unwrap();
    // And the right ways: immediate, or deferred with the check as its first statement.
    for begin in ["BEGIN IMMEDIATE", "BEGIN"] {
        let mut tx = conn.begin_with(begin).await.unwrap();
        file.fence.enter(&mut tx, &holder).await.unwrap();
        insert(&mut tx, &holder, "z").await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(tokens(&file.pool, "a").await, [33; 5]);
}

/// Without WAL two of them wait for each other instead, and one is told to go.
#[tokio::test]
async fn wrong_way_two_deferred_transactions_that_look_first_deadlock() {
    let file = file(SqliteJournalMode::Delete).await;
    let holder = stamp("a", 33);
    file.fence.seal(&holder).await.unwrap();
    let (mut one, mut two) = (file.pool.begin().await.unwrap(), file.pool.begin().await.unwrap());
    token_read(&mut one).await;
    token_read(&mut two).await;
    insert(&mut one, &holder, "x").await.unwrap();
    let error = insert(&mut two, &holder, "y").await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "5", "SQLITE_BUSY at once: {error}");
    two.rollback().await.unwrap();
    one.commit().await.unwrap();
    write(&file.fence, &holder, "z").await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [33, 33]);
}

/// A row that is not there: an `UPDATE` as a check touches nothing, and looks stale.
#[tokio::test]
async fn wrong_way_an_update_of_a_row_that_is_not_there() {
    let file = wal().await;
    let update = sqlx::query("UPDATE leasehold_fence SET token = 1 WHERE name = 'new' AND token <= 1");
    assert_eq!(update.execute(&file.pool).await.unwrap().rows_affected(), 0);
    assert_eq!(file.fence.look("new").await.unwrap().highest, None);
    write(&file.fence, &stamp("new", 1), "x").await.unwrap();
    assert_eq!(tokens(&file.pool, "new").await, [1]);
}
