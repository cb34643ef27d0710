//! The service is killed and started again: sessions, leases and waits go on where they were.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{PATIENCE, Place, beside_others, eventually, pause};

/// One call over HTTP. Nothing if the connection ended without an answer.
fn call(address: SocketAddr, path: &str, body: &Value) -> Option<Value> {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    // A connection that is reset says as much as one that is closed.
    let _ = stream.read_to_string(&mut text);
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

fn answered(address: SocketAddr, path: &str, body: &Value) -> Value {
    let answer = call(address, path, body).unwrap_or_else(|| panic!("{path}: no answer"));
    assert!(answer.get("error").is_none(), "{path}: {answer}");
    answer
}

fn kill_and_start_again(place: &Place) {
    let mut service = place.service();
    service.kill();
    service.start_again();
    service.wait_until_it_answers();
}

/// A holder and a waiter that use the library notice nothing but a pause.
#[test]
fn over_tcp_a_killed_service_goes_on_with_its_sessions_and_their_waits() {
    let _beside = beside_others();
    let place = Place::served();
    let mut holder = place.worker("hold", &["job", "2000"]);
    let granted = holder.wait_for("granted", PATIENCE).expect("the holder gets the lease");
    let waiter = place.worker("hold", &["job", "2000"]);
    let shown = || -> Value {
        let shown = place.command(&["get", "--json", "job"]).output().unwrap();
        serde_json::from_slice(&shown.stdout).unwrap()
    };
    eventually("the second waits", || (shown()["waiting"] == 1).then_some(()));
    let mut lines = Vec::new();
    for _ in 0..5 {
        kill_and_start_again(&place);
        lines.extend(holder.drain());
        lines.extend(holder.until("it is held", |words| words[0] == "state" && words[1] == "held"));
        let shown = shown();
        assert_eq!(shown["holders"][0]["token"], granted[1].as_str(), "{shown}");
        assert_eq!(shown["waiting"], 1, "{shown}");
    }
    lines.extend(holder.drain());
    assert!(!lines.iter().any(|words| words[0] == "state" && words[1] == "ended"), "the lease was lost");
    holder.kill();
    waiter.wait_for("granted", PATIENCE).expect("the wait has survived");
}

/// A call that is held when the service is killed ends without an answer. The next renewal says what became of it.
#[test]
fn over_tcp_a_call_that_waited_in_a_killed_service_is_found_by_a_renewal() {
    let _beside = beside_others();
    let place = Place::served();
    let address = place.service().address();
    let open = |label: &str| {
        let opened = answered(address, "/v1/session/open", &json!({ "label": label, "ttl_ms": 20_000 }));
        opened["session_key"].as_str().unwrap().to_owned()
    };
    let (first, second) = (open("first"), open("second"));
    let lease = answered(address, "/v1/lease/acquire", &json!({ "session_key": first, "resource": "job" }));
    let token = lease["leases"][0]["token"].clone();
    let asked = json!({ "session_key": second, "resource": "job", "wait_ms": 60_000 });
    let waiting = std::thread::spawn(move || call(address, "/v1/lease/acquire", &asked));
    let get = || answered(address, "/v1/lease/get", &json!({ "resource": "job" }));
    while get()["lease"]["waiting"] != 1 {
        pause(Duration::from_millis(2));
    }
    kill_and_start_again(&place);
    assert_eq!(waiting.join().unwrap(), None, "nobody was there to answer");

    let renewed = answered(address, "/v1/session/renew", &json!({ "session_key": second }));
    assert_eq!(renewed["leases"], json!([]), "{renewed}");
    assert_eq!(renewed["waits"][0]["resources"], json!(["job"]), "{renewed}");
    let kept = answered(address, "/v1/session/renew", &json!({ "session_key": first }));
    assert_eq!(kept["leases"][0]["token"], token, "{kept}");
    answered(
        address,
        "/v1/lease/release",
        &json!({ "session_key": first, "resource": "job", "token": token }),
    );
    let renewed = answered(address, "/v1/session/renew", &json!({ "session_key": second }));
    assert_eq!(renewed["leases"][0]["resource"], "job", "{renewed}");
    assert_eq!(renewed["waits"], json!([]), "{renewed}");
}
