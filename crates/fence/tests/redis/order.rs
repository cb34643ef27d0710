//! Who comes before whom: every order of old and new that a fence is there for.

use std::cell::Cell;

use leasehold_fence::redis::Fence;
use leasehold_fence::{Authority, Counts, Error, KEPT_REFUSALS, NoAuthority, Outcome, Receiver as _, Stamp};
use redis::Value;
use tokio::sync::oneshot;

use crate::redis::common::{ask, fence, get, highest, stamp, url};

#[tokio::test]
async fn a_write_is_made_with_its_replies_and_equal_tokens_pass() {
    let fence = fence().await;
    let key = fence.key("equal", "data");
    for n in 1..=2 {
        let replies = fence.write(stamp("equal", 7), redis::pipe().incr(&key, 1).get(&key)).await.unwrap();
        assert_eq!(replies, [Value::Int(n), Value::BulkString(n.to_string().into_bytes())]);
    }
    let replies = fence.write(stamp("equal", 7), redis::pipe().get("{equal}:missing")).await.unwrap();
    assert_eq!(replies, [Value::Nil]);
    let replies =
        fence.write(stamp("equal", 7), redis::pipe().del(&key).get(&key).set(&key, 1)).await.unwrap();
    assert_eq!(replies, [Value::Int(1), Value::Nil, Value::Okay]);
}

#[tokio::test]
async fn old_looks_new_writes_old_is_refused() {
    let fence = fence().await;
    let key = fence.key("interleaved", "data");
    fence.write(stamp("interleaved", 33), redis::pipe().set(&key, "33")).await.unwrap();
    // The old holder looks, and what it sees is right at that time.
    assert_eq!(fence.look("interleaved").await.unwrap().highest.unwrap().token, 33);
    fence.write(stamp("interleaved", 34), redis::pipe().set(&key, "34")).await.unwrap();
    let late = fence.write(stamp("interleaved", 33), redis::pipe().set(&key, "late")).await;
    assert_eq!(highest(late), Some(34));
    assert_eq!(get(url(), &key).await.as_deref(), Some("34"));
}

#[tokio::test]
async fn a_stale_write_before_the_first_write_is_refused_by_the_seal() {
    let fence = fence().await;
    fence.seal(&stamp("sealed", 34)).await.unwrap();
    let early = fence.write(stamp("sealed", 33), redis::pipe().set("{sealed}:data", "early")).await;
    assert_eq!(highest(early), Some(34));
    assert_eq!(get(url(), "{sealed}:data").await, None);
    assert_eq!(highest(fence.seal(&stamp("sealed", 33)).await), Some(34));
    fence.seal(&stamp("sealed", 34)).await.unwrap();
    fence.write(stamp("sealed", 34), redis::pipe().set("{sealed}:data", "first")).await.unwrap();
}

#[tokio::test]
async fn tokens_are_compared_by_all_their_digits() {
    let fence = fence().await;
    for (nth, tokens) in
        [[9, 10], [(1 << 53), (1 << 53) + 1], [i64::MAX as u64 - 1, i64::MAX as u64]].into_iter().enumerate()
    {
        let name = format!("digits-{nth}");
        let key = fence.key(&name, "data");
        fence.write(stamp(&name, tokens[1]), redis::pipe().set(&key, "new")).await.unwrap();
        let old = fence.write(stamp(&name, tokens[0]), redis::pipe().set(&key, "old")).await;
        assert_eq!(highest(old), Some(tokens[1]), "{tokens:?}");
        assert_eq!(get(url(), &key).await.as_deref(), Some("new"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_stood_still_writes_with_the_token_it_had() {
    let fence = fence().await;
    let (has_looked, looked) = oneshot::channel();
    let (go_on, wait) = oneshot::channel();
    let paused = tokio::spawn({
        let fence = fence.clone();
        async move {
            let guard = stamp("paused", 33);
            fence.write(&guard, redis::pipe().set("{paused}:data", "33")).await.unwrap();
            has_looked.send(()).unwrap();
            wait.await.unwrap();
            fence.write(&guard, redis::pipe().set("{paused}:data", "33 again")).await
        }
    });
    looked.await.unwrap();
    fence.seal(&stamp("paused", 34)).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    assert_eq!(get(url(), "{paused}:data").await.as_deref(), Some("33"));
}

/// Vouches so many times.
struct Lapsing(Cell<u32>);

impl Authority for Lapsing {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        match self.0.get() {
            0 => Err(NoAuthority { name: "lapsing".to_owned(), why: "the lease has ended".to_owned() }),
            left => {
                self.0.set(left - 1);
                Ok(stamp("lapsing", 5))
            }
        }
    }
}

#[tokio::test]
async fn the_authority_is_asked_for_each_write_and_every_end_is_counted_once() {
    let counts = Counts::default();
    let fence = fence().await.counted(&counts);
    let authority = Lapsing(Cell::new(2));
    let mut ends = Vec::new();
    for _ in 0..3 {
        ends.push(Outcome::of(&fence.write(&authority, redis::pipe().incr("{lapsing}:data", 1)).await));
    }
    assert_eq!(ends, [Outcome::Accepted, Outcome::Accepted, Outcome::Lapsed]);
    assert_eq!(get(url(), "{lapsing}:data").await.as_deref(), Some("2"));
    fence.seal(&stamp("lapsing", 6)).await.unwrap();
    fence.seal(&stamp("lapsing", 5)).await.unwrap_err();
    fence.write(stamp("lapsing", 5), redis::pipe().incr("{lapsing}:data", 1)).await.unwrap_err();
    fence.write(stamp("lapsing", 6), &redis::pipe()).await.unwrap_err();
    for (outcome, writes, seals) in [
        (Outcome::Accepted, 2, 1),
        (Outcome::Lapsed, 1, 0),
        (Outcome::Stale, 1, 1),
        (Outcome::Failed, 1, 0),
        (Outcome::Unknown, 0, 0),
    ] {
        let counted = (counts.writes(fence.place(), outcome), counts.seals(fence.place(), outcome));
        assert_eq!(counted, (writes, seals), "{outcome}");
    }
}

#[tokio::test]
async fn what_is_given_up_on_the_way_is_counted_as_unknown() {
    let counts = Counts::default();
    let fence = fence().await.counted(&counts);
    let mut commands = redis::pipe();
    commands.incr("{given-up}:data", 1);
    let mut write = Box::pin(fence.write(stamp("given-up", 5), &commands));
    let stamp = stamp("given-up", 5);
    let mut seal = fence.seal(&stamp);
    std::future::poll_fn(|context| {
        assert!(write.as_mut().poll(context).is_pending() && seal.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    drop((write, seal));
    let unknown =
        (counts.writes(fence.place(), Outcome::Unknown), counts.seals(fence.place(), Outcome::Unknown));
    assert_eq!(unknown, (1, 1));
}

#[tokio::test]
async fn the_last_refusals_are_kept_the_newest_first() {
    let fence = fence().await;
    assert_eq!(fence.look("looked-at").await.unwrap().highest, None);
    fence.seal(&stamp("looked-at", 1000)).await.unwrap();
    for token in 1..=20 {
        highest(fence.seal(&stamp("looked-at", token)).await);
    }
    let seen = fence.look("looked-at").await.unwrap();
    let mark = seen.highest.unwrap();
    assert_eq!((mark.token, mark.holder.as_deref()), (1000, Some("holder-1000")));
    let refusals = seen.refusals.unwrap();
    let tokens: Vec<u64> = refusals.iter().map(|refused| refused.token).collect();
    assert_eq!(tokens, (5..=20).rev().collect::<Vec<u64>>());
    assert_eq!(tokens.len(), KEPT_REFUSALS);
    assert_eq!(refusals[0].holder.as_deref(), Some("holder-20"));
    assert_eq!(refusals[0].highest, 1000);
    let at = refusals[0].at.as_deref().unwrap();
    assert!(at.starts_with("20") && at.len() == 24 && at.ends_with('Z'), "{at}");
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_script_is_given_it_again() {
    let server = leasehold_kit::redis::Server::start_fast().unwrap();
    let url = leasehold_kit::Receiver::url(&server);
    let fence = Fence::open(&url).await.unwrap();
    for n in 1..=2 {
        let _: () = ask(&url, redis::cmd("SCRIPT").arg("FLUSH")).await;
        fence.write(stamp("a", 1), redis::pipe().incr("{a}:n", 1)).await.unwrap();
        assert_eq!(get(&url, "{a}:n").await, Some(n.to_string()));
    }
}

#[tokio::test]
async fn the_place_is_shown_without_the_password() {
    let with_password = url().replace("redis://", "redis://default:secret@");
    // A server without a password takes any.
    let fence = Fence::open(&with_password).await.unwrap();
    assert_eq!(fence.place(), format!("{}0", url()));
    assert!(!format!("{fence:?}").contains("secret"));
}

#[tokio::test]
async fn a_fence_key_of_another_type_is_a_failure_and_not_a_pass() {
    let fence = fence().await;
    let _: () = ask(url(), redis::cmd("SET").arg("{other}:fence").arg("what")).await;
    let error = fence.write(stamp("other", 1), redis::pipe().set("{other}:data", 1)).await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }) && error.to_string().contains("WRONGTYPE"), "{error}");
    assert_eq!(get(url(), "{other}:data").await, None);
}
