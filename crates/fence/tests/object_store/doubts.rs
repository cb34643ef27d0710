//! Puts whose answer is lost, late, or says less than it seems to: what was written is what is said.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use leasehold_fence::object_store::Fence;
use leasehold_fence::{Counts, Error, Outcome, Receiver as _};
use object_store::aws::S3ConditionalPut;

use crate::object_store::common::{contents, highest, stamp};
use crate::object_store::faulty::{Arrives, Faulty, HEAD, Plan, Said};
use crate::object_store::http::{Answer, Http};
use crate::object_store::s3::store;

/// A store with a head of token 33, the fence over it, and one that no fault comes between.
async fn world() -> (Faulty, Fence, Fence) {
    let store = Faulty::default();
    let fence = Fence::new(Arc::new(store.clone()), HEAD);
    let other = Fence::new(Arc::clone(&store.inner) as Arc<dyn object_store::ObjectStore>, HEAD);
    fence.write(stamp("a", 33), "33").await.unwrap();
    (store, fence, other)
}

async fn sequence(fence: &Fence) -> u64 {
    fence.read().await.unwrap().unwrap().sequence
}

#[tokio::test]
async fn old_reads_the_head_new_seals_old_puts_and_is_refused() {
    let (store, fence, other) = world().await;
    let new = other.clone();
    store.plan(
        Plan::new(Arrives::Now, Said::Truth).before(async move { new.seal(&stamp("a", 34)).await.unwrap() }),
    );
    assert_eq!(highest(fence.write(stamp("a", 33), "late").await), Some(34));
    assert_eq!(contents(&other).await.as_deref(), Some("33"));
}

#[tokio::test]
async fn a_lost_answer_is_looked_up_and_nothing_is_written_twice() {
    let (store, fence, other) = world().await;
    store.plan(Plan::new(Arrives::Now, Said::Nothing));
    fence.write(stamp("a", 33), "again").await.unwrap();
    assert_eq!((contents(&other).await.as_deref(), sequence(&other).await), (Some("again"), 2));
    store.plan(Plan::new(Arrives::Now, Said::Nothing));
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!((contents(&other).await.as_deref(), sequence(&other).await), (Some("again"), 3));
}

#[tokio::test]
async fn a_write_that_was_made_is_accepted_although_a_newer_holder_came_after_it() {
    for said in [Said::Nothing, Said::Refused] {
        let (store, fence, other) = world().await;
        let new = other.clone();
        let after = async move {
            for n in 0..10 {
                new.write(stamp("a", 34), format!("34 {n}")).await.unwrap();
            }
        };
        store.plan(Plan::new(Arrives::Now, said).after(after));
        fence.write(stamp("a", 33), "33 again").await.unwrap();
        assert_eq!(contents(&other).await.as_deref(), Some("34 9"));
    }
}

#[tokio::test]
async fn a_refusal_is_no_proof_because_clients_send_twice() {
    let (store, fence, other) = world().await;
    store.plan(Plan::new(Arrives::Now, Said::Refused));
    fence.write(stamp("a", 33), "again").await.unwrap();
    assert_eq!((contents(&other).await.as_deref(), sequence(&other).await), (Some("again"), 2));
}

#[tokio::test]
async fn a_put_that_comes_late_does_nothing_any_more() {
    let (store, fence, other) = world().await;
    store.plan(Plan::new(Arrives::Later, Said::Nothing));
    fence.write(stamp("a", 33), "again").await.unwrap();
    fence.write(stamp("a", 34), "new").await.unwrap();
    let late = store.deliver().await;
    assert!(matches!(late[..], [Err(object_store::Error::Precondition { .. })]), "{late:?}");
    assert_eq!((contents(&other).await.as_deref(), sequence(&other).await), (Some("new"), 3));
}

#[tokio::test]
async fn a_late_put_that_may_still_arrive_is_unknown_and_not_failed() {
    let (store, fence, other) = world().await;
    for _ in 0..3 {
        store.plan(Plan::new(Arrives::Later, Said::Nothing));
    }
    let counts = Counts::default();
    let fence = fence.counted(&counts);
    let error = fence.write(stamp("a", 33), "again").await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert_eq!(counts.writes(fence.place(), Outcome::Unknown), 1);
    assert_eq!(contents(&other).await.as_deref(), Some("33"));
    // And it does arrive, once.
    let late = store.deliver().await;
    assert_eq!(late.iter().filter(|put| put.is_ok()).count(), 1);
    assert_eq!((contents(&other).await.as_deref(), sequence(&other).await), (Some("again"), 2));
}

#[tokio::test]
async fn a_lost_answer_and_a_store_that_cannot_be_read_is_unknown() {
    let (store, fence, other) = world().await;
    store.deaf.store(0, Ordering::SeqCst);
    let deaf = Arc::clone(&store.deaf);
    let after = async move { deaf.store(100, Ordering::SeqCst) };
    store.plan(Plan::new(Arrives::Now, Said::Nothing).after(after));
    let error = fence.write(stamp("a", 33), "again").await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert_eq!(contents(&other).await.as_deref(), Some("again"));
    // Before anything was sent it is certain.
    let error = fence.write(stamp("a", 33), "more").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[tokio::test]
async fn a_lost_answer_behind_more_heads_than_are_listed_is_unknown() {
    for (heads, known) in [(63, true), (64, false)] {
        let (store, fence, other) = world().await;
        let new = other.clone();
        let after = async move {
            for n in 0..heads {
                new.write(stamp("a", 34), format!("{n}")).await.unwrap();
            }
        };
        store.plan(Plan::new(Arrives::Now, Said::Nothing).after(after));
        let result = fence.write(stamp("a", 33), "again").await;
        let right = if known { result.is_ok() } else { matches!(result, Err(Error::Unknown { .. })) };
        assert!(right, "{heads}: {result:?}");
    }
}

#[tokio::test]
async fn a_put_that_lost_against_others_is_tried_again_until_it_is_left_to_them() {
    let (store, fence, other) = world().await;
    let race = |times: usize| {
        for n in 0..times {
            let new = other.clone();
            let before = async move { new.write(stamp("a", 33), format!("other {n}")).await.unwrap() };
            store.plan(Plan::new(Arrives::Now, Said::Truth).before(before));
        }
    };
    race(31);
    fence.write(stamp("a", 33), "at last").await.unwrap();
    assert_eq!(contents(&other).await.as_deref(), Some("at last"));
    race(32);
    let error = fence.write(stamp("a", 33), "never").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert!(error.to_string().contains("others have put heads 32 times in between; try again"), "{error}");
    assert_eq!(contents(&other).await.as_deref(), Some("other 31"));
}

#[tokio::test]
async fn a_writer_that_dies_between_body_and_head_leaves_only_what_is_swept() {
    let (store, fence, other) = world().await;
    store.plan(Plan::new(Arrives::Never, Said::Nothing).before(std::future::pending()));
    let dying = tokio::spawn({
        let fence = fence.clone();
        async move { fence.write(stamp("a", 33), "half").await }
    });
    while bodies(&store).await < 2 {
        tokio::task::yield_now().await;
    }
    dying.abort();
    assert_eq!(contents(&other).await.as_deref(), Some("33"));
    // The token is the present one: somebody may be about to name it.
    assert_eq!(other.sweep().await.unwrap(), 0);
    other.write(stamp("a", 34), "34").await.unwrap();
    assert_eq!(other.sweep().await.unwrap(), 2);
    assert_eq!((contents(&other).await.as_deref(), bodies(&store).await), (Some("34"), 1));
}

/// How many bodies there are.
async fn bodies(store: &Faulty) -> usize {
    use futures_util::TryStreamExt as _;
    let all: Vec<_> = object_store::ObjectStore::list(store, None).try_collect().await.unwrap();
    all.iter().filter(|meta| meta.location.as_ref().starts_with("a.d/0")).count()
}

#[tokio::test]
async fn over_http_a_server_that_fails_behind_the_write_is_asked_twice_and_told_once() {
    for (nth, answer) in [Answer::Error, Answer::Lost].into_iter().enumerate() {
        let http = Http::default();
        let fence = Fence::new(Arc::new(store(&http, S3ConditionalPut::ETagMatch)), format!("doubts/{nth}"));
        fence.write(stamp("a", 33), "33").await.unwrap();
        http.answers.lock().unwrap().push_back(answer);
        fence.write(stamp("a", 33), "again").await.unwrap();
        assert!(http.answers.lock().unwrap().is_empty(), "the fault was not met");
        assert_eq!(
            (contents(&fence).await.as_deref(), sequence(&fence).await),
            (Some("again"), 2),
            "{answer:?}"
        );
    }
}

/// The client sends again without fetching another key, so the second of two may be turned away though the first was taken.
#[tokio::test]
async fn over_http_a_second_request_that_is_turned_away_says_nothing_of_the_first() {
    let http = Http::default();
    let fence = Fence::new(Arc::new(store(&http, S3ConditionalPut::ETagMatch)), "doubts/forbidden");
    fence.write(stamp("a", 33), "33").await.unwrap();
    http.answers.lock().unwrap().extend([Answer::Error, Answer::Forbidden]);
    fence.write(stamp("a", 33), "again").await.unwrap();
    assert!(http.answers.lock().unwrap().is_empty(), "the faults were not met");
    assert_eq!((contents(&fence).await.as_deref(), sequence(&fence).await), (Some("again"), 2));
    // One that was the first is certain.
    http.answers.lock().unwrap().push_back(Answer::Forbidden);
    let error = fence.write(stamp("a", 33), "more").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert_eq!((contents(&fence).await.as_deref(), sequence(&fence).await), (Some("again"), 2));
}
