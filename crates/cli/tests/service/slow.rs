//! Clients that write slowly, or do not read: they are sent away, and cost little until then.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold::Store;
use leasehold::core::protocol::{Query, Request, Watch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::raw::{frame, get_whole, open_stream, opening};
use super::stage::{Stage, eventually, metric, run, since};

/// What the service is told to allow for a request over HTTP, and for reading an answer.
const LIMIT: Duration = Duration::from_secs(2);
const SETTINGS: [&str; 4] =
    ["--set", "http.request_timeout_ms=2000", "--set", "limits.write_timeout_ms=2000"];
/// Longer than any limit of the service.
const PATIENCE: Duration = Duration::from_secs(40);
/// What a busy machine adds.
const SLACK: Duration = Duration::from_secs(2);
/// Watchers that do not read, of each kind.
const DEAF: usize = 20;
/// Memory that they may cost together, in mebibytes, with what the service keeps of the changes for everybody.
const MORE_MEMORY: u64 = 100;

/// Sends the first bytes at once and the rest one by one, a second apart, and gives how long the service bears it;
/// nothing if that is longer than anybody waits.
async fn trickle(address: SocketAddr, at_once: &[u8], slowly: &[u8]) -> Option<Duration> {
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    write.write_all(at_once).await.unwrap();
    let began = leasehold_clock::read();
    let bytes = slowly.to_vec();
    let writing = tokio::spawn(async move {
        for byte in bytes {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if write.write_all(&[byte]).await.is_err() {
                return;
            }
        }
        // It stays open: only the other side ends it.
        std::future::pending::<()>().await;
    });
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, read.read_to_end(&mut answer)).await;
    writing.abort();
    ended.is_ok().then(|| since(began))
}

#[test]
fn whoever_writes_slowly_is_sent_away() {
    let stage = Stage::new(&SETTINGS);
    let address = stage.address();
    let hello = opening();
    let head = b"GET /v1/status HTTP/1.1\r\nhost: somewhere\r\nx-long: ".repeat(2);
    let post = b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n";
    let request = frame(1, Request::Read(Query::Leases { prefix: "x".repeat(100), after: None, limit: 1 }));
    // What comes at once, what comes slowly, and how long the service may bear it. The first slow byte comes after a second.
    let second = Duration::from_secs(1);
    let cases: [(&str, &[u8], &[u8], Duration); 5] = [
        ("nothing", b"", b"", 10 * second),
        ("a hello", b"", &hello, second + 5 * second),
        ("a head", b"GET ", &head, LIMIT),
        ("a body", post, &[b' '; 90], LIMIT),
        ("a frame", &hello, &request, second + 30 * second),
    ];
    let trickling = cases.map(|(_, at_once, slowly, _)| trickle(address, at_once, slowly));
    let [one, two, three, four, five] = trickling;
    let borne = run(async { tokio::join!(one, two, three, four, five) });
    let borne = [borne.0, borne.1, borne.2, borne.3, borne.4];
    for ((what, _, _, limit), borne) in cases.iter().zip(borne) {
        println!("{what}: {borne:?}");
        let borne = borne.unwrap_or_else(|| panic!("{what} was borne until the test lost its patience"));
        assert!(borne < *limit + SLACK, "{what} was borne for {borne:?}, the limit is {limit:?}");
    }
}

/// Asks and asks, and reads nothing.
#[test]
fn whoever_asks_without_reading_is_sent_away() {
    let stage = Stage::new(&SETTINGS);
    let before = stage.memory();
    run(async {
        let proper = Store::connect(&stage.server.url()).await.unwrap();
        let session = proper.session().await.unwrap();
        let mut stream = open_stream(stage.address()).await;
        let questions: Vec<u8> = (0..1_000).flat_map(|id| frame(id, Request::Read(Query::Status))).collect();
        let began = leasehold_clock::read();
        let sending = async { while stream.write_all(&questions).await.is_ok() {} };
        let ended = tokio::time::timeout(Duration::from_secs(60), sending).await;
        println!("asked for {:?}; memory {before} MiB before, {} MiB after", since(began), stage.memory());
        assert!(ended.is_ok(), "it may still ask");
        assert!(stage.memory() < before + MORE_MEMORY, "{before} MiB became {} MiB", stage.memory());
        session.acquire("job").await.expect("others are served");
    });
}

/// A connection with little room for what it does not read.
async fn narrow(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(address).await.unwrap()
}

#[test]
fn watchers_that_do_not_read_are_sent_away_and_cost_little() {
    let stage = Stage::new(&SETTINGS);
    let address = stage.address();
    run(async {
        let writing = tokio::spawn(write(stage.server.url()));
        let before = stage.memory();
        let watch = frame(1, Request::Watch(Watch { prefix: String::new(), after: None }));
        let mut deaf = Vec::new();
        for _ in 0..DEAF {
            let mut stream = narrow(address).await;
            stream.write_all(&[opening(), watch.clone()].concat()).await.unwrap();
            deaf.push(stream);
            let mut stream = narrow(address).await;
            stream.write_all(b"GET /v1/watch HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            deaf.push(stream);
        }
        let began = leasehold_clock::read();
        let mut most = 0;
        // One stream is the writer's, one connection is the one that asks.
        eventually("those over HTTP are gone", Duration::from_secs(60), async || {
            most = most.max(stage.memory());
            (metric(address, "leasehold_watches").await == 0).then_some(())
        })
        .await;
        let http = since(began);
        eventually("those with frames are gone", Duration::from_secs(90), async || {
            most = most.max(stage.memory());
            (metric(address, "leasehold_connections{kind=\"stream\"}").await <= 1).then_some(())
        })
        .await;
        println!(
            "over HTTP gone after {http:?}, with frames after {:?}; memory {before} MiB before, {most} MiB at most",
            since(began)
        );
        assert!(!writing.is_finished(), "the writer was disturbed");
        writing.abort();
        assert!(most < before + MORE_MEMORY, "{before} MiB became {most} MiB");
    });
}

/// Connections that ask for a page and read nothing, of each kind, and the names of a page, with values that make it as large as a page can be.
const UNREAD: usize = 150;
const NAMES: usize = 500;
const VALUE: usize = 2_000;
/// Memory that they may cost together, in mebibytes: what waits for readers has room for half of it.
const MEMORY_UNREAD: u64 = 128;
/// Longer than any question stands in line.
const LOOKED_ON: Duration = Duration::from_secs(8);

#[test]
fn pages_that_are_not_read_cost_no_more_than_there_is_room_for() {
    let stage = Stage::new(&[]);
    let address = stage.address();
    run(async {
        let store = Store::connect(&stage.server.url()).await.unwrap();
        let session = store.session().await.unwrap();
        let mut held = Vec::new();
        for name in 0..NAMES {
            held.push(session.acquire(&format!("name-{name:03}")).value(vec![b'v'; VALUE]).await.unwrap());
        }
        let before = stage.memory();
        let page =
            frame(1, Request::Read(Query::Leases { prefix: String::new(), after: None, limit: 1_000 }));
        let mut unread = Vec::new();
        for _ in 0..UNREAD {
            for asked in [
                &[opening(), page.clone()].concat()[..],
                b"GET /v1/leases?limit=1000 HTTP/1.1\r\nhost: x\r\n\r\n",
            ] {
                let mut stream = narrow(address).await;
                stream.write_all(asked).await.unwrap();
                unread.push(stream);
            }
        }
        // One that reads has its page as soon as others have had their time.
        let (began, mut most, mut pages, mut refused) = (leasehold_clock::read(), 0, 0, 0);
        while since(began) < LOOKED_ON || pages == 0 {
            assert!(
                since(began) < PATIENCE,
                "{refused} pages were refused to one that reads, and none was given"
            );
            most = most.max(stage.memory());
            session.renew().await.expect("renewals do not wait for readers");
            let text = get_whole(address, "/v1/leases?limit=1000").await;
            if text.starts_with("HTTP/1.1 200") {
                pages += 1;
                continue;
            }
            refused += 1;
            let is_typed =
                ["HTTP/1.1 503", "retry-after: 1\r\n", "\"code\":\"too-much-unread\"", "\"limit\":67108864"];
            assert!(is_typed.iter().all(|part| text.contains(part)), "{}", &text[..text.len().min(500)]);
        }
        println!(
            "memory {before} MiB before, {most} MiB at most; {pages} pages given to one that reads, {refused} refused"
        );
        assert!(most < before + MEMORY_UNREAD, "{before} MiB became {most} MiB");
    });
}

/// Changes that are as large as changes can be.
async fn write(url: String) {
    let store = Store::connect(&url).await.unwrap();
    let session = store.session().await.unwrap();
    loop {
        let lease = session.acquire("job").value(vec![b'v'; 4_000]).await.unwrap();
        lease.release().await.unwrap();
    }
}
