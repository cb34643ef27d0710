//! What looks like a fence and is none, each with the corruption that it lets through, beside the right way. All on the S3 interface.

use std::sync::Arc;

use leasehold_fence::Receiver as _;
use leasehold_fence::object_store::Fence;
use object_store::aws::{AmazonS3, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion,
};

use crate::object_store::common::{contents, highest, stamp};
use crate::object_store::http::Http;
use crate::object_store::s3::store;

fn s3() -> Arc<AmazonS3> {
    Arc::new(store(&Http::default(), S3ConditionalPut::ETagMatch))
}

async fn text(s3: &AmazonS3, path: &Path) -> String {
    String::from_utf8(s3.get(path).await.unwrap().bytes().await.unwrap().to_vec()).unwrap()
}

/// The server under test does look at conditions; else nothing here would show anything.
#[tokio::test]
async fn the_server_honours_conditions() {
    let (s3, path) = (s3(), Path::from("wrong/honours"));
    let first = s3.put_opts(&path, "1".into(), PutMode::Create.into()).await.unwrap();
    s3.put_opts(&path, "2".into(), PutMode::Create.into()).await.unwrap_err();
    let version = UpdateVersion::from(first);
    s3.put_opts(&path, "2".into(), PutMode::Update(version.clone()).into()).await.unwrap();
    s3.put_opts(&path, "3".into(), PutMode::Update(version).into()).await.unwrap_err();
    assert_eq!(text(&s3, &path).await, "2");
}

#[tokio::test]
async fn wrong_way_a_put_without_condition_after_looking() {
    let (s3, path) = (s3(), Path::from("wrong/looking"));
    s3.put(&path, "token 33".into()).await.unwrap();
    // The old holder looks: its token is not stale. It stands still, and the new holder writes.
    assert_eq!(text(&s3, &path).await, "token 33");
    s3.put(&path, "token 34".into()).await.unwrap();
    s3.put(&path, "token 33, late".into()).await.unwrap();
    assert_eq!(text(&s3, &path).await, "token 33, late", "the corruption");

    let fence = Fence::new(s3, "wrong/looking-right");
    fence.write(stamp("a", 33), "33").await.unwrap();
    fence.look("a").await.unwrap();
    fence.write(stamp("a", 34), "34").await.unwrap();
    assert_eq!(highest(fence.write(stamp("a", 33), "33, late").await), Some(34));
}

/// The entity tag of S3 is a hash of the contents. Two objects that differ in their metadata alone have the same.
#[tokio::test]
async fn wrong_way_the_token_is_in_the_metadata_only() {
    let (s3, path) = (s3(), Path::from("wrong/metadata"));
    let with_token = |token: &'static str, mode: PutMode| {
        let attributes = Attributes::from_iter([(Attribute::Metadata("token".into()), token)]);
        PutOptions { mode, attributes, ..PutOptions::default() }
    };
    s3.put_opts(&path, "report".into(), with_token("33", PutMode::Overwrite)).await.unwrap();
    // The old holder reads its own token, and the tag. It stands still.
    let old = s3.head(&path).await.unwrap();
    // The new holder writes the same contents with its token: a seal.
    s3.put_opts(&path, "report".into(), with_token("34", PutMode::Overwrite)).await.unwrap();
    let new = s3.head(&path).await.unwrap();
    assert_eq!(old.e_tag, new.e_tag, "one tag for two tokens");
    let version = UpdateVersion { e_tag: old.e_tag, version: old.version };
    let late = s3.put_opts(&path, "late report".into(), with_token("33", PutMode::Update(version))).await;
    late.expect("the corruption: the condition is met");
    assert_eq!(text(&s3, &path).await, "late report");

    // A head has its token and its number in its contents, so a seal changes its tag.
    let fence = Fence::new(Arc::clone(&s3) as Arc<dyn object_store::ObjectStore>, "wrong/metadata-right");
    fence.write(stamp("a", 33), "report").await.unwrap();
    let before = s3.head(&Path::from("wrong/metadata-right")).await.unwrap().e_tag;
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_ne!(s3.head(&Path::from("wrong/metadata-right")).await.unwrap().e_tag, before);
    assert_eq!(highest(fence.write(stamp("a", 33), "late report").await), Some(34));
}

#[tokio::test]
async fn wrong_way_whoever_removes_the_head_removes_the_fence() {
    let s3 = s3();
    let fence = Fence::new(Arc::clone(&s3) as Arc<dyn object_store::ObjectStore>, "wrong/removed");
    fence.write(stamp("a", 34), "34").await.unwrap();
    s3.delete(&Path::from("wrong/removed")).await.unwrap();
    fence.write(stamp("a", 33), "33").await.expect("the corruption");
    assert_eq!(contents(&fence).await.as_deref(), Some("33"));
}

/// Removing every body that is not named, whatever its token, takes one from under a writer that is about to name it.
#[tokio::test]
async fn wrong_way_sweeping_bodies_of_the_present_token() {
    use crate::object_store::faulty::{Arrives, Faulty, HEAD, Plan, Said};
    use futures_util::TryStreamExt as _;
    for (careful, stays) in [(false, false), (true, true)] {
        let store = Faulty::default();
        let fence = Fence::new(Arc::new(store.clone()), HEAD);
        fence.write(stamp("a", 33), "33").await.unwrap();
        let (inner, sweeper) = (Arc::clone(&store.inner), fence.clone());
        let named = inner.list(None).try_collect::<Vec<_>>().await.unwrap();
        let sweep = async move {
            if careful {
                sweeper.sweep().await.unwrap();
                return;
            }
            let all = inner.list(None).try_collect::<Vec<_>>().await.unwrap();
            for meta in all.iter().filter(|meta| !named.iter().any(|named| named.location == meta.location)) {
                inner.delete(&meta.location).await.unwrap();
            }
        };
        store.plan(Plan::new(Arrives::Now, Said::Truth).before(sweep));
        fence.write(stamp("a", 33), "again").await.unwrap();
        assert_eq!(fence.read().await.is_ok(), stays, "the corruption: the head names what is gone");
    }
}
