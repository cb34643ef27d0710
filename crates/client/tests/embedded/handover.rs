//! Two stores on one directory: one serves, and when it goes the other does.

use std::time::Duration;

use leasehold::{LeaseState, Store};
use leasehold_kit::Timer;

use super::place::{Place, timed, ttl, until};

/// In the median.
const HANDOVER: Duration = Duration::from_millis(100);

/// Of the longest ttl here: what ends sooner was not ended by it.
const HALF_A_TTL: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn two_stores_of_one_process_share_a_directory() {
    let place = Place::new();
    let (one, two) = (place.store().await, place.store().await);
    let (first, second) = (one.session().await.unwrap(), two.session().await.unwrap());
    let lease = first.acquire("job").await.unwrap();
    let refused = second.acquire("job").await.unwrap_err();
    assert!(refused.to_string().contains("held by"), "{refused}");
    let token = lease.granted().token;
    let waiting = second.acquire("job").wait(Duration::from_secs(10)).into_future();
    let (released, taken) = tokio::join!(lease.release(), waiting);
    released.unwrap();
    assert!(taken.unwrap().granted().token > token);
}

/// How long the directory is without a server when the one that serves closes its store.
async fn handed_over() -> Duration {
    let place = Place::in_memory();
    let serving = place.store().await;
    let store = place.store().await;
    let session = store.session_with(&ttl(10)).await.unwrap();
    let lease = session.acquire("job").await.unwrap();
    let token = lease.granted().token;
    let closed = Timer::start();
    serving.close().await;
    let view = store.lease(lease.resource()).await.unwrap().unwrap();
    let gap = closed.took();
    assert_eq!(view.holders[0].token, token);
    let state = lease.state();
    assert!(matches!(state, LeaseState::Held { .. } | LeaseState::Retrying { .. }), "{state:?}");
    lease.release().await.unwrap();
    gap
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_store_that_serves_hands_over_and_every_lease_stays() {
    let mut gaps = Vec::new();
    for _ in 0..9 {
        gaps.push(handed_over().await);
    }
    gaps.sort_unstable();
    println!("handed over in {gaps:?}");
    assert!(gaps[4] <= HANDOVER, "the median of {gaps:?} is above {HANDOVER:?}");
}

/// Whoever only drops its store leaves as well: its sessions are closed, its directory goes to the next.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_everything_closes_sessions_and_hands_over() {
    let place = Place::new();
    for round in 0..10 {
        let dropped = place.store().await;
        let session = dropped.session_with(&ttl(30)).await.unwrap();
        let lease = session.acquire("job").await.unwrap();
        let token = lease.granted().token;
        let other: Store = place.store().await;
        let waiter = other.session_with(&ttl(30)).await.unwrap();
        // In every order: the handles share one driver.
        match round % 3 {
            0 => drop((lease, session, dropped)),
            1 => drop((dropped, session, lease)),
            _ => drop((session, dropped, lease)),
        }
        let acquired = waiter.acquire("job").wait(Duration::from_secs(60)).into_future();
        let (taken, waited) = timed(acquired).await;
        assert!(taken.unwrap().granted().token > token);
        assert!(waited < HALF_A_TTL, "round {round}: only the ttl ended it, after {waited:?}");
        waiter.close().await.unwrap();
        until("the dropped session is gone", HALF_A_TTL, || async {
            other.status().await.unwrap().sessions == 0
        })
        .await;
        other.close().await;
    }
}

/// A chain of owners: each serves, takes the lease, and goes; tokens rise through all of them.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_rise_through_many_servers() {
    let place = Place::new();
    let mut last = None;
    for _ in 0..10 {
        let store = place.store().await;
        let session = store.session().await.unwrap();
        let token = session.acquire("job").await.unwrap().granted().token;
        assert!(last < Some(token));
        last = Some(token);
        session.close().await.unwrap();
        store.close().await;
    }
}
