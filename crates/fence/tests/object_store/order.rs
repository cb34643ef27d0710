//! Who comes before whom, on the S3 interface; stores that cannot do it; what is counted, looked at and swept.

use std::sync::Arc;

use leasehold_fence::object_store::Fence;
use leasehold_fence::{Authority, Counts, Error, NoAuthority, Outcome, Receiver as _, Stamp};
use leasehold_kit::Receiver as _;
use object_store::aws::S3ConditionalPut;
use object_store::local::LocalFileSystem;
use tokio::sync::oneshot;

use crate::object_store::common::{contents, failed, highest, stamp};
use crate::object_store::faulty::Faulty;
use crate::object_store::http::Http;
use crate::object_store::s3::{BUCKET, store, store_at};

fn fence(path: &str) -> Fence {
    Fence::new(Arc::new(store(&Http::default(), S3ConditionalPut::ETagMatch)), path)
}

#[tokio::test]
async fn old_looks_new_writes_old_is_refused_and_equal_tokens_pass() {
    let fence = fence("order/interleaved");
    assert_eq!(fence.read().await.unwrap(), None);
    fence.write(stamp("a", 33), "33").await.unwrap();
    fence.write(stamp("a", 33), "33 again").await.unwrap();
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 33);
    fence.write(stamp("a", 34), "34").await.unwrap();
    assert_eq!(highest(fence.write(stamp("a", 33), "late").await), Some(34));
    let object = fence.read().await.unwrap().unwrap();
    assert_eq!((&object.contents[..], object.token, object.sequence), (&b"34"[..], 34, 3));
}

#[tokio::test]
async fn a_stale_write_before_the_first_write_is_refused_by_the_seal() {
    let fence = fence("order/sealed");
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(highest(fence.write(stamp("a", 33), "early").await), Some(34));
    assert_eq!(fence.read().await.unwrap(), None);
    assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
    fence.seal(&stamp("a", 34)).await.unwrap();
    fence.write(stamp("a", 34), "first").await.unwrap();
    fence.seal(&stamp("a", 35)).await.unwrap();
    assert_eq!(contents(&fence).await.as_deref(), Some("first"), "a seal keeps the contents");
}

#[tokio::test]
async fn tokens_are_compared_by_all_their_digits() {
    for (nth, tokens) in
        [[9, 10], [(1 << 53), (1 << 53) + 1], [i64::MAX as u64 - 1, i64::MAX as u64]].into_iter().enumerate()
    {
        let fence = fence(&format!("order/digits-{nth}"));
        fence.write(stamp("a", tokens[1]), "new").await.unwrap();
        assert_eq!(highest(fence.write(stamp("a", tokens[0]), "old").await), Some(tokens[1]));
        assert_eq!(contents(&fence).await.as_deref(), Some("new"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_stood_still_writes_with_the_token_it_had() {
    let fence = fence("order/paused");
    let (has_written, written) = oneshot::channel();
    let (go_on, wait) = oneshot::channel();
    let paused = tokio::spawn({
        let fence = fence.clone();
        async move {
            let guard = stamp("a", 33);
            fence.write(&guard, "33").await.unwrap();
            has_written.send(()).unwrap();
            wait.await.unwrap();
            fence.write(&guard, "33 again").await
        }
    });
    written.await.unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    go_on.send(()).unwrap();
    assert_eq!(highest(paused.await.unwrap()), Some(34));
    assert_eq!(contents(&fence).await.as_deref(), Some("33"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_at_once_lose_nothing() {
    let fence = fence("order/updates");
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let fence = fence.clone();
        tasks.spawn(async move {
            for _ in 0..5 {
                let add = |old: Option<bytes::Bytes>| {
                    let old = old.map_or(0, |old| std::str::from_utf8(&old).unwrap().parse::<u32>().unwrap());
                    (old + 1).to_string().into()
                };
                fence.update(stamp("a", 33), add).await.unwrap();
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(contents(&fence).await.as_deref(), Some("20"));
}

#[tokio::test]
async fn a_store_without_conditional_puts_is_refused_with_words_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let fence = Fence::new(Arc::new(local), "data");
    for result in [fence.write(stamp("a", 33), "33").await, fence.seal(&stamp("a", 33)).await] {
        let said = failed(result);
        assert!(said.contains("has no conditional puts, so nothing can be fenced there"), "{said}");
    }
    assert!(!directory.path().join("data").exists());

    let s3 = store(&Http::default(), S3ConditionalPut::Disabled);
    let said = failed(Fence::new(Arc::new(s3), "order/disabled").write(stamp("a", 33), "33").await);
    assert!(said.contains("has no conditional puts"), "{said}");

    let careless = Faulty::careless();
    let said = failed(Fence::new(Arc::new(careless), "a").write(stamp("a", 33), "33").await);
    assert_eq!(said, "Faulty ignores the conditions of a put, so nothing can be fenced there");
}

#[tokio::test]
async fn one_object_has_one_fence_name_and_a_head_is_a_head() {
    let fence = fence("order/named");
    fence.write(stamp("a", 33), "33").await.unwrap();
    let said = failed(fence.write(stamp("b", 99), "b").await);
    assert_eq!(said, "it is fenced under a, not under b; one object has one fence name");
    assert_eq!(fence.look("b").await.unwrap().highest, None);
    assert_eq!(contents(&fence).await.as_deref(), Some("33"));

    let s3 = Arc::new(store(&Http::default(), S3ConditionalPut::ETagMatch));
    let path = object_store::path::Path::from("order/taken");
    object_store::ObjectStoreExt::put(&*s3, &path, "something else".into()).await.unwrap();
    let said = failed(Fence::new(s3, "order/taken").write(stamp("a", 33), "33").await);
    assert!(said.starts_with("what lies there is no head"), "{said}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_a_failure_and_one_that_comes_back_empty_has_forgotten() {
    let mut server = leasehold_kit::s3::Server::start().unwrap();
    server.make_bucket(BUCKET).unwrap();
    let s3 = store_at(&server.url(), &Http::default(), S3ConditionalPut::ETagMatch);
    let fence = Fence::new(Arc::new(s3), "gone");
    fence.write(stamp("a", 34), "34").await.unwrap();
    server.kill().unwrap();
    let error = fence.write(stamp("a", 34), "after").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    // This server keeps nothing, unlike those it stands for. A fence does not outlive its head.
    server.restart().unwrap();
    server.make_bucket(BUCKET).unwrap();
    assert_eq!(fence.look("a").await.unwrap().highest, None);
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease has ended".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once_and_the_holder_is_shown() {
    let counts = Counts::default();
    let fence = fence("order/counted").counted(&counts);
    fence.write(stamp("a", 5), "5").await.unwrap();
    fence.update(stamp("a", 5), |_| "5".into()).await.unwrap();
    fence.write(Lapsed, "no").await.unwrap_err();
    fence.update(Lapsed, |_| panic!("nobody may act")).await.unwrap_err();
    fence.seal(&stamp("a", 6)).await.unwrap();
    fence.seal(&stamp("a", 5)).await.unwrap_err();
    fence.write(stamp("a", 5), "5").await.unwrap_err();
    fence.write(stamp("b", 5), "5").await.unwrap_err();
    for (outcome, writes, seals) in [
        (Outcome::Accepted, 2, 1),
        (Outcome::Lapsed, 2, 0),
        (Outcome::Stale, 1, 1),
        (Outcome::Failed, 1, 0),
        (Outcome::Unknown, 0, 0),
    ] {
        let counted = (counts.writes(fence.place(), outcome), counts.seals(fence.place(), outcome));
        assert_eq!(counted, (writes, seals), "{outcome}");
    }
    let seen = fence.look("a").await.unwrap();
    let mark = seen.highest.unwrap();
    assert_eq!((mark.token, mark.holder.as_deref(), seen.refusals), (6, Some("holder-6"), None));
    assert_eq!(fence.place(), "AmazonS3(fenced)/order/counted");
}

#[tokio::test]
async fn a_sweep_removes_what_no_head_will_ever_name() {
    let fence = fence("order/swept");
    assert_eq!(fence.sweep().await.unwrap(), 0);
    for n in 0..3 {
        fence.write(stamp("a", 33), format!("33 {n}")).await.unwrap();
    }
    assert_eq!(fence.sweep().await.unwrap(), 0, "all are of the present token");
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(fence.sweep().await.unwrap(), 2, "the head names one of the old ones");
    assert_eq!(contents(&fence).await.as_deref(), Some("33 2"));
    fence.write(stamp("a", 34), "34").await.unwrap();
    assert_eq!(fence.sweep().await.unwrap(), 1);
    assert_eq!(contents(&fence).await.as_deref(), Some("34"));
}
