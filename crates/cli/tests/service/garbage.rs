//! What is not a request ends its own connection, changes nothing, and leaves the service as it was.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold::Store;
use leasehold::core::protocol::{Query, Request};
use leasehold_wire::MAX_FRAME_BYTES;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::raw::{frame, get, opening};
use super::stage::{Stage, run, status};

/// Nothing here is a matter of time limits: the service ends each connection as soon as it has seen enough.
const PATIENCE: Duration = Duration::from_secs(2);
/// Each kind of garbage is sent so many times.
const TIMES: usize = 20;

/// Sends this and gives what came back until the service ended the connection, which it must do by itself.
async fn send(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The other side may have closed before it has read everything.
    let _ = stream.write_all(bytes).await;
    until_its_end(stream, bytes).await
}

/// The same, and says at once that there will be no more.
async fn send_and_end(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    until_its_end(stream, bytes).await
}

async fn until_its_end(mut stream: TcpStream, sent: &[u8]) -> String {
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "the connection is still open after {:?}", beginning(sent));
    String::from_utf8_lossy(&answer).into_owned()
}

fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}

fn after_opening(rest: &[u8]) -> Vec<u8> {
    [opening().as_slice(), rest].concat()
}

/// What the service ends as soon as it has seen it.
fn refused_at_sight() -> Vec<Vec<u8>> {
    let status = frame(1, Request::Read(Query::Status));
    let too_long = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_be_bytes();
    let mut other_version = opening();
    other_version[7] = 9;
    vec![
        b"\0garbage!".to_vec(),
        [&opening()[..8], &[0xff; 4]].concat(),
        other_version,
        after_opening(&[0xff; 64]),
        after_opening(&too_long),
        after_opening(&[&status[..], &too_long[..]].concat()),
        after_opening(&[0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame of HTTP/2 at all".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        [b"GET /v1/status HTTP/1.1\r\nx: ".as_slice(), &[b'x'; 100_000]].concat(),
    ]
}

/// What ends in the middle, or makes no sense inside a frame that does.
fn cut_in_half() -> Vec<Vec<u8>> {
    let status = frame(1, Request::Read(Query::Status));
    let mut not_understood = status.clone();
    *not_understood.last_mut().unwrap() = 0xff;
    let open = "POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    vec![
        opening()[..5].to_vec(),
        opening()[..opening().len() - 1].to_vec(),
        after_opening(&not_understood),
        after_opening(&status[..2]),
        after_opening(&status[..status.len() - 1]),
        after_opening(&[0, 0x3f, 0xff, 0xff, 1, 2, 3]),
        b"GET /v1/sta".to_vec(),
        format!("{open}content-length: 100\r\n\r\n{{\"label\":").into_bytes(),
        format!("{open}transfer-encoding: chunked\r\n\r\n5\r\n{{\"la").into_bytes(),
    ]
}

/// What is answered with a refusal.
fn answered() -> Vec<(&'static str, Vec<u8>)> {
    let open =
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let post = |body: &str| format!("{open}content-length: {}\r\n\r\n{body}", body.len()).into_bytes();
    vec![
        (" 413 ", format!("{open}content-length: 99999999999\r\n\r\n").into_bytes()),
        (" 400 ", post("{\"label\":")),
        (" 400 ", post("\u{0}\u{1}\u{2}")),
        (" 400 ", post(&"[".repeat(100_000))),
        (" 400 ", post("{\"no_such_field\":1}")),
        (" 400 ", post("{\"ttl_ms\":18446744073709551616}")),
        (" 404 ", b"GET /../../etc/passwd HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_vec()),
    ]
}

#[test]
fn garbage_ends_its_own_connection_and_changes_nothing() {
    let stage = Stage::new(&[]);
    let address = stage.address();
    run(async {
        // As much as it will ever need for proper clients.
        proper(&stage.server.url()).await;
        let (before, memory) = (status(address).await, stage.memory());
        assert_eq!(before["sessions"], 0);
        for _ in 0..TIMES {
            for bytes in refused_at_sight() {
                send(address, &bytes).await;
            }
            for bytes in cut_in_half() {
                send_and_end(address, &bytes).await;
                let now = status(address).await;
                assert_unchanged(&now, &before);
            }
            for (code, bytes) in answered() {
                let answer = send(address, &bytes).await;
                let line = answer.lines().next().unwrap_or_default();
                assert!(line.contains(code), "{line:?} instead of {code} for {:?}", beginning(&bytes));
            }
        }
        let after = status(address).await;
        assert_unchanged(&after, &before);
        let leases: Value = serde_json::from_str(&get(address, "/v1/leases?limit=10").await).unwrap();
        assert!(
            leases["leases"].as_array().unwrap().iter().all(|lease| lease["holders"] == Value::Array(vec![]))
        );
        println!("memory {memory} MiB before, {} MiB after", stage.memory());
        assert!(stage.memory() < memory + 30, "{memory} MiB became {} MiB", stage.memory());
        proper(&stage.server.url()).await;
    });
}

/// Where nobody has a session, nothing is written but the time, and that every ten seconds of it.
fn assert_unchanged(now: &Value, before: &Value) {
    for key in ["sessions", "resources"] {
        assert_eq!(now[key], before[key], "{key}");
    }
    let revision = |status: &Value| status["revision"].as_str().unwrap().parse::<u64>().unwrap();
    let log_time = |status: &Value| status["log_time_ms"].as_u64().unwrap();
    let (entries, millis) = (revision(now) - revision(before), log_time(now) - log_time(before));
    assert!(10_000 * entries <= millis, "{entries} entries were written in {millis} ms of log time");
}

/// A proper client, whose session is gone when it is done.
async fn proper(url: &str) {
    let store = Store::connect(url).await.unwrap();
    let session = store.session().await.unwrap();
    session.acquire("job").await.unwrap().release().await.unwrap();
    session.close().await.unwrap();
    store.close().await;
}
