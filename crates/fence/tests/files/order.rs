//! Who comes before whom, what is counted and what is kept.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;

use leasehold_fence::files::Fence;
use leasehold_fence::{Authority, Counts, Error, KEPT_REFUSALS, NoAuthority, Outcome, Receiver as _, Stamp};

use crate::files::{contents, fence, highest, stamp};

#[tokio::test]
async fn old_looks_new_writes_old_is_refused_and_equal_tokens_pass() {
    let (directory, fence) = fence();
    fence.write(stamp("a", 33), "33").await.unwrap();
    fence.write(stamp("a", 33), "33 again").await.unwrap();
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 33);
    fence.write(stamp("a", 34), "34").await.unwrap();
    assert_eq!(highest(fence.write(stamp("a", 33), "late").await), Some(34));
    assert_eq!(contents(&directory).as_deref(), Some("34"));
    // Another name has tokens of its own.
    fence.write(stamp("b", 1), "b").await.unwrap();
}

#[tokio::test]
async fn a_stale_write_before_the_first_write_is_refused_by_the_seal() {
    let (directory, fence) = fence();
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(highest(fence.write(stamp("a", 33), "early").await), Some(34));
    assert_eq!(contents(&directory), None);
    assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
    fence.seal(&stamp("a", 34)).await.unwrap();
    fence.write(stamp("a", 34), "first").await.unwrap();
}

#[tokio::test]
async fn tokens_are_compared_by_all_their_digits() {
    for tokens in [[9, 10], [(1 << 53), (1 << 53) + 1], [i64::MAX as u64 - 1, i64::MAX as u64]] {
        let (directory, fence) = fence();
        fence.write(stamp("a", tokens[1]), "new").await.unwrap();
        assert_eq!(highest(fence.write(stamp("a", tokens[0]), "old").await), Some(tokens[1]));
        assert_eq!(contents(&directory).as_deref(), Some("new"));
        let sidecar = std::fs::read_to_string(directory.path().join("data.fence")).unwrap();
        assert!(sidecar.contains(&format!("\"token\": \"{}\"", tokens[1])), "{sidecar}");
    }
}

#[test]
fn a_thread_that_stood_still_writes_with_the_token_it_had() {
    let (directory, fence) = fence();
    let ((has_written, written), (go_on, wait)) = (mpsc::channel(), mpsc::channel());
    let paused = std::thread::spawn({
        let fence = fence.clone();
        move || {
            let guard = stamp("a", 33);
            fence.write_blocking(&guard, b"33").unwrap();
            has_written.send(()).unwrap();
            wait.recv().unwrap();
            fence.write_blocking(&guard, b"33 again")
        }
    });
    written.recv().unwrap();
    fence.seal_blocking(&stamp("a", 34)).unwrap();
    go_on.send(()).unwrap();
    assert_eq!(highest(paused.join().unwrap()), Some(34));
    assert_eq!(contents(&directory).as_deref(), Some("33"));
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease has ended".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let (directory, fence) = fence();
    let counts = Counts::default();
    let fence = fence.counted(&counts);
    fence.write(stamp("a", 5), "5").await.unwrap();
    fence.write_blocking(stamp("a", 5), b"5").unwrap();
    fence.write(Lapsed, "no").await.unwrap_err();
    fence.write_blocking(Lapsed, b"no").unwrap_err();
    fence.seal(&stamp("a", 6)).await.unwrap();
    fence.seal(&stamp("a", 5)).await.unwrap_err();
    fence.write(stamp("a", 5), "5").await.unwrap_err();
    let panics = |_| -> Vec<u8> { panic!("planned") };
    let error = fence.update(stamp("a", 6), panics).await.unwrap_err();
    assert!(matches!(error, Error::Unknown { .. }), "{error}");
    assert_eq!(contents(&directory).as_deref(), Some("5"));
    let (place, directory) = (fence.place().to_owned(), directory.path().to_owned());
    std::fs::remove_dir_all(directory).unwrap();
    let error = fence.write(stamp("a", 6), "no").await.unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    for (outcome, writes, seals) in [
        (Outcome::Accepted, 2, 1),
        (Outcome::Lapsed, 2, 0),
        (Outcome::Stale, 1, 1),
        (Outcome::Failed, 1, 0),
        (Outcome::Unknown, 1, 0),
    ] {
        assert_eq!(
            (counts.writes(&place, outcome), counts.seals(&place, outcome)),
            (writes, seals),
            "{outcome}"
        );
    }
}

#[tokio::test]
async fn the_last_refusals_are_kept_the_newest_first() {
    let (_directory, fence) = fence();
    assert_eq!(fence.look("a").await.unwrap().highest, None);
    fence.seal(&stamp("a", 1000)).await.unwrap();
    for token in 1..=20 {
        highest(fence.seal(&stamp("a", token)).await);
    }
    let seen = fence.look("a").await.unwrap();
    let mark = seen.highest.unwrap();
    assert_eq!((mark.token, mark.holder.as_deref()), (1000, Some("holder-1000")));
    let refusals = seen.refusals.unwrap();
    let tokens: Vec<u64> = refusals.iter().map(|refused| refused.token).collect();
    assert_eq!(tokens, (5..=20).rev().collect::<Vec<u64>>());
    assert_eq!((tokens.len(), refusals[0].highest), (KEPT_REFUSALS, 1000));
    assert_eq!(refusals[0].holder.as_deref(), Some("holder-20"));
    let at = refusals[0].at.as_deref().unwrap();
    assert!(at.starts_with("20") && at.len() == 24 && at.ends_with('Z'), "{at}");
}

#[test]
fn all_ways_to_a_file_lead_to_one_sidecar_and_its_mode_stays() {
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 34), b"34").unwrap();
    let file = directory.path().join("data");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("data", &link).unwrap();
    let other = Fence::new(&link).unwrap();
    assert_eq!(other.place(), fence.place());
    assert_eq!(highest(other.write_blocking(stamp("a", 33), b"33")), Some(34));
    other.write_blocking(stamp("a", 34), b"34 again").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "the link was replaced");
    assert_eq!(contents(&directory).as_deref(), Some("34 again"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    std::os::unix::fs::symlink("nowhere", directory.path().join("dangling")).unwrap();
    assert!(Fence::new(directory.path().join("dangling")).is_err());
    assert!(Fence::new(directory.path()).is_err());
    assert!(Fence::new(directory.path().join("no/such")).is_err());
}

#[test]
fn a_damaged_sidecar_refuses_everything() {
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 34), b"34").unwrap();
    std::fs::write(directory.path().join("data.fence"), "rubbish").unwrap();
    for result in [fence.write_blocking(stamp("a", 35), b"35"), fence.seal_blocking(&stamp("a", 35))] {
        let Err(Error::Failed { source, .. }) = result else { panic!("{result:?}") };
        assert!(
            source.to_string().contains("has no good record, so the highest token is not known"),
            "{source}"
        );
    }
    assert_eq!(contents(&directory).as_deref(), Some("34"));
}
