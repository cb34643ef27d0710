//! The order of passages, step by step: a future that is polled once and does not end is one that waits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::*;

fn stamp(token: u64) -> Stamp {
    Stamp::new("a", token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

fn gate(directory: &tempfile::TempDir, settle: Duration) -> Arc<Gate> {
    Arc::new(Gate::open(directory.path(), settle, Some(|| "noon".to_owned())).unwrap())
}

async fn entered(gate: &Arc<Gate>, token: u64) -> Result<Passage, Barred> {
    gate.enter(&stamp(token)).await
}

fn highest(refused: Result<Passage, Barred>) -> Option<u64> {
    match refused {
        Err(Barred::Stale(stale)) => stale.highest,
        other => panic!("{other:?}"),
    }
}

/// Lets everything else run, the store's thread included, until a token is kept.
async fn kept(gate: &Gate, token: u64) {
    while gate.look("a").highest.is_none_or(|mark| mark.token < token) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn is_pending<T>(task: &mut (impl Future<Output = T> + Unpin)) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *task).poll(context).is_pending())).await
}

async fn waits<T>(task: &mut (impl Future<Output = T> + Unpin)) {
    for _ in 0..20 {
        tokio::task::yield_now().await;
        assert!(is_pending(task).await, "it does not wait");
    }
}

#[tokio::test]
async fn equal_tokens_pass_beside_each_other_and_a_greater_one_waits_for_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    let (one, two) = (entered(&gate, 33).await.unwrap(), entered(&gate, 33).await.unwrap());
    let mut new = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { entered(&gate, 34).await }
    });
    kept(&gate, 34).await;
    assert_eq!(highest(entered(&gate, 33).await), Some(34), "refused while the new one still waits");
    drop(one);
    waits(&mut new).await;
    drop(two);
    let new = new.await.unwrap().unwrap();
    let another = entered(&gate, 34).await.unwrap();
    drop((new, another));
}

#[tokio::test]
async fn whoever_waits_is_refused_when_a_greater_one_comes() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    let old = entered(&gate, 33).await.unwrap();
    let come = |token| {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move { entered(&gate, token).await })
    };
    let waiting = come(34);
    kept(&gate, 34).await;
    let mut greater = come(35);
    assert_eq!(highest(waiting.await.unwrap()), Some(35));
    waits(&mut greater).await;
    drop(old);
    drop(greater.await.unwrap().unwrap());
}

#[tokio::test]
async fn one_that_gives_up_waiting_leaves_the_fence_raised() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    let old = entered(&gate, 33).await.unwrap();
    {
        let mut waiting = Box::pin(entered(&gate, 34));
        while gate.look("a").highest.is_none_or(|mark| mark.token < 34) {
            assert!(is_pending(&mut waiting).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(old);
    assert_eq!(highest(entered(&gate, 33).await), Some(34));
    drop(entered(&gate, 34).await.unwrap());
}

#[tokio::test]
async fn names_do_not_wait_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    let _old = entered(&gate, 33).await.unwrap();
    let other = Stamp::new("b", 1).unwrap();
    drop(gate.enter(&other).await.unwrap());
}

#[tokio::test]
async fn refusals_are_kept_the_newest_first_and_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    drop(entered(&gate, 100).await.unwrap());
    for token in 1..=20 {
        entered(&gate, token).await.unwrap_err();
    }
    let seen = gate.look("a");
    assert_eq!(seen.highest, Some(Mark { token: 100, holder: Some("holder-100".to_owned()) }));
    let refusals = seen.refusals.unwrap();
    assert_eq!(refusals.len(), KEPT_REFUSALS);
    assert_eq!((refusals[0].token, refusals[0].highest, refusals[0].at.as_deref()), (20, 100, Some("noon")));
    assert_eq!(gate.look("b"), Seen { highest: None, refusals: Some(Vec::new()) });
}

#[tokio::test]
async fn names_are_bounded_and_a_known_one_still_passes() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::ZERO);
    drop(entered(&gate, 1).await.unwrap());
    {
        let mut state = gate.state();
        for nth in state.names.len()..MAX_FENCE_NAMES {
            state.names.insert(format!("filler-{nth}"), Name::new(None));
        }
    }
    let new = Stamp::new("one more", 1).unwrap();
    assert!(matches!(gate.enter(&new).await, Err(Barred::TooManyNames)));
    drop(entered(&gate, 2).await.unwrap());
    gate.state().names.remove("filler-1");
    drop(gate.enter(&new).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn after_a_start_everybody_waits_until_the_upstream_has_settled() {
    let directory = tempfile::tempdir().unwrap();
    let gate = gate(&directory, Duration::from_secs(60));
    let mut early = Box::pin(entered(&gate, 33));
    waits(&mut early).await;
    tokio::time::advance(Duration::from_secs(59)).await;
    waits(&mut early).await;
    tokio::time::advance(Duration::from_secs(2)).await;
    drop(early.await.unwrap());
}
