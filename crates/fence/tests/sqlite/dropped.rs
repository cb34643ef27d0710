//! Calls that nobody waits for any more, from every one of their steps on: no connection is left in a transaction.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use leasehold_fence::Receiver as _;
use leasehold_fence::sqlite::Fence;

use super::{insert, open, stamp, tokens, wal, write};

/// Polls a call so often, with time for the driver's thread in between, and drops it. Says whether it had ended by then.
async fn dropped_after<T>(polls: usize, call: impl Future<Output = T>) -> bool {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_ready())).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// The driver's thread is often so fast that several steps are one, so it is tried until it was given up in the middle many times.
#[tokio::test]
async fn a_seal_that_is_given_up_at_any_step_leaves_the_file_free() {
    let file = wal().await;
    let hurried = open(file.directory.path(), |options| options.busy_timeout(Duration::from_secs(20))).await;
    let hurried = Fence::new(hurried);
    let (mut calls, mut given_up) = (0, 0);
    while given_up < 20 {
        assert!(calls < 1_000, "it was given up half way {given_up} times only");
        for polls in 1..1_000 {
            let has_ended = dropped_after(polls, file.fence.seal(&stamp("a", 1))).await;
            calls += 1;
            write(&hurried, &stamp("a", 1), "from another pool")
                .await
                .unwrap_or_else(|error| panic!("given up after {polls} polls: {error}"));
            write(&file.fence, &stamp("a", 1), "from this one")
                .await
                .unwrap_or_else(|error| panic!("given up after {polls} polls: {error}"));
            if has_ended {
                break;
            }
            given_up += 1;
        }
    }
}

#[tokio::test]
async fn a_write_that_is_given_up_at_any_step_is_written_whole_or_not_at_all() {
    let file = wal().await;
    let hurried = open(file.directory.path(), |options| options.busy_timeout(Duration::from_secs(20))).await;
    let hurried = Fence::new(hurried);
    let stamp = &stamp("a", 1);
    for polls in 1..1_000 {
        let before = tokens(&file.pool, "a").await.len();
        let twice = file.fence.transaction(stamp, async |tx| {
            insert(tx, stamp, "one").await?;
            insert(tx, stamp, "two").await?;
            Ok(())
        });
        let has_ended = dropped_after(polls, twice).await;
        write(&hurried, stamp, "after")
            .await
            .unwrap_or_else(|error| panic!("given up after {polls} polls: {error}"));
        let written = tokens(&file.pool, "a").await.len() - before - 1;
        assert!([0, 2].contains(&written), "{written} rows after {polls} polls");
        if has_ended {
            return assert_eq!(written, 2);
        }
    }
    panic!("it does not end");
}

/// The connection is the caller's, who goes on with it: what is written there is committed by itself, as the driver says that it is. The driver's thread
/// is often so fast that several steps are one, so it is tried until it was given up in the middle many times.
#[tokio::test]
async fn an_entry_without_a_transaction_that_is_given_up_at_any_step_begins_none() {
    let file = wal().await;
    let stamp = &stamp("a", 1);
    let (mut written, mut given_up) = (0, 0);
    while given_up < 20 {
        assert!(written < 1_000, "it was given up half way {given_up} times only");
        for polls in 1..1_000 {
            let mut conn = file.pool.acquire().await.unwrap();
            let has_ended = dropped_after(polls, file.fence.enter(&mut conn, stamp)).await;
            insert(&mut conn, stamp, "after").await.unwrap();
            written += 1;
            let seen = tokens(&file.pool, "a").await.len();
            assert_eq!(seen, written, "what came after {polls} polls is not committed");
            if has_ended {
                break;
            }
            given_up += 1;
        }
    }
}
