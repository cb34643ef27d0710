//! Ways that look right and are not. Each shows what it corrupts, next to the right way.

use std::process::Command;

use leasehold_fence::Receiver;
use sqlx::{Connection as _, Executor as _, MySqlConnection};

use super::inside::rows_of_others;
use super::{database, highest, insert, stamp, tokens, write};

async fn token_read(conn: &mut MySqlConnection, how: &str) -> i64 {
    let asked = format!("SELECT token FROM leasehold_fence WHERE name = 'a' {how}");
    sqlx::query_scalar(&asked).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn wrong_way_looking_first_and_writing_in_a_second_transaction() {
    let (pool, fence, _alive) = database(4).await;
    let old = stamp("a", 33);
    write(&fence, &old, "x").await.unwrap();
    let mut conn = pool.acquire().await.unwrap();
    // The old holder looks, even with a lock, and the lock is gone with its transaction.
    assert!(token_read(&mut conn, "FOR UPDATE").await <= old.signed_token());
    write(&fence, &stamp("a", 34), "new").await.unwrap();
    insert(&mut conn, &old, "stale").await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [33, 34, 33], "the stale write stands behind the new one");

    assert_eq!(highest(write(&fence, &old, "stale").await), Some(34));
}

#[tokio::test]
async fn wrong_way_a_plain_select_reads_the_snapshot() {
    let (pool, fence, _alive) = database(4).await;
    fence.seal(&stamp("a", 10)).await.unwrap();
    let mut old = pool.begin().await.unwrap();
    old.execute("SELECT COUNT(*) FROM written").await.unwrap();
    write(&fence, &stamp("a", 20), "new").await.unwrap();
    assert_eq!(token_read(&mut old, "").await, 10, "REPEATABLE READ, the default, reads what was");
    // So a check of this kind would let token 10 in.
    insert(&mut old, &stamp("a", 10), "stale").await.unwrap();
    match sqlx::query_scalar::<_, i64>("SELECT token FROM leasehold_fence WHERE name = 'a' FOR UPDATE")
        .fetch_one(&mut *old)
        .await
    {
        Ok(token) => assert_eq!(token, 20, "a locking read reads what is"),
        Err(error) => assert!(error.to_string().contains("1020"), "{error}"),
    }
    old.commit().await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [20, 10], "the stale write stands behind the new one");

    assert_eq!(highest(write(&fence, &stamp("a", 10), "stale").await), Some(20));
}

/// By the server's own client: the driver of these tests always asks for found rows, others count changed ones.
#[tokio::test]
async fn wrong_way_counting_changed_rows_refuses_an_equal_token() {
    let (pool, fence, _alive) = database(2).await;
    write(&fence, &stamp("a", 20), "x").await.unwrap();
    let options = pool.connect_options();
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--batch", "--skip-column-names"]);
    client.arg(format!("--port={}", options.get_port())).arg(options.get_database().unwrap());
    client.args([
        "--execute",
        "UPDATE leasehold_fence SET token = 20 WHERE name = 'a' AND token <= 20; SELECT ROW_COUNT()",
    ]);
    let said = client.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&said.stdout).trim(),
        "0",
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );

    write(&fence, &stamp("a", 20), "equal tokens pass").await.unwrap();
}

#[tokio::test]
async fn wrong_way_a_table_without_transactions_keeps_what_was_refused() {
    let (pool, fence, _alive) = database(4).await;
    pool.execute("ALTER TABLE written ENGINE = MyISAM").await.unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    let old = stamp("a", 33);
    // Written first, checked later and rolled back: with InnoDB that would be right too.
    let mut tx = pool.begin().await.unwrap();
    insert(&mut tx, &old, "stale").await.unwrap();
    highest(fence.enter(&mut tx, &old).await);
    tx.rollback().await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [33], "rolled back, and it is there");
    // And what was written under a newer token is there although its transaction failed.
    let new = &stamp("a", 34);
    let failed = fence.transaction(new, async |tx| {
        insert(tx, new, "half").await?;
        Err::<(), _>("no paper".into())
    });
    failed.await.unwrap_err();
    assert_eq!(tokens(&pool, "a").await, [33, 34], "failed, and it is there");
}

#[tokio::test]
async fn wrong_way_locking_a_row_that_is_not_there() {
    let (pool, fence, _alive) = database(4).await;
    let mut options = Vec::new();
    for _ in 0..2 {
        let mut tx = pool.begin().await.unwrap();
        tx.execute("SELECT token FROM leasehold_fence WHERE name = 'new' FOR UPDATE").await.unwrap();
        options.push(tx);
    }
    // Both are let in: a gap is locked by as many as like. Then each waits for the other.
    let mut tasks = tokio::task::JoinSet::new();
    for mut tx in options {
        tasks.spawn(async move {
            let ended =
                tx.execute("INSERT INTO leasehold_fence (name, token) VALUES ('new', 1)").await.map(drop);
            drop(tx);
            ended
        });
    }
    let ended = tasks.join_all().await;
    let words: Vec<String> = ended.into_iter().filter_map(|ended| Some(ended.err()?.to_string())).collect();
    assert!(words.iter().any(|words| words.contains("1213")), "{words:?}");

    // `many_first_writers_of_a_name_do_not_deadlock` is the right way at length.
    write(&fence, &stamp("new", 1), "x").await.unwrap();
}

#[tokio::test]
async fn wrong_way_going_on_after_a_deadlock_writes_without_the_fence() {
    let (pool, fence, _alive) = database(4).await;
    rows_of_others(&pool).await;
    let old = stamp("a", 33);
    let mut tx = pool.begin().await.unwrap();
    fence.enter(&mut tx, &old).await.unwrap();
    // A deadlock is passed over, as by a loop that tries a statement again.
    let mut other = pool.begin().await.unwrap();
    other.execute("UPDATE rows_of_others SET n = n + 1 WHERE id > 1").await.unwrap();
    tx.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 1").await.unwrap();
    let waiting = tokio::spawn(async move {
        other.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 1").await.map(drop).unwrap();
    });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    tx.execute("UPDATE rows_of_others SET n = n + 1 WHERE id = 2").await.unwrap_err();
    waiting.await.unwrap();

    write(&fence, &stamp("a", 34), "new").await.unwrap();
    insert(&mut tx, &old, "stale").await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [34, 33], "stale, and there although it was rolled back");
    // `a_deadlock_that_was_passed_over_writes_nothing_without_the_fence` is the right way.
    assert!(pool.acquire().await.unwrap().ping().await.is_ok());
}
