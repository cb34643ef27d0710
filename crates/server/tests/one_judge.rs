//! One function judges numbers: when it is changed, the library, HTTP and gRPC all say so, in the same words.
//! A test of the command has `leasehold plan` beside the library.
//!
//! The change is for the whole process, so this is a test of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use leasehold::SessionOptions;
use leasehold_core::planted::{Bug, choose};
use leasehold_server::config::Config;
use leasehold_server::{Service, start};
use leasehold_wire::messages as pb;
use tempfile::TempDir;
use tonic::transport::Endpoint;

/// As the generator writes it.
#[expect(unreachable_pub, unused_qualifications, reason = "written by a generator")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/client/leasehold.v1.rs"));
}

const TTL: u64 = 10_000;
const EVERY: u64 = 3_000;
const MARGIN: u64 = 1_500;
const ROUND_TRIP: u64 = 50;

fn by_library(every: u64) -> Option<String> {
    let options = SessionOptions::new()
        .ttl(Duration::from_millis(TTL))
        .renew_every(Duration::from_millis(every))
        .margin(Duration::from_millis(MARGIN))
        .round_trip(Duration::from_millis(ROUND_TRIP));
    options.numbers().err().map(|error| error.to_string())
}

fn by_http(address: SocketAddr, every: u64) -> Option<String> {
    let body = serde_json::json!({
        "ttl_ms": TTL, "renew_every_ms": every, "margin_ms": MARGIN, "round_trip_ms": ROUND_TRIP,
    });
    let body = body.to_string();
    let mut connection = TcpStream::connect(address).unwrap();
    write!(
        connection,
        "POST /v1/sessions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    match head.starts_with("HTTP/1.1 200") {
        true => None,
        false => Some(body["detail"].as_str().unwrap().to_owned()),
    }
}

fn by_grpc(address: SocketAddr, every: u64) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        let request = pb::OpenSessionRequest {
            ttl_ms: Some(TTL),
            renew_every_ms: Some(every),
            margin_ms: Some(MARGIN),
            round_trip_ms: Some(ROUND_TRIP),
            ..Default::default()
        };
        let answer = generated::leasehold_client::LeaseholdClient::new(channel).open_session(request).await;
        answer.err().map(|status| status.message().to_owned())
    })
}

/// What each of the three says.
fn all(address: SocketAddr, every: u64) -> [Option<String>; 3] {
    [by_library(every), by_http(address, every), by_grpc(address, every)]
}

fn service(directory: &TempDir) -> Service {
    let mut config = Config::new(directory.path().join("data"));
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    start(&config).unwrap()
}

#[test]
fn a_planted_change_of_the_judge_is_noticed_everywhere() {
    let directory = TempDir::new().unwrap();
    let service = service(&directory);
    let address = service.address();
    assert_eq!(all(address, EVERY), [const { None::<String> }; 3]);
    let half = all(address, TTL / 2);
    assert!(half[0].as_ref().unwrap().contains("2 x 5000 ms + 50 ms = 10050 ms is not below"), "{half:?}");
    assert!(half.iter().all(|said| said == &half[0]), "{half:?}");
    let of_server: Vec<Bug> = Bug::ALL.iter().copied().filter(|bug| bug.found_by() == "server").collect();
    assert_eq!(
        of_server,
        [Bug::StrictNumbers],
        "every bug that tests of the server have to find is planted here"
    );
    choose(Some(Bug::StrictNumbers));
    let changed = all(address, EVERY);
    choose(None);
    assert!(changed[0].as_ref().unwrap().starts_with("margin of 1500 ms is below"), "{changed:?}");
    assert!(changed.iter().all(|said| said == &changed[0]), "{changed:?}");
    service.stop();
    service.wait().unwrap();
}
