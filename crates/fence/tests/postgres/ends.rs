//! Which end is which, and that each is counted once.

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Authority, Error, NoAuthority, Outcome, Receiver as _, Stamp};
use sqlx::Executor as _;

use crate::postgres::world::{NAME, World, beside, has, of, pid, pool, put, soon, stamp, why_failed};

#[tokio::test]
async fn every_seal_and_write_is_counted_once_by_its_end() {
    let world = World::new().await;
    let place = world.fence.place().to_owned();
    world.fence.seal(&stamp(34)).await.unwrap();
    world.fence.seal(&stamp(33)).await.unwrap_err();
    world.write(&stamp(34), "a").await.unwrap();
    world.write(&stamp(34), "b").await.unwrap();
    world.write(&stamp(33), "c").await.unwrap_err();
    let own = async |_: &mut sqlx::PgConnection| -> Result<(), _> { Err("changed my mind".into()) };
    let said = world.fence.transaction(&stamp(34), own).await;
    has(why_failed(said), "changed my mind");
    let mut tx = world.begin().await;
    world.fence.enter(&mut tx, &stamp(34)).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = world.begin().await;
    world.fence.enter(&mut tx, &stamp(32)).await.unwrap_err();

    let counted = |outcome| (world.counts.seals(&place, outcome), world.counts.writes(&place, outcome));
    assert_eq!(counted(Outcome::Accepted), (1, 3));
    assert_eq!(counted(Outcome::Stale), (1, 2));
    assert_eq!(counted(Outcome::Failed), (0, 1));
    assert_eq!(counted(Outcome::Unknown), (0, 0));
}

#[tokio::test]
async fn an_entry_inside_a_transaction_is_counted_once_with_it() {
    let world = World::new().await;
    let (fence, place) = (&world.fence, world.fence.place());
    fence.seal(&of("b", 9)).await.unwrap();
    let both = async |b: u64| {
        fence.transaction(&of("a", 1), async |tx| Ok(fence.enter(tx, &of("b", b)).await?)).await
    };
    both(9).await.unwrap();
    assert_eq!(world.counts.writes(place, Outcome::Accepted), 1);
    both(8).await.unwrap_err();
    assert_eq!(world.counts.writes(place, Outcome::Stale), 1);
    // In a savepoint, and by a fence that was made anew.
    let made = Fence::new(world.pool.clone()).counted(&world.counts);
    fence
        .transaction(&of("a", 1), async |tx| {
            let mut inner = sqlx::Connection::begin(tx).await?;
            made.enter(&mut inner, &of("b", 9)).await?;
            Ok(inner.commit().await?)
        })
        .await
        .unwrap();
    assert_eq!(world.counts.writes(place, Outcome::Accepted), 2);
    // Another connection, while the transaction is open, is another write.
    fence
        .transaction(&of("a", 1), async |_| {
            let mut other = world.begin().await;
            fence.enter(&mut other, &of("b", 9)).await?;
            Ok(other.commit().await?)
        })
        .await
        .unwrap();
    assert_eq!(world.counts.writes(place, Outcome::Accepted), 4);
}

#[tokio::test]
async fn a_lapsed_guard_and_a_refusal_leave_the_connection_to_the_pool() {
    struct Lapsed;
    impl Authority for Lapsed {
        fn stamp(&self) -> Result<Stamp, NoAuthority> {
            Err(NoAuthority { name: NAME.to_owned(), why: "the lease was lost".to_owned() })
        }
    }
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    let alone = pool((*world.pool.connect_options()).clone(), 1).await;
    let fence = Fence::new(alone.clone());
    let backend = async || pid(&mut alone.acquire().await.unwrap()).await;
    let before = backend().await;
    fence.transaction(&Lapsed, async |_| Ok(())).await.unwrap_err();
    assert_eq!(backend().await, before, "a lapsed guard has sent nothing on it");
    fence.transaction(&stamp(33), async |_| Ok(())).await.unwrap_err();
    fence.batch(&Lapsed, "SELECT 1").await.unwrap_err();
    fence.batch(&stamp(33), "SELECT 1").await.unwrap_err();
    assert_eq!(backend().await, before);
}

#[tokio::test]
async fn a_connection_in_no_transaction_is_refused() {
    let world = World::new().await;
    let mut connection = world.pool.acquire().await.unwrap();
    let said = why_failed(world.fence.enter(&mut connection, &stamp(33)).await);
    has(said, "the connection is in no transaction");
    assert_eq!(world.highest(NAME).await, None);
}

#[tokio::test]
async fn a_database_without_the_fence_says_what_to_do() {
    let world = World::bare().await;
    for said in [
        why_failed(world.write(&stamp(33), "x").await),
        why_failed(world.fence.seal(&stamp(33)).await),
        why_failed(world.fence.look(NAME).await),
    ] {
        has(said, "run the migration in this database and schema: Fence::migrate, or with psql what");
    }
}

#[tokio::test]
async fn a_deadlock_of_the_work_is_a_failure_of_one_and_the_other_goes_on() {
    let world = World::new().await;
    let rows = "CREATE TABLE pair (id int PRIMARY KEY, n int); INSERT INTO pair VALUES (1, 0), (2, 0)";
    sqlx::raw_sql(rows).execute(&world.pool).await.unwrap();
    world.fence.seal(&stamp(33)).await.unwrap();
    let both = std::sync::Arc::new(tokio::sync::Barrier::new(2));
    let tasks = [[1, 2], [2, 1]].map(|[first, second]| {
        let (fence, both) = (world.fence.clone(), both.clone());
        beside(async move {
            fence
                .transaction(&stamp(33), async |tx| {
                    let update = "UPDATE pair SET n = n + 1 WHERE id = $1";
                    sqlx::query(update).bind(first).execute(&mut *tx).await?;
                    both.wait().await;
                    sqlx::query(update).bind(second).execute(&mut *tx).await?;
                    Ok(())
                })
                .await
        })
    });
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(soon(task).await);
    }
    ends.sort_by_key(Result::is_err);
    ends.remove(0).unwrap();
    has(why_failed(ends.remove(0)), "deadlock detected");
    let sum: i64 = sqlx::query_scalar("SELECT sum(n) FROM pair").fetch_one(&world.pool).await.unwrap();
    assert_eq!(sum, 2);
}

#[tokio::test]
async fn an_error_of_the_work_can_be_looked_into() {
    let world = World::new().await;
    let said = world
        .fence
        .transaction(&stamp(33), async |tx| {
            tx.execute("SELECT 1 / 0").await?;
            Ok(())
        })
        .await;
    let Err(Error::Failed { source, .. }) = said else { panic!("it failed") };
    let code = source.downcast_ref::<sqlx::Error>().unwrap().as_database_error().unwrap().code();
    assert_eq!(code.as_deref(), Some("22012"));
}

/// A caller that knows only SQL is protected too, and its error is told apart from one of another name.
#[tokio::test]
async fn a_raw_call_that_is_refused_ends_the_transaction_whether_anybody_looks_or_not() {
    let world = World::new().await;
    world.fence.seal(&stamp(34)).await.unwrap();
    world.fence.seal(&of("other", 9)).await.unwrap();
    let mut tx = world.begin().await;
    tx.execute("SELECT leasehold_enter('reports/nightly', 33)").await.ok();
    put(&mut tx, &stamp(33), "unlooked").await.ok();
    tx.commit().await.unwrap();
    assert_eq!(world.entries().await, Vec::<String>::new());

    let said = world
        .fence
        .transaction(&stamp(34), async |tx| {
            tx.execute("SELECT leasehold_enter('other', 8)").await?;
            Ok(())
        })
        .await;
    has(why_failed(said), "token 8 of other is stale: the receiver has seen 9");
}

/// The pool takes a refused connection for a server that is about to start, and would only say after half a minute that there was none in time.
#[tokio::test]
async fn a_server_that_is_down_is_said_to_be_down_and_soon() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fence = Fence::at(&format!("postgres://postgres@{nobody}/postgres")).unwrap();
    let early = std::time::Duration::from_secs(10);
    let stamp = stamp(34);
    for said in [
        tokio::time::timeout(early, fence.seal(&stamp)).await.expect("it is said early"),
        tokio::time::timeout(early, fence.transaction(&stamp, async |_| Ok(()))).await.expect("early"),
        tokio::time::timeout(early, fence.begin(&stamp)).await.expect("early").map(drop),
        tokio::time::timeout(early, fence.batch(&stamp, "SELECT 1")).await.expect("early"),
        tokio::time::timeout(early, fence.look(NAME)).await.expect("early").map(drop),
        tokio::time::timeout(early, fence.migrate()).await.expect("early"),
    ] {
        has(why_failed(said), "Connection refused");
    }
}
