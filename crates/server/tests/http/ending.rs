//! A service that ends: what is under way is answered, and nobody is left waiting.

use serde_json::json;

use super::client::Watch;
use super::stage::{Stage, addressed};

#[test]
fn whoever_is_kept_waiting_is_told_and_has_no_wait_left() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let mut call = stage.connect();
    let body = json!({ "session_key": waiter, "resource": "job", "wait_ms": 50_000 });
    let (path, headers, body) = addressed("/v1/leases/acquire", &body);
    call.send_request("POST", &path, &[&headers[0], &headers[1]], body.as_bytes());
    stage.until_waiting("job", 1);
    stage.drain();
    call.reply(false).unwrap().fault(503, "unavailable", "failed");
    stage.wait().unwrap();
}

#[test]
fn watches_end_with_a_word() {
    let stage = Stage::new();
    let key = stage.open("x");
    let (mut watch, _) = Watch::begin(stage.address, "/v1/watch", &[]);
    stage.take(&key, "job");
    stage.drain();
    assert_eq!(watch.change()["kind"], "granted");
    let last = watch.next().unwrap();
    assert_eq!((last.event.as_str(), last.id), ("error", None));
    let error = &last.data;
    assert_eq!((&error["code"], &error["kind"]), (&json!("unavailable"), &json!("failed")));
    assert_eq!(error["request_id"].as_str().map(str::len), Some(16));
    assert_eq!(watch.next(), None);
    stage.wait().unwrap();
}

#[test]
fn nobody_new_is_let_in() {
    let stage = Stage::new();
    let mut idle = stage.connect();
    idle.ask("GET", "/v1/status", &[], b"").good();
    let address = stage.address;
    stage.drain();
    stage.wait().unwrap();
    assert!(idle.ends());
    assert!(std::net::TcpStream::connect(address).is_err());
}
