//! Answers that are lost, and the SDK that sends again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold_fence::{Authority, NoAuthority, Outcome, Receiver as _, Stamp};
use tokio::sync::oneshot;

use crate::http::Fault;
use crate::world::{World, stamp};

/// The first was taken and its answer lost. The second has the same request token, so it is told that it was taken.
#[tokio::test]
async fn a_transaction_that_is_sent_twice_is_made_once() {
    let world = World::new().await;
    world.http.next(Fault::AnswerLost);
    world.add_fenced(&stamp("a", 1), "x").await.unwrap();
    assert_eq!(world.tokens("a").await, [1]);
}

/// The first was taken, then a new holder came, then it was sent again: it is not said to be stale, because it was written.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_never_called_stale() {
    for transaction in [true, false] {
        let world = World::new().await;
        let (lost, until) = oneshot::channel();
        world.http.next(Fault::AnswerLostUntil(until));
        let write = tokio::spawn({
            let (world, old) = (world.clone(), stamp("a", 33));
            async move {
                match transaction {
                    true => world.add_fenced(&old, "x").await,
                    false => world.add_to_item(&old, "x").await,
                }
            }
        });
        while world.tokens("a").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let new = stamp("a", 34);
        world.fence().seal(&new).await.unwrap();
        world.item("a").seal(&new).await.unwrap();
        lost.send(()).unwrap();
        let ended = write.await.unwrap();
        match transaction {
            true => ended.unwrap(),
            false => assert_eq!(ended.unwrap_err().outcome(), Outcome::Unknown),
        }
        assert_eq!(world.tokens("a").await, [33]);
    }
}

#[tokio::test]
async fn a_write_without_any_answer_is_unknown_and_a_seal_may_be_repeated() {
    let world = World::new().await;
    for _ in 0..3 {
        world.http.next(Fault::AnswerLost);
    }
    let error = world.add_fenced(&stamp("a", 1), "x").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert_eq!(world.tokens("a").await, [1]);
    world.http.next(Fault::AnswerLost);
    world.fence().seal(&stamp("a", 2)).await.unwrap();
}

/// A caller's condition that the first of two requests made untrue: nobody says that nothing was written.
#[tokio::test]
async fn an_update_that_was_made_is_not_called_failed() {
    let world = World::new().await;
    world.http.next(Fault::AnswerLost);
    let once = world.client.update_item().update_expression("SET body = pk");
    let once = once.condition_expression("attribute_not_exists(body)");
    let error = world.item("a").update(&stamp("a", 1), once).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
}

/// As DynamoDB answers when two transactions meet; the server for developers lets one wait for the other instead.
const CONFLICT: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
    "Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [TransactionConflict, None]",
    "CancellationReasons":[{"Code":"TransactionConflict","Message":"Transaction is ongoing for the item"},{"Code":"None"}]}"#;

/// Says how often it was asked, and no more after `lasts`.
struct Asked {
    times: AtomicU32,
    lasts: u32,
}

impl Authority for Asked {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        match self.times.fetch_add(1, Ordering::SeqCst) < self.lasts {
            true => Ok(stamp("a", 1)),
            false => Err(NoAuthority { name: "a".to_owned(), why: "the lease has expired".to_owned() }),
        }
    }
}

#[tokio::test]
async fn a_conflict_is_tried_again_and_the_authority_is_asked_each_time() {
    for (conflicts, lasts, end, times) in
        [(2, 99, Outcome::Accepted, 3), (5, 99, Outcome::Failed, 5), (2, 1, Outcome::Lapsed, 2)]
    {
        let world = World::new().await;
        for _ in 0..conflicts {
            world.http.next(Fault::Refused(CONFLICT));
        }
        let asked = Asked { times: AtomicU32::new(0), lasts };
        let result = world.fence().transact(&asked, vec![world.add(&stamp("a", 1), "x")]).await;
        assert_eq!(Outcome::of(&result), end, "{result:?}");
        assert_eq!(asked.times.into_inner(), times);
        assert_eq!(world.tokens("a").await.len(), usize::from(end == Outcome::Accepted));
    }
}
