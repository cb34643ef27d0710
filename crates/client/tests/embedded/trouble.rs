//! Directories that cannot be used, or go away under a store.

use std::time::Duration;

use leasehold::{Error, LeaseState, Store, Unreachable};

use super::place::{Place, timed, ttl};

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_used_is_said_at_once_and_why() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let foreign = root.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("lock"), "something else").unwrap();
    let newer = root.path().join("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(newer.join("lock"), "leasehold 9 embedded founded=yes pid=1\n").unwrap();
    for (path, word) in [
        (file, "file"),
        (foreign, "not the lock file of a leasehold directory"),
        (newer, "version 9"),
        ("/proc/leasehold".into(), "0x9fa0"),
    ] {
        let url = format!("dir:{}", path.display());
        let (connected, took) = timed(Store::connect(&url)).await;
        match connected {
            Err(Error::Unreachable(Unreachable::Directory(why))) => assert!(why.contains(word), "{why}"),
            other => panic!("{url}: {other:?}"),
        }
        assert!(took < Duration::from_secs(5), "{url}: {took:?}");
    }
}

/// A directory that was used is not made anew under a store that lives: its tokens would begin again at one.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_gone_is_not_made_again() {
    let place = Place::new();
    let store = place.impatient(Duration::from_secs(1)).await;
    let session = store.session_with(&ttl(2)).await.unwrap();
    let lease = session.acquire("job").await.unwrap();
    std::fs::remove_dir_all(place.path()).unwrap();
    let (read, took) = timed(async {
        loop {
            // Until it notices, the server goes on with the files it has open.
            if let Err(error) = store.status().await {
                return error;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    println!("after {took:?}: {read}");
    assert!(matches!(&read, Error::Unreachable(Unreachable::Directory(_))), "{read:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(!place.path().exists());
    let acquired = session.acquire("another").await.unwrap_err();
    assert!(matches!(acquired, Error::Unreachable(_)), "never sent, so it has no effect: {acquired:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(lease.state(), LeaseState::Lapsed { .. }), "{:?}", lease.state());
    let ((), took) = timed(store.close()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(!place.path().exists());
}
