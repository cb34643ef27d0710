//! Old and new holders between each other's steps, in orders that are forced.

use std::sync::mpsc;
use std::time::Duration;

use leasehold_fence::{Error, Outcome, Receiver};
use sqlx::{Executor as _, MySqlPool, Row as _};

use super::{database, highest, insert, stamp, tokens, write};

#[tokio::test]
async fn a_stale_write_before_the_first_write_of_the_new_holder_is_refused_by_its_seal() {
    let (pool, fence, _alive) = database(2).await;
    fence.seal(&stamp("a", 33)).await.unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(highest(write(&fence, &stamp("a", 33), "late").await), Some(34));
    assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
    write(&fence, &stamp("a", 34), "first").await.unwrap();
    write(&fence, &stamp("a", 34), "second").await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [34, 34]);
}

#[tokio::test]
async fn what_is_inside_commits_before_the_seal_and_nothing_after_it() {
    let (pool, fence, _alive) = database(4).await;
    let mut old = pool.begin().await.unwrap();
    fence.enter(&mut old, &stamp("a", 33)).await.unwrap();
    let sealing = {
        let fence = fence.clone();
        tokio::spawn(async move { fence.seal(&stamp("a", 34)).await })
    };
    wait_until_somebody_waits(&pool).await;
    assert!(!sealing.is_finished());
    insert(&mut old, &stamp("a", 33), "inside").await.unwrap();
    old.commit().await.unwrap();
    sealing.await.unwrap().unwrap();
    assert_eq!(highest(write(&fence, &stamp("a", 33), "outside").await), Some(34));
    assert_eq!(tokens(&pool, "a").await, [33]);
}

#[tokio::test]
async fn a_seal_names_who_is_in_the_way_and_may_be_tried_again() {
    let (pool, fence, _alive) = database(4).await;
    let fence = fence.with_seal_patience(Duration::from_secs(1));
    let mut old = pool.begin().await.unwrap();
    fence.enter(&mut old, &stamp("a", 33)).await.unwrap();
    let id: u64 =
        sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS UNSIGNED)").fetch_one(&mut *old).await.unwrap();

    let error = fence.seal(&stamp("a", 34)).await.unwrap_err();
    let said = error.to_string();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(said.contains(&format!("connection {id} (root from ")), "{said}");
    assert!(said.contains(&format!("KILL {id} ends it")) && said.contains("fence row of a"), "{said}");
    assert_eq!(fence.look("a").await.unwrap().highest, None);

    pool.execute(format!("KILL {id}").as_str()).await.unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    insert(&mut old, &stamp("a", 33), "late").await.unwrap_err();
    drop(old);
    assert_eq!(tokens(&pool, "a").await, [] as [u64; 0]);
}

#[tokio::test]
async fn an_old_snapshot_does_not_let_an_old_token_in() {
    for level in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let (pool, fence, _alive) = database(4).await;
        let mut conn = pool.acquire().await.unwrap();
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        conn.execute(set.as_str()).await.unwrap();
        fence.seal(&stamp("a", 33)).await.unwrap();
        // The old holder looks at something, by which its snapshot is taken, and is paused.
        let mut old = sqlx::Connection::begin(&mut *conn).await.unwrap();
        old.execute("SELECT COUNT(*) FROM leasehold_refusal").await.unwrap(); // and that table is locked now, if it is serializable
        write(&fence, &stamp("a", 34), "new").await.unwrap();
        match fence.enter(&mut old, &stamp("a", 33)).await {
            Err(Error::Stale(stale)) => assert_eq!(stale.highest, Some(34), "{level}"),
            // A server may refuse to read behind the snapshot.
            Err(Error::Failed { source, .. }) if source.to_string().contains("1020") => {}
            other => panic!("{level}: {other:?}"),
        }
        old.rollback().await.unwrap();
        assert_eq!(tokens(&pool, "a").await, [34], "{level}");
    }
}

/// The snapshot is taken behind the lock, because the check is the first statement.
#[tokio::test]
async fn what_is_read_behind_the_check_is_what_the_one_before_wrote() {
    let (pool, fence, _alive) = database(4).await;
    let mut old = pool.begin().await.unwrap();
    fence.enter(&mut old, &stamp("a", 33)).await.unwrap();
    let new = {
        let fence = fence.clone();
        tokio::spawn(async move {
            fence
                .transaction(&stamp("a", 34), async |tx| {
                    Ok(sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM written")
                        .fetch_one(&mut *tx)
                        .await?)
                })
                .await
        })
    };
    wait_until_somebody_waits(&pool).await;
    insert(&mut old, &stamp("a", 33), "x").await.unwrap();
    old.commit().await.unwrap();
    assert_eq!(new.await.unwrap().unwrap(), 1);
}

#[test]
fn a_paused_thread_writes_with_the_token_of_its_own_guard() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (taken, wait_taken) = mpsc::channel();
    let (resume, wait_resume) = mpsc::channel();
    let main = runtime();
    let (pool, fence, _alive) = main.block_on(database(4));
    let options = (*pool.connect_options()).clone();
    let old = std::thread::spawn(move || {
        runtime().block_on(async {
            let fence = leasehold_fence::mysql::Fence::new(super::pool(options, 1).await);
            let guard = stamp("a", 33);
            write(&fence, &guard, "before").await.unwrap();
            taken.send(()).unwrap();
            wait_resume.recv().unwrap();
            write(&fence, &guard, "after").await
        })
    });
    wait_taken.recv().unwrap();
    main.block_on(write(&fence, &stamp("a", 34), "new")).unwrap();
    resume.send(()).unwrap();
    assert_eq!(highest(old.join().unwrap()), Some(34));
    assert_eq!(main.block_on(tokens(&pool, "a")), [33, 34]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_first_writers_of_a_name_do_not_deadlock() {
    let (pool, _, _alive) = database(8).await;
    for round in 0..20 {
        let mut tasks = tokio::task::JoinSet::new();
        for nth in 0..8 {
            // Each is a program of its own, which has seen no name yet.
            let fence = leasehold_fence::mysql::Fence::new(pool.clone());
            tasks.spawn(
                async move { write(&fence, &stamp(&format!("r{round}"), 7), &format!("{nth}")).await },
            );
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap().unwrap();
        }
        assert_eq!(tokens(&pool, &format!("r{round}")).await, [7; 8]);
    }
}

/// Until a check stands still.
async fn wait_until_somebody_waits(pool: &MySqlPool) {
    let database = pool.connect_options().get_database().unwrap().to_owned();
    let mut times = 0;
    for _ in 0..500 {
        let all = pool.fetch_all("SHOW FULL PROCESSLIST").await.unwrap();
        let waits = all.iter().any(|row| {
            let (of, runs): (Option<String>, Option<String>) = (row.get("db"), row.get("Info"));
            of.is_some_and(|of| of == database)
                && runs.is_some_and(|runs| {
                    runs.starts_with("SELECT token FROM leasehold_fence") && runs.ends_with("FOR UPDATE")
                })
        });
        times = if waits { times + 1 } else { 0 };
        if times == 5 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody waits");
}
