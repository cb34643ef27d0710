//! Watches on directories: changes of real leases, across a change of the process that serves.

use std::time::Duration;

use leasehold::{Change, Ending, Error, Revision, Token, Watch};

use super::place::{Place, ttl};

async fn next(watch: &mut Watch) -> (Revision, Change) {
    let next = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    let mut batch = next.expect("a change is seen soon").unwrap();
    assert_eq!(batch.changes.len(), 1, "{batch:?}");
    (batch.revision, batch.changes.pop().unwrap())
}

fn granted(change: &Change) -> (&str, Token) {
    match change {
        Change::Granted { grant, .. } => (grant.resource.as_str(), grant.token),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_the_changes_under_its_prefix_and_can_be_resumed() {
    let place = Place::in_memory();
    let store = place.store().await;
    let before = store.revision().await.unwrap();
    let mut watch = store.watch("jobs/").await.unwrap();
    assert!(watch.revision() >= before);
    let session = store.session_with(&ttl(10)).await.unwrap();
    let other = session.acquire("other").await.unwrap();
    let lease = session.acquire("jobs/a").value("here").await.unwrap();
    let token = lease.granted().token;
    lease.release().await.unwrap();
    other.release().await.unwrap();
    let (first, change) = next(&mut watch).await;
    assert_eq!(granted(&change), ("jobs/a", token));
    assert!(matches!(&change, Change::Granted { value: Some(value), .. } if value.as_bytes() == b"here"));
    assert_eq!(watch.revision(), first);
    let (second, change) = next(&mut watch).await;
    assert!(second > first);
    assert!(matches!(change, Change::Ended { token: ended, how: Ending::Released, .. } if ended == token));

    let mut again = store.watch("jobs/").after(before).await.unwrap();
    assert_eq!(next(&mut again).await.0, first);
    let mut rest = store.watch("jobs/").after(first).await.unwrap();
    assert_eq!(next(&mut rest).await.0, second);

    let ahead = Revision::new(second.get() + 1_000_000);
    let error = store.watch("jobs/").after(ahead).await.unwrap_err();
    assert!(matches!(error, Error::RevisionAhead { after, .. } if after == ahead), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_misses_nothing_when_another_process_takes_over() {
    let place = Place::in_memory();
    let serving = place.store().await;
    let store = place.store().await;
    let mut watch = store.watch("").await.unwrap();
    let session = store.session_with(&ttl(10)).await.unwrap();
    let first = session.acquire("first").await.unwrap();
    assert_eq!(granted(&next(&mut watch).await.1), ("first", first.granted().token));
    serving.close().await;
    // Whether the watch or the session comes back first does not matter.
    let second = session.acquire("second").await.unwrap();
    let third = session.acquire("third").await.unwrap();
    assert_eq!(granted(&next(&mut watch).await.1), ("second", second.granted().token));
    assert_eq!(granted(&next(&mut watch).await.1), ("third", third.granted().token));
    // A store that serves itself is closed without waiting for its own watch.
    let closing = tokio::time::timeout(Duration::from_secs(5), store.close());
    closing.await.expect("nothing waits for the watch");
    let error = loop {
        match watch.next().await {
            // What the watch still saw of the leases that ended with the session.
            Ok(batch) => assert!(batch.changes.iter().all(is_session_end), "{batch:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
}

fn is_session_end(change: &Change) -> bool {
    matches!(change, Change::Ended { how: Ending::SessionClosed, .. })
}
