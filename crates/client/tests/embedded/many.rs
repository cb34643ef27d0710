//! Ten thousand leases in one session, and tens of thousands of leases one after the other.

use std::task::Poll;
use std::time::Duration;

use leasehold::{Lease, LeaseState, Session, SessionEvent, Store};

use super::place::{Place, since, timed, ttl};

const LEASES: usize = 10_000;

/// Asks for all before it waits for any.
async fn acquire_all(session: &Session, count: usize) -> Vec<Lease> {
    let names: Vec<String> = (0..count).map(|number| format!("job-{number:05}")).collect();
    let mut asked: Vec<_> = names.iter().map(|name| session.acquire(name).into_future()).collect();
    // Each is asked for when it is first polled; on a busy machine one may be answered by then.
    let mut early: Vec<Option<Lease>> = Vec::with_capacity(count);
    std::future::poll_fn(|context| {
        early.extend(asked.iter_mut().map(|request| match request.as_mut().poll(context) {
            Poll::Ready(granted) => Some(granted.unwrap()),
            Poll::Pending => None,
        }));
        Poll::Ready(())
    })
    .await;
    let mut leases = Vec::with_capacity(count);
    for (early, request) in early.into_iter().zip(asked) {
        leases.push(match early {
            Some(lease) => lease,
            None => request.await.unwrap(),
        });
    }
    leases
}

async fn applied(store: &Store) -> u64 {
    store.status().await.unwrap().applied
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_leases_are_renewed_by_one_message_and_released_alone() {
    let place = Place::in_memory();
    let store = place.store().await;
    // A ttl long enough for a busy machine: it is renewed every third of it.
    let session = store.session_with(&ttl(6)).await.unwrap();
    let before = applied(&store).await;
    let (mut leases, took) = timed(acquire_all(&session, LEASES)).await;
    let entries = applied(&store).await - before;
    println!("{LEASES} leases in {took:?} and {entries} entries");
    assert!(entries < LEASES as u64 / 10, "{entries} entries: they were not sent together");
    assert_eq!(store.status().await.unwrap().resources, LEASES as u64);
    assert!(
        leases.windows(2).all(|pair| pair[0].granted().token < pair[1].granted().token),
        "in the order of asking"
    );

    // One renewal for all, and time entries of an eighth of the ttl.
    let (entries_before, began) = (applied(&store).await, leasehold_clock::read());
    let deadline = leases[0].deadline().unwrap();
    while leases[0].deadline().unwrap() == deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let entries = applied(&store).await - entries_before;
    assert!(entries <= 20, "{entries} entries in {:?} renew one session", since(began));
    for lease in &leases {
        assert_ne!(lease.deadline().unwrap(), deadline, "{} was not told", lease.resource());
        assert!(matches!(lease.state(), LeaseState::Held { .. }), "{:?}", lease.state());
    }

    let one = leases.remove(LEASES / 2);
    let name = one.resource().clone();
    one.release().await.unwrap();
    assert!(store.lease(&name).await.unwrap().unwrap().holders.is_empty());
    let neighbour = store.lease(leases[LEASES / 2].resource()).await.unwrap().unwrap();
    assert_eq!(neighbour.holders[0].token, leases[LEASES / 2].granted().token);
    let mut events = session.events();
    let (closed, took) = timed(session.close()).await;
    closed.unwrap();
    println!("closed in {took:?}");
    assert!(took < Duration::from_secs(5), "closing takes {took:?}, and nobody else is served meanwhile");
    while let Some(event) = events.next().await {
        assert!(!matches!(event, SessionEvent::Standing(_)), "{event:?}");
    }
    assert!(leases.iter().all(|lease| matches!(lease.state(), LeaseState::Ended { .. })));
    store.close().await;
}

/// Nothing piles up: the last thousand take as long as the first, and the process is not larger.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_leases_one_after_the_other_leave_nothing_behind() {
    let place = Place::in_memory();
    let store = place.store().await;
    let session = store.session_with(&ttl(30)).await.unwrap();
    let cycle = async |count: usize| {
        for _ in 0..count {
            session.acquire("job").await.unwrap().release().await.unwrap();
        }
    };
    // Buffers, histories and the log in memory have their size after this.
    cycle(9_000).await;
    let (before, ((), first)) = (resident_kib(), timed(cycle(1_000)).await);
    cycle(9_000).await;
    let ((), last) = timed(cycle(1_000)).await;
    let after = resident_kib();
    println!("first thousand {first:?}, last thousand {last:?}, {before} KiB before and {after} KiB after");
    assert!(after < before + 16 * 1024, "grew from {before} to {after} KiB in 11,000 cycles");
    session.close().await.unwrap();
    store.close().await;
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
