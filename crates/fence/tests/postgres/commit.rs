//! How transactions really end: an answer that is lost, a commit that commits nothing, a caller that goes away.

use std::net::Ipv4Addr;

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Error, Outcome, Receiver as _};
use sqlx::Executor as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::postgres::world::{
    A_WHILE, NAME, World, beside, has, pool, put, refused_for, run, stamp, why_failed,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// When these words come by: nothing of the message that has them reaches the server.
    Before(&'static str),
    /// When the server has carried the message out and answers: the answer is lost.
    Behind(&'static str),
}

/// Hands bytes on between clients and the server, and cuts the connection once.
async fn proxy(server: u16, cut: Cut) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await.unwrap();
            tokio::spawn(hand_on(client, server, cut));
        }
    });
    port
}

/// Returns, and so cuts both ways, where it is told to.
async fn hand_on(mut client: TcpStream, mut server: TcpStream, cut: Cut) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut is_sent = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let has = |words: &str| asked[..length].windows(words.len()).any(|window| window == words.as_bytes());
                match cut {
                    Cut::Before(words) if has(words) => return,
                    Cut::Behind(words) => is_sent |= has(words),
                    Cut::Before(_) => {}
                }
                server.write_all(&asked[..length]).await.unwrap();
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if is_sent {
                    return;
                }
                client.write_all(&answered[..length]).await.unwrap();
            }
        }
    }
}

async fn through(world: &World, cut: Cut) -> Fence {
    let options = (*world.pool.connect_options()).clone();
    let port = proxy(options.get_port(), cut).await;
    Fence::new(pool(options.port(port), 2).await).counted(&world.counts)
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_unknown_whether_it_was_carried_out_or_not() {
    for (cut, written) in [(Cut::Behind("COMMIT"), 1), (Cut::Before("COMMIT"), 0)] {
        let world = World::new().await;
        let fence = through(&world, cut).await;
        let said = fence.transaction(&stamp(33), async |tx| Ok(put(tx, &stamp(33), "x").await?)).await;
        assert!(matches!(said, Err(Error::Unknown { .. })), "{cut:?}: {said:?}");
        assert_eq!(world.entries().await.len(), written, "{cut:?}");
        assert_eq!(world.counts.writes(fence.place(), Outcome::Unknown), 1);
        // The next holder is not kept waiting by what is left of it.
        world.fence.seal(&stamp(34)).await.unwrap();
        assert_eq!(world.entries().await.len(), written, "nothing comes after the seal");
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_before_the_commit_was_sent_is_a_failure() {
    for words in ["leasehold_entry", "INSERT INTO entry"] {
        for cut in [Cut::Before(words), Cut::Behind(words)] {
            let world = World::new().await;
            let fence = through(&world, cut).await;
            why_failed(fence.transaction(&stamp(33), async |tx| Ok(put(tx, &stamp(33), "x").await?)).await);
            world.fence.seal(&stamp(34)).await.unwrap();
            assert_eq!(world.entries().await, Vec::<String>::new(), "{cut:?}");
            assert_eq!(world.counts.writes(fence.place(), Outcome::Failed), 1, "{cut:?}");
        }
    }
}

#[tokio::test]
async fn a_seal_whose_answer_is_lost_is_unknown_and_may_be_repeated() {
    let world = World::new().await;
    let fence = through(&world, Cut::Behind("leasehold_seal")).await;
    let said = fence.seal(&stamp(34)).await;
    assert!(matches!(said, Err(Error::Unknown { .. })), "{said:?}");
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "late").await), 34);
}

#[tokio::test]
async fn a_single_statement_whose_answer_is_lost_is_unknown() {
    let world = World::new().await;
    let fence = through(&world, Cut::Behind("UPDATE row_")).await;
    sqlx::raw_sql("CREATE TABLE row_ (id int)").execute(&world.pool).await.unwrap();
    let update = |_| sqlx::query("UPDATE row_ SET id = 1");
    let said = fence.update_row(&stamp(33), update, || sqlx::query_scalar("SELECT 1::bigint")).await;
    assert!(matches!(said, Err(Error::Unknown { .. })), "{said:?}");
}

/// PostgreSQL answers the COMMIT of a transaction that has failed with success, and rolls back.
#[tokio::test]
async fn wrong_way_a_plain_commit_after_a_dropped_error_says_success_and_writes_nothing() {
    let world = World::new().await;
    let mut tx = world.begin().await;
    put(&mut tx, &stamp(33), "lost").await.unwrap();
    tx.execute("SELECT 1 / 0").await.unwrap_err();
    tx.commit().await.unwrap();
    assert_eq!(world.entries().await, Vec::<String>::new());
}

#[tokio::test]
async fn work_that_drops_an_error_has_failed() {
    let world = World::new().await;
    let said = world
        .fence
        .transaction(&stamp(33), async |tx| {
            put(tx, &stamp(33), "lost").await?;
            tx.execute("SELECT 1 / 0").await.ok();
            Ok(())
        })
        .await;
    has(why_failed(said), "a statement of the work failed and its error was not handed on");
    assert_eq!((world.entries().await, world.highest(NAME).await), (vec![], None));
    world.write(&stamp(33), "again").await.unwrap();
}

#[tokio::test]
async fn work_that_commits_by_itself_is_not_called_accepted() {
    let world = World::new().await;
    let said = world
        .fence
        .transaction(&stamp(33), async |tx| {
            put(tx, &stamp(33), "x").await?;
            tx.execute("COMMIT").await?;
            Ok(())
        })
        .await;
    assert!(matches!(said, Err(Error::Unknown { .. })), "{said:?}");
    world.write(&stamp(33), "y").await.unwrap();
}

#[tokio::test]
async fn work_that_commits_by_itself_and_begins_anew_is_not_called_accepted() {
    for anew in [
        "COMMIT; BEGIN",
        "COMMIT AND CHAIN",
        "ROLLBACK AND CHAIN",
        // Entering again does not help: what was committed before is not part of this one.
        "COMMIT; BEGIN; SELECT leasehold_enter('reports/nightly', 33)",
    ] {
        let world = World::new().await;
        let said = world
            .fence
            .transaction(&stamp(33), async |tx| {
                tx.execute(anew).await?;
                Ok(put(tx, &stamp(33), "outside").await?)
            })
            .await;
        assert!(matches!(said, Err(Error::Unknown { .. })), "{anew}: {said:?}");
        assert_eq!(world.entries().await, Vec::<String>::new(), "{anew}: what was outside is rolled back");
        world.write(&stamp(33), "y").await.unwrap();
        world.fence.seal(&stamp(34)).await.unwrap();
    }
}

/// "Failed" would say that nothing was written.
#[tokio::test]
async fn work_that_commits_by_itself_and_then_returns_an_error_has_not_failed() {
    let world = World::new().await;
    let said = world
        .fence
        .transaction(&stamp(33), async |tx| -> Result<(), _> {
            put(tx, &stamp(33), "kept").await?;
            tx.execute("COMMIT; BEGIN").await?;
            Err("changed my mind".into())
        })
        .await;
    let Err(Error::Unknown { source, .. }) = said else { panic!("{said:?}") };
    has(source, "changed my mind");
    assert_eq!(world.entries().await, ["33 kept"]);
    world.fence.seal(&stamp(34)).await.unwrap();
}

#[tokio::test]
async fn a_batch_is_committed_whole_or_said_not_to_be() {
    let insert = "INSERT INTO entry (name, token, value) VALUES ('reports/nightly', 33, 'x')";
    for (statements, is_accepted, written) in [
        (insert.to_owned(), true, 1),
        (format!("{insert}; {insert}; -- and no more"), true, 2),
        // It does no harm, and what follows is committed.
        (format!("BEGIN; {insert}"), true, 1),
        (format!("COMMIT; {insert}"), false, 0),
        (format!("{insert}; COMMIT; BEGIN; {insert}"), false, 1),
    ] {
        let world = World::new().await;
        let alone = pool((*world.pool.connect_options()).clone(), 1).await;
        let fence = Fence::new(alone.clone());
        let said = fence.batch(&stamp(33), &statements).await;
        match said {
            Ok(()) => assert!(is_accepted, "{statements}"),
            Err(Error::Unknown { .. }) => assert!(!is_accepted, "{statements}"),
            Err(other) => panic!("{statements}: {other}"),
        }
        assert_eq!(world.entries().await.len(), written, "{statements}");
        // The connection is in no transaction, and nobody waits for it.
        fence.transaction(&stamp(34), async |_| Ok(())).await.unwrap();
        assert_eq!(refused_for(fence.batch(&stamp(33), insert).await), 34);
    }
}

#[tokio::test]
async fn a_batch_or_single_statement_that_nobody_waits_for_is_counted() {
    let world = World::new().await;
    run(&world.pool, "CREATE TABLE row_ (id int); INSERT INTO row_ VALUES (0)").await;
    let (one, two) = (world.fence.clone(), world.fence.clone());
    let batch = beside(async move { one.batch(&stamp(33), "SELECT pg_sleep(20)").await });
    let row = beside(async move {
        let update = |_| sqlx::query("UPDATE row_ SET id = 1 FROM pg_sleep(20)");
        two.update_row(&stamp(33), update, || sqlx::query_scalar("SELECT 1::bigint")).await
    });
    // Both are carried out by the server when those who asked go away.
    let asleep =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    while sqlx::query_scalar::<_, i64>(asleep).fetch_one(&world.pool).await.unwrap() < 2 {
        tokio::time::sleep(A_WHILE / 10).await;
    }
    for task in [batch, row] {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    assert_eq!(world.counts.writes(world.fence.place(), Outcome::Unknown), 2);
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_is_a_failure() {
    let world = World::new().await;
    let deferred = "CREATE TABLE one (id int PRIMARY KEY); \
                    CREATE TABLE many (one int REFERENCES one DEFERRABLE INITIALLY DEFERRED)";
    sqlx::raw_sql(deferred).execute(&world.pool).await.unwrap();
    let said = world
        .fence
        .transaction(&stamp(33), async |tx| {
            tx.execute("INSERT INTO many VALUES (1)").await?;
            Ok(())
        })
        .await;
    has(why_failed(said), "violates foreign key constraint");
    world.write(&stamp(33), "y").await.unwrap();
}

#[tokio::test]
async fn transactions_inside_are_savepoints() {
    use sqlx::Connection as _;
    let world = World::new().await;
    world
        .fence
        .transaction(&stamp(33), async |tx| {
            put(tx, &stamp(33), "outer").await?;
            let mut inner = tx.begin().await?;
            put(&mut inner, &stamp(33), "given up").await?;
            inner.rollback().await?;
            let mut inner = tx.begin().await?;
            put(&mut inner, &stamp(33), "inner").await?;
            inner.commit().await?;
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(world.entries().await, ["33 outer", "33 inner"]);
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_transaction_to_the_next_and_is_counted() {
    let world = World::new().await;
    let counts = leasehold_fence::Counts::default();
    let alone = pool((*world.pool.connect_options()).clone(), 1).await;
    let fence = Fence::new(alone.clone()).counted(&counts);
    let failed = || counts.writes(fence.place(), Outcome::Failed);
    let mut other = world.begin().await;
    world.fence.enter(&mut other, &stamp(33)).await.unwrap();

    // While it waits to be let in.
    let next = stamp(34);
    let waits = fence.transaction(&next, async |_| Ok(()));
    assert!(tokio::time::timeout(A_WHILE, waits).await.is_err());
    assert_eq!(failed(), 1);
    other.commit().await.unwrap();
    // Its turn has come, and nobody is there: what it would keep now, it would keep for ever.
    world.fence.seal(&stamp(34)).await.unwrap();
    fence.transaction(&stamp(34), async |tx| Ok(put(tx, &stamp(34), "a").await?)).await.unwrap();

    // In the middle of its work.
    let works = fence.transaction(&next, async |tx| {
        put(tx, &stamp(34), "never").await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    assert!(tokio::time::timeout(A_WHILE, works).await.is_err());
    assert_eq!(failed(), 2);
    fence.transaction(&stamp(34), async |tx| Ok(put(tx, &stamp(34), "b").await?)).await.unwrap();
    assert_eq!(world.entries().await, ["34 a", "34 b"]);
    world.fence.seal(&stamp(35)).await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_begun_in_the_fence_is_in_it_and_a_refused_one_is_not_begun() {
    let world = World::new().await;
    let alone = pool((*world.pool.connect_options()).clone(), 1).await;
    let fence = Fence::new(alone.clone()).counted(&world.counts);
    let mut tx = fence.begin(&stamp(34)).await.unwrap();
    put(&mut tx, &stamp(34), "x").await.unwrap();
    let entered = "SELECT leasehold_entered('reports/nightly')";
    assert!(sqlx::query_scalar::<_, bool>(entered).fetch_one(&mut *tx).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(refused_for(fence.begin(&stamp(33)).await), 34);
    // Nothing is open on the one connection: what is written there is written.
    put(&mut alone.acquire().await.unwrap(), &stamp(34), "after").await.unwrap();
    assert_eq!(world.entries().await, ["34 x", "34 after"]);

    // Whoever goes away while it waits leaves nothing behind that keeps the fence.
    let mut open = world.begin().await;
    world.fence.enter(&mut open, &stamp(34)).await.unwrap();
    let waits = {
        let fence = fence.clone();
        beside(async move { fence.begin(&stamp(35)).await.map(drop) })
    };
    world.until_waiting(1).await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    open.commit().await.unwrap();
    world.fence.seal(&stamp(36)).await.unwrap();
    assert_eq!(refused_for(fence.begin(&stamp(35)).await), 36);
    assert_eq!(world.counts.writes(fence.place(), Outcome::Failed), 1);
}
