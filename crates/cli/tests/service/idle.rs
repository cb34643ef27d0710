//! Ten thousand connections that say nothing: everybody else is served as if they were not there.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold::{SessionOptions, Store};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::raw;
use super::stage::{Stage, eventually, metric, raise_descriptors, run, since};

const CONNECTIONS: usize = 10_000;
/// Opened at once: a burst, but not one that the listener's queue refuses.
const AT_ONCE: usize = 500;
/// Memory that the service may have more than before, in mebibytes: 25 KiB for each connection.
const MORE_MEMORY: u64 = 250;
/// What a lease may take to be granted and given back, once in a while, on a busy machine.
const LONGEST_CYCLE: Duration = Duration::from_millis(500);

#[test]
fn ten_thousand_silent_connections_keep_nobody_waiting() {
    raise_descriptors(CONNECTIONS as u64 + 200);
    // Longer than this test takes, so that none is sent away for its silence.
    let stage = Stage::new(&["--set", "http.request_timeout_ms=120000", "--set", "shutdown_grace_ms=120000"]);
    let address = stage.address();
    let before = stage.memory();
    run(async {
        let holding = tokio::spawn(hold(stage.server.url()));
        let began = leasehold_clock::read();
        let mut connections = Vec::new();
        for number in 0..CONNECTIONS / AT_ONCE {
            connections.extend(open(address, number % 2 == 0).await);
        }
        let opened = since(began);
        let streams = metric(address, "leasehold_connections{kind=\"stream\"}").await;
        let http = metric(address, "leasehold_connections{kind=\"http\"}").await;
        println!("{streams} session streams and {http} HTTP connections in {opened:?}");
        assert!(streams + http >= CONNECTIONS as u64, "{streams} and {http} of {CONNECTIONS}");
        let worst = cycle(&stage.server.url(), stage.server.pid()).await;
        let memory = stage.memory();
        println!("memory {before} MiB before and {memory} MiB now; the longest cycle took {worst:?}");
        assert!(worst < LONGEST_CYCLE, "a grant and a release took {worst:?}");
        assert!(memory < before + MORE_MEMORY, "{before} MiB became {memory} MiB");
        holding.abort();
        if let Err(error) = holding.await
            && !error.is_cancelled()
        {
            panic!("the holder was disturbed: {error}");
        }
        drop(connections);
        eventually("they are noticed to be gone", Duration::from_secs(20), async || {
            (metric(address, "leasehold_connections{kind=\"stream\"}").await < 10).then_some(())
        })
        .await;
    });
}

async fn open(address: SocketAddr, streams: bool) -> Vec<TcpStream> {
    let mut opening = JoinSet::new();
    for _ in 0..AT_ONCE {
        opening.spawn(async move {
            if streams { raw::open_stream(address).await } else { raw::open_http(address).await }
        });
    }
    opening.join_all().await
}

/// Holds a lease with a short ttl from before the connections come, and stops the test if it is ever in danger.
async fn hold(url: String) {
    let store = Store::connect(&url).await.unwrap();
    let session = store.session_with(&SessionOptions::new().ttl(Duration::from_secs(4))).await.unwrap();
    let lease = session.acquire("held").await.unwrap();
    loop {
        let state = lease.state();
        assert!(lease.guard(Duration::from_millis(1)).is_ok(), "{state:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The longest of many grants and releases, without the time in which a busy machine held the service or this process back.
async fn cycle(url: &str, service: u32) -> Duration {
    let store = Store::connect(url).await.unwrap();
    let session = store.session().await.unwrap();
    let mut worst = Duration::ZERO;
    for _ in 0..200 {
        let held_back = || leasehold_kit::held_back(service) + leasehold_kit::held_back(std::process::id());
        let (before, began) = (held_back(), leasehold_clock::read());
        session.acquire("job").await.unwrap().release().await.unwrap();
        worst = worst.max(since(began).saturating_sub(held_back().saturating_sub(before)));
    }
    worst
}
