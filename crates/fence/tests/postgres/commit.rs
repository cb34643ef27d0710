//! How transactions really end: an answer that is lost, a commit that commits nothing, a caller that goes away.

use std::net::Ipv4Addr;

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Error, Outcome, Receiver as _};
use sqlx::Executor as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{A_WHILE, NAME, World, has, pool, put, refused_for, stamp, why_failed};

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
    for words in ["leasehold_enter", "INSERT INTO entry"] {
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
