//! Calls to a server that does not answer any more: each gives up in its time and says what is known.

use std::time::Duration;

use leasehold::{Error, Label, Reason, ResourceName, Token, Unreachable};

use super::impostor::Impostor;
use super::place::{Place, timed, ttl};

const PATIENCE: Duration = Duration::from_secs(2);
/// The patience, the time in which silence is noticed, and naps.
const LIMIT: Duration = Duration::from_secs(6);

/// A command that was sent and not answered is neither refused nor failed, whatever happens to the directory afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_and_never_answered_is_unknown_when_the_directory_disappears() {
    let place = Place::new();
    let impostor = Impostor::new(&place.path());
    let store = place.impatient(PATIENCE).await;
    let session = store.session_with(&ttl(2)).await.unwrap();
    let acquiring = timed(session.acquire("job").into_future());
    let vanishing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::fs::remove_dir_all(place.path()).unwrap();
        impostor.fall_silent();
    };
    let ((acquired, took), ()) = tokio::join!(acquiring, vanishing);
    assert!(matches!(acquired, Err(Error::OutcomeUnknown)), "{acquired:?}");
    assert!(took < LIMIT, "{took:?}");
    // It was submitted after that and never sent.
    let (acquired, took) = timed(session.acquire("another").into_future()).await;
    assert!(matches!(acquired, Err(Error::Unreachable(_))), "{acquired:?}");
    assert!(took < LIMIT, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_store_does_not_wait_for_ever_for_a_silent_server() {
    let place = Place::new();
    let impostor = Impostor::new(&place.path());
    let store = place.impatient(PATIENCE).await;
    let session = store.session_with(&ttl(10)).await.unwrap();
    let clone = store.clone();
    let ((closed, ()), took) = timed(async {
        // The close of the session is swallowed; the server is well otherwise.
        tokio::join!(session.close(), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            store.close().await;
        })
    })
    .await;
    assert!(matches!(closed, Err(Error::OutcomeUnknown)), "{closed:?}");
    assert!(took >= PATIENCE && took < LIMIT, "{took:?}");
    assert!(matches!(clone.status().await, Err(Error::Unreachable(_))));
    assert!(impostor.holds_the_lock());
}

/// Without a session nobody else notices that the server is silent.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_a_silent_server_ends_and_names_its_process() {
    let place = Place::new();
    let impostor = Impostor::new(&place.path());
    let store = place.impatient(PATIENCE).await;
    assert_eq!(store.status().await.unwrap().version, "0");
    impostor.fall_silent();
    let (asked, took) = timed(store.status()).await;
    match asked {
        Err(Error::Unreachable(Unreachable::ServerSilent { pid, .. })) => assert_eq!(pid, std::process::id()),
        other => panic!("{other:?}"),
    }
    assert!(took < LIMIT, "{took:?}");
}

/// An operator's command is not repeated: whether it took effect is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoke_that_nobody_answers_is_unknown() {
    let place = Place::new();
    let _impostor = Impostor::new(&place.path());
    let store = place.impatient(PATIENCE).await;
    let (name, by) = (ResourceName::new("job").unwrap(), Label::new("me").unwrap());
    let reason = Reason::new("to see").unwrap();
    let (revoked, took) = timed(store.revoke(&name, Token::from_u64(1), by, reason, false)).await;
    assert!(matches!(revoked, Err(Error::OutcomeUnknown)), "{revoked:?}");
    assert!(took < LIMIT, "{took:?}");
}
