//! Watchers of the hub see every change once and in order, whatever callers do, and across a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::protocol::{Change, Changes, Failure, Response, Watch};
use leasehold_core::{Op, Revision, Token};
use leasehold_host::{Caller, Kept, Served, Watcher};

use crate::person::{PATIENCE, Person, acquire, look, served, served_with_snapshots, watch_all};

const IDLE: Duration = Duration::from_millis(50);

fn after(revision: u64) -> Watch {
    Watch { prefix: String::new(), after: Some(Revision::new(revision)) }
}

/// Remembers what was taken, which comes behind all that was taken before.
fn note(taken: Vec<Arc<Kept>>, seen: &mut Vec<Arc<Changes>>) {
    for kept in taken {
        let (last, next) = (seen.last().map(|changes| changes.revision), kept.changes.revision);
        assert!(Some(next) > last, "revision {next} comes behind {last:?}");
        seen.push(Arc::clone(&kept.changes));
    }
}

/// Takes until the watcher has come to a revision.
async fn see(watcher: &mut Watcher, until: Revision, seen: &mut Vec<Arc<Changes>>) {
    let seeing = async {
        while watcher.position() < until {
            note(watcher.next(IDLE).await.unwrap(), seen);
        }
    };
    tokio::time::timeout(PATIENCE, seeing).await.expect("it comes there in time");
}

/// Takes until the service stops.
async fn see_to_the_end(watcher: &mut Watcher, seen: &mut Vec<Arc<Changes>>) {
    loop {
        match tokio::time::timeout(PATIENCE, watcher.next(PATIENCE)).await.expect("it ends in time") {
            Ok(taken) => note(taken, seen),
            Err(Failure::Unavailable { why }) => return assert!(why.contains("stopping"), "{why}"),
            Err(other) => panic!("{other}"),
        }
    }
}

/// Everything that is kept.
async fn everything(served: &Served) -> Vec<Arc<Changes>> {
    // A read waits for the start.
    let (newest, _) = look(served.caller(), "nothing").await;
    let mut seen = Vec::new();
    let mut watcher = served.caller().hub().watch(&after(0)).unwrap();
    see(&mut watcher, newest, &mut seen).await;
    seen
}

/// Of every lease its grant, then its end, each once. Gives back how many were granted.
fn check(seen: &[Arc<Changes>]) -> usize {
    let mut holders: BTreeMap<String, Token> = BTreeMap::new();
    let (mut granted, mut newest) = (0, None);
    for change in seen.iter().flat_map(|changes| &changes.changes) {
        let resource = change.resource().as_str().to_owned();
        match change {
            Change::Granted { grant, .. } => {
                assert!(Some(grant.token) > newest, "tokens rise");
                newest = Some(grant.token);
                granted += 1;
                assert_eq!(holders.insert(resource, grant.token), None, "granted before the other ended");
            }
            Change::Ended { token, .. } => assert_eq!(holders.remove(&resource), Some(*token)),
            other => panic!("nobody did {other:?}"),
        }
    }
    granted
}

/// Four threads, each with a runtime and a session of its own, that take turns on one resource and have one to themselves.
/// Each goes on for so many rounds, or until the service ends.
async fn work(caller: &Caller, name: &str, rounds: usize) -> Vec<std::thread::JoinHandle<usize>> {
    let mut threads = Vec::new();
    for number in 0..4 {
        let (person, shared) = (Person::open(caller).await, format!("{name}/shared"));
        let own = format!("{name}/own-{number}");
        threads.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for round in 0..rounds {
                    for resource in [&shared, &own] {
                        let response = person.hold(resource).await;
                        if matches!(response, Response::Failed(_)) {
                            return round;
                        }
                        let token = crate::person::token(&response);
                        if matches!(person.release(resource, token).await, Response::Failed(_)) {
                            return round;
                        }
                    }
                }
                person.op(Op::Close).await;
                rounds
            })
        }));
    }
    threads
}

async fn until_done(threads: Vec<std::thread::JoinHandle<usize>>) -> usize {
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    threads.into_iter().map(|thread| thread.join().unwrap()).sum()
}

#[tokio::test]
async fn a_watcher_sees_every_change_once_and_in_order() {
    const ROUNDS: usize = 100;
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = served(directory.path());
    Person::open(served.caller()).await;
    let mut watcher = served.caller().hub().watch(&watch_all()).unwrap();
    let threads = work(served.caller(), "work", ROUNDS).await;
    let mut seen = Vec::new();
    // One from the beginning, and others that begin while entries are applied.
    let mut later = Vec::new();
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        note(watcher.next(IDLE).await.unwrap(), &mut seen);
        if later.len() < 50 {
            let resumed = served.caller().hub().watch(&after(watcher.position().get())).unwrap();
            later.push((seen.len(), resumed));
        }
    }
    assert_eq!(until_done(threads).await, 4 * ROUNDS);
    let (newest, _) = look(served.caller(), "shared").await;
    see(&mut watcher, newest, &mut seen).await;
    assert_eq!(check(&seen), 2 * 4 * ROUNDS);
    for (from, mut resumed) in later {
        let mut rest = Vec::new();
        see(&mut resumed, newest, &mut rest).await;
        assert!(rest == seen[from..], "a watch that begins in the middle sees the rest and nothing else");
    }
    assert!(everything(&served).await == seen);
}

#[tokio::test]
async fn a_watcher_that_resumes_after_a_restart_has_missed_nothing() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut seen = Vec::new();
    let mut position = Revision::new(0);
    for round in 0..4 {
        let running = served_with_snapshots(directory.path(), 50);
        let (newest, _) = look(running.caller(), "shared").await;
        assert!(newest >= position);
        let mut watcher = running.caller().hub().watch(&after(position.get())).unwrap();
        // What the last ones held is theirs for a while yet.
        let threads = work(running.caller(), &format!("round-{round}"), 10_000).await;
        // In the middle of everything.
        see(&mut watcher, Revision::new(newest.get() + 60), &mut seen).await;
        if round % 2 == 0 {
            running.stop();
        } else {
            running.drain();
        }
        see_to_the_end(&mut watcher, &mut seen).await;
        position = watcher.position();
        assert!(until_done(threads).await > 0);
        assert_eq!(running.wait(), Ok(()));
    }
    let running = served_with_snapshots(directory.path(), 50);
    let all = everything(&running).await;
    let mut watcher = running.caller().hub().watch(&after(position.get())).unwrap();
    let (newest, _) = look(running.caller(), "shared").await;
    see(&mut watcher, newest, &mut seen).await;
    assert!(all == seen, "{} of {} batches were seen", seen.len(), all.len());
    assert!(check(&seen) > 40);
}

/// More changes than are kept: sessions that take many resources in one step, and give them all back in another.
async fn flood(caller: &Caller) {
    for round in 0..40 {
        let person = Person::open(caller).await;
        for unit in 0..8 {
            let resources: Vec<String> = (0..64).map(|slot| format!("flood/{round}/{unit}/{slot}")).collect();
            crate::person::token(&person.op(acquire(&resources, None, Vec::new())).await);
        }
        person.op(Op::Close).await;
    }
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_or_comes_too_late_is_told_so_also_after_a_restart() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let running = served(directory.path());
    Person::open(running.caller()).await;
    let mut slow = running.caller().hub().watch(&watch_all()).unwrap();
    let behind = slow.position();
    let mut quick = running.caller().hub().watch(&watch_all()).unwrap();
    let flooder = running.caller().clone();
    let flooding = flood(&flooder);
    tokio::pin!(flooding);
    loop {
        tokio::select! {
            () = &mut flooding => break,
            taken = quick.next(IDLE) => assert!(taken.is_ok(), "one that keeps up is never too slow"),
        }
    }
    let Err(Failure::RevisionTooOld { after: named, oldest }) = slow.next(IDLE).await else {
        panic!("more was published than is kept");
    };
    assert_eq!(named, behind);
    let refused = running.caller().hub().watch(&after(behind.get())).unwrap_err();
    assert_eq!(refused, Failure::RevisionTooOld { after: behind, oldest });
    assert!(running.caller().hub().watch(&after(oldest.get())).is_ok());
    drop(running);

    let running = served(directory.path());
    let (newest, _) = look(running.caller(), "nothing").await;
    let refused = running.caller().hub().watch(&after(behind.get())).unwrap_err();
    assert_eq!(
        refused,
        Failure::RevisionTooOld { after: behind, oldest },
        "what was forgotten stays forgotten"
    );
    let mut seen = Vec::new();
    let mut watcher = running.caller().hub().watch(&after(oldest.get())).unwrap();
    see(&mut watcher, newest, &mut seen).await;
    assert!(seen.iter().map(|changes| changes.changes.len()).sum::<usize>() > 30_000);
}

#[tokio::test]
async fn a_revision_that_does_not_exist_is_refused() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let position = |path: &Path, count: usize| {
        let running = served(path);
        async move {
            let person = Person::open(running.caller()).await;
            for number in 0..count {
                person.take(&format!("job-{number}")).await;
            }
            let watcher = running.caller().hub().watch(&watch_all()).unwrap();
            (running, watcher.position())
        }
    };
    let (running, far) = position(one.path(), 20).await;
    drop(running);
    // Another store, that has not come so far.
    let (running, newest) = position(other.path(), 3).await;
    let refused = running.caller().hub().watch(&after(far.get())).unwrap_err();
    assert_eq!(refused, Failure::RevisionAhead { after: far, newest });
}

/// List, then watch after the revision of the list: nothing is missed and nothing comes twice.
#[tokio::test]
async fn whoever_has_an_answer_and_then_watches_has_seen_what_it_changed() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = served(directory.path());
    let person = Person::open(served.caller()).await;
    for _ in 0..200 {
        let before = served.caller().hub().watch(&watch_all()).unwrap().position();
        let token = person.take("job").await;
        let now = served.caller().hub().watch(&watch_all()).unwrap();
        assert!(now.position() > before, "the change is known before the answer to whoever made it");
        let (revision, lease) = look(served.caller(), "job").await;
        assert_eq!(lease.unwrap().holders[0].token, token);
        let mut watcher = served.caller().hub().watch(&after(revision.get())).unwrap();
        person.release("job", token).await;
        let taken = watcher.next(PATIENCE).await.unwrap();
        assert_eq!(taken.len(), 1);
        assert!(
            matches!(&taken[0].changes.changes[..], [Change::Ended { token: ended, .. }] if *ended == token)
        );
    }
}
