//! How watches end.

use std::time::Duration;

use leasehold::core::Revision;
use leasehold::core::protocol::Failure;
use leasehold::{Error, Unreachable};

use super::stage::{Stage, batch, change, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_cannot_be_watched_after_is_refused_by_name() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (after, other) = (Revision::new(5), Revision::new(9));
    for (failure, expected) in [
        (
            Failure::RevisionTooOld { after, oldest: other },
            "changes after revision 5 are not kept any more; the oldest to watch after is 9",
        ),
        (
            Failure::RevisionAhead { after, newest: other },
            "revision 5 is ahead of the newest, 9: it is of another store, or this one was set back",
        ),
    ] {
        let starting = tokio::spawn(store.watch("").after(after).start());
        let conversation = stage.watch().await;
        conversation.fail(failure.clone());
        let error = soon(starting).await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected);
        match (failure, error) {
            (Failure::RevisionTooOld { .. }, Error::RevisionTooOld { after: told, oldest }) => {
                assert_eq!((told, oldest), (after, other));
            }
            (Failure::RevisionAhead { .. }, Error::RevisionAhead { after: told, newest }) => {
                assert_eq!((told, newest), (after, other));
            }
            (_, other) => panic!("{other:?}"),
        }
        conversation.hung_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_falls_behind_gives_what_it_has_and_then_says_so_for_ever() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let starting = tokio::spawn(store.watch("").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    let mut watch = soon(starting).await.unwrap().unwrap();
    conversation.say(8, vec![change(1)], false);
    let (after, oldest) = (Revision::new(8), Revision::new(100));
    conversation.fail(Failure::RevisionTooOld { after, oldest });
    assert_eq!(soon(watch.next()).await.unwrap(), batch(8, &[1]));
    for _ in 0..2 {
        let error = soon(watch.next()).await.unwrap_err();
        assert!(matches!(error, Error::RevisionTooOld { .. }), "{error:?}");
    }
    assert_eq!(watch.revision(), Revision::new(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_without_a_connection_for_as_long_as_its_patience_is_over() {
    let patience = Duration::from_millis(700);
    let mut stage = Stage::new().await;
    let (store, address) = (stage.patient(patience).await, stage.address);
    let starting = tokio::spawn(store.watch("").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    let mut watch = soon(starting).await.unwrap().unwrap();
    let (began, timer) = (leasehold_clock::read(), leasehold_kit::Timer::start());
    stage.stop().await;
    for _ in 0..2 {
        match soon(watch.next()).await.unwrap_err() {
            Error::Unreachable(Unreachable::NoConnection { store, waited, last }) => {
                assert_eq!(store, format!("leasehold://{address}"));
                assert_eq!(waited, patience);
                let last = last.unwrap();
                assert!(last.starts_with(&format!("{address}: ")), "{last}");
            }
            other => panic!("{other:?}"),
        }
    }
    let took = leasehold_clock::read().since(began).greater();
    // But for the time in which others had the processors.
    let worked = timer.took();
    assert!(took >= patience && worked < patience + Duration::from_secs(3), "{worked:?} of {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_nobody_wants_any_more_hangs_up() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let starting = tokio::spawn(store.watch("").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    let watch = soon(starting).await.unwrap().unwrap();
    drop(watch);
    conversation.hung_up().await;
    // So does one that is given up before it has begun.
    let starting = tokio::spawn(store.watch("").start());
    let conversation = stage.watch().await;
    starting.abort();
    conversation.hung_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_without_other_handles_of_its_store() {
    let mut stage = Stage::new().await;
    let starting = tokio::spawn(stage.store().await.watch("").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    let mut watch = soon(starting).await.unwrap().unwrap();
    drop(conversation);
    let conversation = stage.watch().await;
    conversation.begin(7);
    conversation.say(8, vec![change(1)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(8, &[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_is_over_when_its_store_is_closed() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let starting = tokio::spawn(store.watch("").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    let mut watch = soon(starting).await.unwrap().unwrap();
    soon(store.close()).await;
    for _ in 0..2 {
        let error = soon(watch.next()).await.unwrap_err();
        assert!(matches!(&error, Error::Unreachable(_)), "{error:?}");
        assert!(error.to_string().contains("the connection was closed"), "{error}");
    }
    conversation.hung_up().await;
}
