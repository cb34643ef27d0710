//! Servers that do not open a connection as they should: each is named, and nobody waits for ever.

use std::time::Duration;

use leasehold::core::protocol::PROTOCOL_VERSION;
use leasehold::{Error, Unreachable};
use leasehold_wire::{Hello, encode_opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::stage::{connect, soon};

const PATIENCE: Duration = Duration::from_millis(600);

/// Takes connections for ever, says `first` on each, and then hangs up or waits.
async fn bad_server(first: Vec<u8>, hangs_up: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let first = first.clone();
            tokio::spawn(async move {
                let _ = stream.write_all(&first).await;
                let mut buffer = [0; 1_024];
                while !hangs_up && stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

async fn trouble(address: &str) -> Unreachable {
    let (began, timer) = (leasehold_clock::read(), leasehold_kit::Timer::start());
    let error = soon(connect(&format!("leasehold://{address}"), PATIENCE)).await.unwrap_err();
    let took = leasehold_clock::read().since(began).greater();
    assert!(took >= PATIENCE, "given up after {took:?}: {error}");
    // But for the time in which others had the processors.
    let worked = timer.took();
    assert!(worked < PATIENCE + Duration::from_secs(2), "given up after {worked:?} of {took:?}: {error}");
    match error {
        Error::Unreachable(why) => why,
        other => panic!("{other:?}"),
    }
}

fn opening(protocol: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let hello = Hello { protocol, ..Hello::new("other", 1, "") };
    encode_opening(&hello, &mut bytes).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_protocol_or_version_is_named_with_what_it_said() {
    for (first, word) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "not a session stream: it begins with HTTP/1.1"),
        (b"\0LHSS\r\n\x02".to_vec(), "not a session stream: it begins with \\x00LHSS"),
        (opening(PROTOCOL_VERSION - 1), "hello"),
        (b"\0LHSS\r\n\x01\xff\xff\xff\xff".to_vec(), "above the maximum of 1024"),
    ] {
        let address = bad_server(first, false).await;
        match trouble(&address).await {
            Unreachable::Protocol(why) => {
                assert!(why.contains(word) && why.starts_with(&address), "{why}");
            }
            other => panic!("{word}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_named_with_how_it_does_not() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    for (address, words) in [
        (bad_server(Vec::new(), false).await, ["took the connection, but said no hello within 300ms"; 2]),
        (bad_server(Vec::new(), true).await, ["closed the connection before it said hello", "reset"]),
        (closed, ["refused"; 2]),
    ] {
        match trouble(&address).await {
            Unreachable::NoConnection { store, waited, last } => {
                assert_eq!(store, format!("leasehold://{address}"));
                assert_eq!(waited, PATIENCE);
                let last = last.unwrap();
                let last = last.strip_prefix(&format!("{address}: ")).expect(&last);
                assert!(words.iter().any(|word| last.contains(word)), "{last}");
            }
            other => panic!("{words:?}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_stands_for_nothing_is_named() {
    let why = trouble("nothing.invalid").await.to_string();
    assert!(why.contains("nothing.invalid:7420: "), "{why}");
}

#[tokio::test]
async fn a_bad_url_is_refused_without_a_connection() {
    for (url, part) in [("leasehold://a:0", "port \"0\""), ("leasehold://a/b", "path, \"/b\"")] {
        let error = connect(url, PATIENCE).await.unwrap_err();
        assert!(matches!(&error, Error::BadUrl { why, .. } if why.contains(part)), "{error}");
    }
}
