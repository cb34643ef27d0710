//! How long a seal waits, and behind whom.

use std::time::Duration;

use leasehold_fence::mysql::Fence;
use leasehold_fence::{Error, Outcome, Receiver as _};
use tokio::task::JoinSet;

use super::{database, highest, insert, stamp, tokens};

/// A new holder is often a new process, which has not seen the row yet.
#[tokio::test]
async fn the_first_seal_of_a_program_is_as_patient_as_others_and_names_who_is_in_the_way() {
    let (pool, fence, _alive) = database(4).await;
    let mut old = pool.begin().await.unwrap();
    fence.enter(&mut old, &stamp("a", 33)).await.unwrap();
    let id: u64 =
        sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS UNSIGNED)").fetch_one(&mut *old).await.unwrap();

    let new = Fence::new(pool.clone()).with_seal_patience(Duration::from_secs(1));
    let sealed = tokio::time::timeout(Duration::from_secs(20), new.seal(&stamp("a", 34))).await;
    let error = sealed.expect("it waits for longer than its patience").unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed);
    assert!(error.to_string().contains(&format!("KILL {id} ends it")), "{error}");
    old.rollback().await.unwrap();
    new.seal(&stamp("a", 34)).await.unwrap();
}

/// Old writers of which several wait at any time, each inside for so long.
fn old_writers(fence: &Fence, count: usize, inside: Duration) -> JoinSet<u64> {
    let mut writers = JoinSet::new();
    for _ in 0..count {
        let fence = fence.clone();
        writers.spawn(async move {
            let old = &stamp("a", 33);
            for written in 0.. {
                let result = fence.transaction(old, async |tx| {
                    insert(tx, old, "old").await?;
                    tokio::time::sleep(inside).await;
                    Ok(())
                });
                match result.await {
                    Ok(()) => {}
                    Err(Error::Stale(_)) => return written,
                    Err(other) => panic!("{other}"),
                }
            }
            unreachable!("it goes on until it is refused")
        });
    }
    writers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_has_its_turn_among_old_writers_that_overlap() {
    let (pool, fence, _alive) = database(9).await;
    let mut writers = old_writers(&fence, 8, Duration::from_millis(100));
    while tokens(&pool, "a").await.len() < 16 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Eight wait or are inside, and come again as soon as they are through.
    fence.seal(&stamp("a", 34)).await.unwrap();
    let sealed = tokens(&pool, "a").await;
    while let Some(written) = writers.join_next().await {
        assert!(written.unwrap() > 0);
    }
    assert_eq!(tokens(&pool, "a").await, sealed, "nothing is written behind the seal");
    assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
}

/// A wait that is over has lost its place in the queue, so the next one has to be longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_that_is_tried_again_outwaits_a_queue_that_is_longer_than_its_patience() {
    let (pool, fence, _alive) = database(9).await;
    let mut writers = old_writers(&fence, 8, Duration::from_millis(400));
    while tokens(&pool, "a").await.len() < 8 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Eight times 400 ms are in front of it, always.
    let hurried = fence.clone().with_seal_patience(Duration::from_secs(1));
    let mut ends = Vec::new();
    while ends.len() < 6 && !ends.contains(&Outcome::Accepted) {
        ends.push(Outcome::of(&hurried.seal(&stamp("a", 34)).await));
    }
    assert_eq!(ends.first(), Some(&Outcome::Failed), "there was no queue");
    assert_eq!(ends.last(), Some(&Outcome::Accepted), "{ends:?}");
    while writers.join_next().await.is_some() {}
}

/// The pool takes a refused connection for a server that is about to start, and would only say after half a minute that there was none in time.
#[tokio::test]
async fn a_server_that_is_down_is_said_to_be_down_and_soon() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fence = Fence::new(sqlx::MySqlPool::connect_lazy(&format!("mysql://root@{nobody}/test")).unwrap());
    // It takes a second, and more on a machine that has much else to do; half a minute is what it must not take.
    let soon = Duration::from_secs(15);
    let stamp = stamp("a", 34);
    for said in [
        tokio::time::timeout(soon, fence.seal(&stamp)).await.expect("it is said soon"),
        tokio::time::timeout(soon, fence.transaction(&stamp, async |_| Ok(()))).await.expect("soon"),
        tokio::time::timeout(soon, fence.look("a")).await.expect("soon").map(drop),
        tokio::time::timeout(soon, fence.hazards()).await.expect("soon").map(drop),
        tokio::time::timeout(soon, fence.migrate()).await.expect("soon"),
    ] {
        let error = said.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Failed);
        assert!(error.to_string().contains("Connection refused"), "{error}");
    }
}
