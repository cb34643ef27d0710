//! Interleavings, and what happens inside a fenced transaction.

use std::sync::mpsc;
use std::time::Duration;

use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Outcome, Receiver};
use sqlx::sqlite::SqliteJournalMode;
use sqlx::{Connection as _, Executor as _};

use super::{file, highest, insert, open, stamp, tokens, wal, write};

const JOURNALS: [SqliteJournalMode; 2] = [SqliteJournalMode::Wal, SqliteJournalMode::Delete];

#[tokio::test]
async fn a_stale_write_before_the_first_write_of_the_new_holder_is_refused_by_its_seal() {
    for journal in JOURNALS {
        let file = file(journal).await;
        let fence = &file.fence;
        fence.seal(&stamp("a", 33)).await.unwrap();
        fence.seal(&stamp("a", 34)).await.unwrap();
        assert_eq!(highest(write(fence, &stamp("a", 33), "late").await), Some(34));
        assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
        write(fence, &stamp("a", 34), "first").await.unwrap();
        write(fence, &stamp("a", 34), "second").await.unwrap();
        assert_eq!(tokens(&file.pool, "a").await, [34, 34]);
    }
}

#[tokio::test]
async fn what_is_inside_commits_before_the_seal_and_nothing_after_it() {
    let file = wal().await;
    let (fence, old) = (&file.fence, &stamp("a", 33));
    let (entered, is_inside) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = tokio::sync::oneshot::channel();
    let old_write = async {
        fence
            .transaction(old, async |tx| {
                entered.send(()).unwrap();
                may_go_on.await?;
                Ok(insert(tx, old, "inside").await?)
            })
            .await
    };
    let new_seal = async {
        is_inside.await.unwrap();
        let new = stamp("a", 34);
        let mut sealing = std::pin::pin!(fence.seal(&new));
        tokio::time::timeout(Duration::from_millis(200), &mut sealing).await.unwrap_err();
        go_on.send(()).unwrap();
        sealing.await
    };
    let (written, sealed) = tokio::join!(old_write, new_seal);
    written.unwrap();
    sealed.unwrap();
    assert_eq!(highest(write(fence, old, "outside").await), Some(34));
    assert_eq!(tokens(&file.pool, "a").await, [33]);
}

#[tokio::test]
async fn a_file_that_others_write_for_too_long_is_a_failure_in_words() {
    for journal in JOURNALS {
        let file = file(journal).await;
        let other =
            open(file.directory.path(), |options| options.busy_timeout(Duration::from_millis(100))).await;
        let hurried = Fence::new(other);
        file.fence.seal(&stamp("a", 33)).await.unwrap();
        // A deferred one, with an equal token: nothing is changed, and the file is locked all the same.
        let mut tx = file.pool.begin().await.unwrap();
        file.fence.enter(&mut tx, &stamp("a", 33)).await.unwrap();
        for error in [
            hurried.seal(&stamp("a", 34)).await.unwrap_err(),
            write(&hurried, &stamp("a", 34), "x").await.unwrap_err(),
        ] {
            assert_eq!(error.outcome(), Outcome::Failed);
            assert!(error.to_string().contains("for longer than busy_timeout"), "{error}");
        }
        insert(&mut tx, &stamp("a", 33), "x").await.unwrap();
        tx.commit().await.unwrap();
        hurried.seal(&stamp("a", 34)).await.unwrap();
        assert_eq!(tokens(&file.pool, "a").await, [33]);
    }
}

/// In the journal mode DELETE a reader keeps a writer from its commit, and the write can be tried again.
#[tokio::test]
async fn a_commit_that_readers_keep_out_is_rolled_back() {
    let file = file(SqliteJournalMode::Delete).await;
    let hurried = open(file.directory.path(), |options| {
        options.busy_timeout(Duration::from_millis(100)).journal_mode(SqliteJournalMode::Delete)
    });
    let hurried = Fence::new(hurried.await);
    hurried.seal(&stamp("a", 1)).await.unwrap();
    let mut reader = file.pool.begin().await.unwrap();
    reader.execute("SELECT * FROM leasehold_fence").await.unwrap();
    let error = write(&hurried, &stamp("a", 1), "x").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    reader.rollback().await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [] as [u64; 0]);
    write(&hurried, &stamp("a", 1), "again").await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [1]);
}

#[tokio::test]
async fn without_a_transaction_nobody_is_let_in() {
    let file = wal().await;
    let mut conn = file.pool.acquire().await.unwrap();
    let error = file.fence.enter(&mut conn, &stamp("a", 1)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(error.to_string().contains("is in no transaction"), "{error}");
    assert_eq!(file.fence.look("a").await.unwrap().highest, None);
    // One that the driver does not know of is one all the same.
    conn.execute("BEGIN IMMEDIATE").await.unwrap();
    file.fence.enter(&mut conn, &stamp("a", 1)).await.unwrap();
    insert(&mut conn, &stamp("a", 1), "x").await.unwrap();
    conn.execute("COMMIT").await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [1]);
}

#[tokio::test]
async fn transactions_inside_are_savepoints_and_a_further_fence_refuses_all() {
    let file = wal().await;
    let (one, fence) = (&stamp("a", 1), &file.fence);
    fence
        .transaction(one, async |tx| {
            insert(tx, one, "kept").await?;
            let mut inner = tx.begin().await?;
            insert(&mut inner, one, "given up").await?;
            inner.rollback().await?;
            fence.enter(tx, &stamp("b", 5)).await?;
            Ok(())
        })
        .await
        .unwrap();
    let both = fence.transaction(one, async |tx| {
        insert(tx, one, "refused").await?;
        fence.enter(tx, &stamp("b", 4)).await?;
        Ok(())
    });
    assert_eq!(highest(both.await), Some(5));
    assert_eq!(tokens(&file.pool, "a").await, [1]);
}

#[tokio::test]
async fn a_transaction_that_sqlite_ended_is_seen() {
    let file = wal().await;
    file.pool.execute("CREATE TABLE one (id INTEGER PRIMARY KEY); INSERT INTO one VALUES (1)").await.unwrap();
    let (stamp, fence) = (&stamp("a", 1), &file.fence);
    // At the first error it ends, and nothing was written.
    let ends = fence.transaction(stamp, async |tx| {
        insert(tx, stamp, "before").await?;
        tx.execute("INSERT OR ROLLBACK INTO one VALUES (1)").await?;
        Ok(())
    });
    let error = ends.await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    assert_eq!(tokens(&file.pool, "a").await, [] as [u64; 0]);
    // Whoever goes on writes nothing without the fence, however it does that.
    for goes_on in [
        "INSERT INTO written (name, token, value) VALUES ('a', 1, 'behind')",
        "BEGIN IMMEDIATE; INSERT INTO written (name, token, value) VALUES ('a', 1, 'behind'); COMMIT",
        "BEGIN IMMEDIATE; INSERT INTO written (name, token, value) VALUES ('a', 1, 'behind')",
        "SELECT 1",
    ] {
        for fails in [false, true] {
            let ended = fence.transaction(stamp, async |tx| {
                insert(tx, stamp, "before").await?;
                tx.execute("INSERT OR ROLLBACK INTO one VALUES (1)").await.unwrap_err();
                let _ = tx.execute(goes_on).await;
                if fails { Err("no paper".into()) } else { Ok(()) }
            });
            let error = ended.await.unwrap_err();
            assert_eq!(error.outcome(), Outcome::Failed, "{goes_on}: {error}");
            let words = if fails { "no paper" } else { "ended before its commit" };
            assert!(error.to_string().contains(words), "{goes_on}: {error}");
            assert_eq!(tokens(&file.pool, "a").await, [] as [u64; 0], "{goes_on}");
        }
    }
    // A commit by the work itself is none either.
    let ended = fence.transaction(stamp, async |tx| {
        insert(tx, stamp, "before").await?;
        let _ = tx.execute("COMMIT").await;
        Ok(())
    });
    assert_eq!(ended.await.unwrap_err().outcome(), Outcome::Failed);
    assert_eq!(tokens(&file.pool, "a").await, [] as [u64; 0]);
    // No connection of the pool is left in a state of which the driver knows nothing.
    for _ in 0..20 {
        write(fence, stamp, "after").await.unwrap();
        file.pool.execute("INSERT INTO one SELECT MAX(id) + 1 FROM one").await.unwrap();
    }
}

#[tokio::test]
async fn a_write_that_is_dropped_half_way_writes_nothing() {
    let file = wal().await;
    let (stamp, fence) = (&stamp("a", 5), &file.fence);
    let never = fence.transaction(stamp, async |tx| {
        insert(tx, stamp, "x").await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    tokio::time::timeout(Duration::from_millis(200), never).await.unwrap_err();
    fence.seal(&super::stamp("a", 6)).await.unwrap();
    assert_eq!(tokens(&file.pool, "a").await, [] as [u64; 0]);
}

#[test]
fn a_paused_thread_writes_with_the_token_of_its_own_guard() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (taken, wait_taken) = mpsc::channel();
    let (resume, wait_resume) = mpsc::channel();
    let main = runtime();
    let file = main.block_on(wal());
    let directory = file.directory.path().to_owned();
    let old = std::thread::spawn(move || {
        runtime().block_on(async {
            let fence = Fence::new(open(&directory, |options| options).await);
            let guard = stamp("a", 33);
            write(&fence, &guard, "before").await.unwrap();
            taken.send(()).unwrap();
            wait_resume.recv().unwrap();
            write(&fence, &guard, "after").await
        })
    });
    wait_taken.recv().unwrap();
    main.block_on(write(&file.fence, &stamp("a", 34), "new")).unwrap();
    resume.send(()).unwrap();
    assert_eq!(highest(old.join().unwrap()), Some(34));
    assert_eq!(main.block_on(tokens(&file.pool, "a")), [33, 34]);
}
