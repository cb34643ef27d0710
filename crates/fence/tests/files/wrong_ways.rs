//! What looks like a fence and is none, each with the corruption that it lets through, beside the right way.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::files::{contents, fence, highest, stamp};

#[test]
fn wrong_way_check_first_and_write_afterwards() {
    let (directory, fence) = fence();
    fence.seal_blocking(&stamp("a", 33)).unwrap();
    // The old holder looks, and its token is not stale. It stands still, and the new holder writes.
    assert_eq!(fence.look_blocking("a").unwrap().highest.unwrap().token, 33);
    fence.write_blocking(stamp("a", 34), b"34").unwrap();
    std::fs::write(directory.path().join("data"), "33").unwrap();
    assert_eq!(contents(&directory).as_deref(), Some("33"), "the corruption");

    assert_eq!(highest(fence.write_blocking(stamp("a", 33), b"33")), Some(34));
}

#[test]
fn wrong_way_a_lock_on_the_file_that_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (file, new) = (directory.path().join("data"), directory.path().join("new"));
    std::fs::write(&file, "old").unwrap();
    let (first, second) = (File::open(&file).unwrap(), File::open(&file).unwrap());
    flock(&first, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(flock(&second, FlockOperation::NonBlockingLockExclusive).is_err(), "the second one waits");
    std::fs::write(&new, "new").unwrap();
    std::fs::rename(&new, &file).unwrap();
    drop(first);
    flock(&second, FlockOperation::NonBlockingLockExclusive).unwrap();
    let third = File::open(&file).unwrap();
    flock(&third, FlockOperation::NonBlockingLockExclusive).expect("the corruption: two are inside");

    // The sidecar is the same file before and after a write.
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 33), b"33").unwrap();
    let inode =
        || std::os::unix::fs::MetadataExt::ino(&directory.path().join("data.fence").metadata().unwrap());
    let before = inode();
    fence.write_blocking(stamp("a", 34), b"34").unwrap();
    assert_eq!(inode(), before);
}

#[test]
fn wrong_way_whoever_removes_the_sidecar_removes_the_fence() {
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 34), b"34").unwrap();
    std::fs::remove_file(directory.path().join("data.fence")).unwrap();
    fence.write_blocking(stamp("a", 33), b"33").expect("the corruption");
}

#[test]
fn wrong_way_tokens_as_numbers_of_json() {
    let read = |text: &str| serde_json::from_str::<f64>(text).unwrap();
    assert!(
        read("9007199254740992") >= read("9007199254740993"),
        "the corruption: the old token is not smaller"
    );
}
