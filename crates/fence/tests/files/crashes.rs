//! Processes that die or stand still in the middle of a write.

use std::time::Duration;

use leasehold_fence::files::Fence;
use leasehold_fence::{Error, Receiver as _};
use tokio::time::sleep;

use crate::files::{child, contents, fence, highest, stamp};

/// Ends a child at every call of every kind that a write makes. Gives back how many there were.
fn killed_at_every_step(before: Option<&str>) -> usize {
    let of_kind = |step: &&str| (1..100).take_while(|nth| killed_at(before, (step, *nth))).count();
    child::STEPS.iter().map(of_kind).sum()
}

/// Whether there was such a call.
fn killed_at(before: Option<&str>, step: (&str, usize)) -> bool {
    let (directory, fence) = fence();
    if let Some(before) = before {
        fence.write_blocking(stamp("a", 33), before.as_bytes()).unwrap();
    }
    let ended = child::command(&directory.path().join("data"), 34, "KILL", step).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let found = contents(&directory);
    let token = fence.look_blocking("a").unwrap().highest.map(|mark| mark.token);
    if said.contains("ended: ") {
        assert!(said.contains("ended: accepted"), "{said}");
        assert_eq!((found.as_deref(), token), (Some("34"), Some(34)));
        return false;
    }
    // Old and whole, or new and whole; and what is new is never behind an old token.
    assert!(found.as_deref() == before || found.as_deref() == Some("34"), "{found:?} after {step:?}");
    assert!(token == before.map(|_| 33) || token == Some(34), "{token:?} after {step:?}");
    if found.as_deref() == Some("34") {
        assert_eq!(token, Some(34), "the file changed before the token, at {step:?}");
    }
    // Whoever comes next finds everything in order.
    fence.seal_blocking(&stamp("a", 34)).unwrap();
    assert_eq!(highest(fence.write_blocking(stamp("a", 33), b"late")), Some(34), "after {step:?}");
    assert_eq!(contents(&directory), found, "after {step:?}");
    fence.write_blocking(stamp("a", 34), b"again").unwrap();
    assert_eq!(contents(&directory).as_deref(), Some("again"));
    let of_the_test = ["child.pid", "strace.log", "data", "data.fence"];
    let left = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| !of_the_test.iter().any(|known| name == known)).collect();
    assert!(left.is_empty(), "{left:?} is left after {step:?}");
    true
}

#[test]
fn a_writer_that_is_killed_at_any_step_leaves_the_old_file_or_the_new_one_and_the_token() {
    let steps = killed_at_every_step(Some("33"));
    println!("files: killed at each of {steps} steps of a write");
    assert!(steps >= 8, "{steps}");
}

#[test]
fn a_first_writer_that_is_killed_at_any_step_leaves_a_good_sidecar_or_none() {
    let steps = killed_at_every_step(None);
    println!("files: killed at each of {steps} steps of a first write");
    assert!(steps >= 10, "{steps}");
}

#[tokio::test]
async fn a_process_that_was_stopped_before_the_lock_is_refused_when_it_goes_on() {
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 33), b"before").unwrap();
    let (child, pid) = stopped(&directory, "openat").await;
    fence.seal(&stamp("a", 34)).await.unwrap();
    signal(pid, "CONT");
    let said = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("ended: stale"), "{said:?}");
    assert_eq!(contents(&directory).as_deref(), Some("before"));
}

#[tokio::test]
async fn a_process_that_stands_still_inside_keeps_others_out_and_is_named() {
    let (directory, fence) = fence();
    fence.write_blocking(stamp("a", 33), b"before").unwrap();
    let (mut child, pid) = stopped(&directory, "fsync").await;
    // It has made the new file and synced it. The rename comes next.
    let fence = fence.patience(Duration::from_millis(100));
    for result in [fence.seal(&stamp("a", 34)).await, fence.write(stamp("a", 34), "34").await] {
        let Err(Error::Failed { source, .. }) = result else { panic!("{result:?}") };
        assert!(
            source.to_string().contains(&format!("is locked by process {pid}, for longer than 100ms")),
            "{source}"
        );
    }
    // One can look all the same.
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 33);
    signal(pid, "KILL");
    child.wait().unwrap();
    let fence = Fence::new(directory.path().join("data")).unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(contents(&directory).as_deref(), Some("before"));
}

/// A child with token 33 that has stopped when its first call of this kind was made.
async fn stopped(directory: &tempfile::TempDir, step: &str) -> (std::process::Child, u32) {
    let mut command = child::command(&directory.path().join("data"), 33, "STOP", (step, 1));
    let mut child = command.spawn().unwrap();
    for _ in 0..1_000 {
        sleep(Duration::from_millis(10)).await;
        let log = std::fs::read_to_string(directory.path().join("strace.log")).unwrap_or_default();
        if log.contains("stopped by SIGSTOP") {
            let pid = std::fs::read_to_string(directory.path().join("child.pid")).unwrap();
            return (child, pid.parse().unwrap());
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the child does not stop");
}

fn signal(process: u32, signal: &str) {
    let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status();
    assert!(sent.unwrap().success());
}
