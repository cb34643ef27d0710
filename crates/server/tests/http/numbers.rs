//! Numbered calls: sent again, joined, continued, cancelled before they arrive, and settled.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Connection, Reply};
use super::stage::{Stage, addressed};

/// What an acquire of `job` says.
fn acquire(key: &str, number: u64) -> Value {
    json!({ "session_key": key, "resource": "job", "number": number.to_string() })
}

fn waiting(key: &str, number: u64, wait_ms: u64) -> Value {
    let mut body = acquire(key, number);
    body["wait_ms"] = wait_ms.into();
    body
}

fn send(stage: &Stage, body: &Value) -> Reply {
    stage.post("/v1/leases/acquire", body)
}

/// Asks on a connection of its own and does not wait for the answer.
fn ask(stage: &Stage, body: &Value) -> Connection {
    let mut connection = stage.connect();
    let (path, headers, body) = addressed("/v1/leases/acquire", body);
    connection.send_request("POST", &path, &[&headers[0], &headers[1]], body.as_bytes());
    connection
}

/// What a call that was kept open long enough says.
fn accepted(reply: &Reply) -> Value {
    assert_eq!(reply.status, 202, "{}", String::from_utf8_lossy(&reply.body));
    let body = reply.json();
    assert_eq!(body["outcome"], "queued", "{body}");
    body
}

#[test]
fn an_acquire_sent_again_is_answered_as_the_first_time() {
    let stage = Stage::new();
    let key = stage.open("a");
    let first = send(&stage, &acquire(&key, 1)).good();
    assert_eq!((&first["repeated"], &first["leases"][0]["held"]), (&json!(false), &json!(true)));
    stage.renew(&key);
    let mut again = send(&stage, &acquire(&key, 1)).good();
    assert_eq!(again["repeated"], true);
    again["repeated"] = false.into();
    assert_eq!(again, first, "the renewal too is that of the first answer");
    stage.release(&key, "job", first["leases"][0]["token"].as_str().unwrap());
    let over = send(&stage, &acquire(&key, 1)).good();
    assert_eq!((&over["outcome"], &over["leases"][0]["held"]), (&json!("granted"), &json!(false)));
    assert_eq!(stage.lease("job")["held"], false);
}

#[test]
fn every_changing_call_takes_a_number() {
    let stage = Stage::new();
    let key = stage.open("a");
    let token = send(&stage, &acquire(&key, 1)).good()["leases"][0]["token"].clone();
    let lease = |number: u64| json!({ "session_key": key, "resource": "job", "token": token, "number": number.to_string(), "settled": "1" });
    let with = |number, more: Value| {
        let mut body = lease(number);
        more.as_object().unwrap().iter().for_each(|(field, value)| body[field] = value.clone());
        body
    };
    let calls = [
        ("/v1/leases/set-value", with(2, json!({ "value": "v" }))),
        ("/v1/leases/drain", with(3, json!({ "in_flight": 1, "within_ms": 10 }))),
        ("/v1/leases/ready", with(4, json!({}))),
        ("/v1/registers/write", with(5, json!({ "key": "k", "value": "v" }))),
        ("/v1/leases/release", with(6, json!({}))),
    ];
    for (path, body) in &calls {
        for _ in 0..2 {
            assert_eq!(stage.post(path, body).good(), json!({}), "{path}");
        }
    }
    let close = json!({ "session_key": key, "number": "7", "settled": "7" });
    stage.post("/v1/sessions/SESSION/close", &close).good();
    stage.post("/v1/sessions/SESSION/close", &close).fault(410, "session-ended", "refused");
}

#[test]
fn a_number_of_another_call_and_a_settled_one_are_told_apart() {
    let stage = Stage::new();
    let key = stage.open("a");
    send(&stage, &acquire(&key, 4)).good();
    let reused = send(&stage, &waiting(&key, 4, 1_000));
    assert_eq!(reused.fault(409, "number-reused", "refused"), json!({ "number": "4" }));
    let settled = json!({ "session_key": key, "resource": "log", "number": "6", "settled": "5" });
    send(&stage, &settled).good();
    let late = send(&stage, &acquire(&key, 3));
    assert_eq!(late.fault(500, "number-settled", "unknown"), json!({ "number": "3", "settled": "5" }));
    for (field, body) in [
        ("number", json!({ "session_key": key, "resource": "log", "number": "0" })),
        ("settled", json!({ "session_key": key, "resource": "log", "settled": "5" })),
        ("settled", json!({ "session_key": key, "resource": "log", "number": "7", "settled": "8" })),
    ] {
        assert_eq!(send(&stage, &body).fault(400, "bad-field", "refused")["field"], field);
    }
}

#[test]
fn a_caller_that_hangs_up_leaves_its_numbered_wait_and_the_next_one_joins_it() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    let token = stage.take(&holder, "job");
    let gone = ask(&stage, &waiting(&waiter, 1, 50_000));
    stage.until_waiting("job", 1);
    let mut joined = ask(&stage, &waiting(&waiter, 1, 50_000));
    drop(gone);
    // Longer than it takes to notice a caller that has hung up.
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(stage.lease("job")["waiting"], 1);
    stage.release(&holder, "job", &token);
    let granted = joined.reply(false).unwrap().good();
    assert_eq!((&granted["outcome"], &granted["repeated"]), (&json!("granted"), &json!(true)));
    assert_eq!(stage.lease("job")["holders"][0]["token"], granted["leases"][0]["token"]);
}

#[test]
fn a_wait_that_is_longer_than_a_call_is_continued_by_its_number() {
    let stage = Stage::with(|config| config.http.max_wait = Duration::from_millis(200));
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    let token = stage.take(&holder, "job");
    let without = json!({ "session_key": waiter, "resource": "job", "wait_ms": 201 });
    assert_eq!(send(&stage, &without).fault(400, "bad-request", "refused")["field"], "wait_ms");
    let first = accepted(&send(&stage, &waiting(&waiter, 1, 30_000)));
    let second = accepted(&send(&stage, &waiting(&waiter, 1, 30_000)));
    assert_eq!((&first["acquire"], &first["ahead"]), (&second["acquire"], &json!(0)));
    assert_eq!(stage.lease("job")["waiting"], 1);
    stage.release(&holder, "job", &token);
    let granted = send(&stage, &waiting(&waiter, 1, 30_000)).good();
    assert_eq!((&granted["outcome"], &granted["acquire"]), (&json!("granted"), &first["acquire"]));
}

#[test]
fn the_length_of_a_wait_is_that_of_all_its_calls() {
    let stage = Stage::with(|config| config.http.max_wait = Duration::from_millis(150));
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let mut calls = 0;
    let last = loop {
        let reply = send(&stage, &waiting(&waiter, 1, 500));
        calls += 1;
        if reply.status != 202 {
            break reply;
        }
    };
    assert_eq!(last.fault(409, "wait-ended", "refused")["why"], "timed-out");
    assert!(calls > 1, "{calls} calls");
    // And it is told again.
    let again = send(&stage, &waiting(&waiter, 1, 500));
    assert_eq!(again.fault(409, "wait-ended", "refused")["why"], "timed-out");
}

#[test]
fn a_cancel_of_a_number_reaches_an_acquire_that_has_not_arrived() {
    let stage = Stage::new();
    let key = stage.open("a");
    let cancel = |of: u64, number: u64| {
        let (of, number) = (of.to_string(), number.to_string());
        let body = json!({ "session_key": key, "acquire_number": of, "number": number });
        stage.post("/v1/leases/cancel", &body)
    };
    let cancelled = json!({ "outcome": "cancelled", "leases": [], "repeated": false });
    assert_eq!(cancel(1, 2).good(), cancelled);
    assert_eq!(cancel(1, 2).good()["repeated"], true);
    let late = send(&stage, &acquire(&key, 1));
    assert_eq!(late.fault(409, "wait-ended", "refused")["why"], "cancelled");
    assert_eq!(stage.lease("job"), Value::Null);
    let token = send(&stage, &acquire(&key, 3)).good()["leases"][0]["token"].clone();
    let held = cancel(3, 4).good();
    assert_eq!((&held["outcome"], &held["leases"][0]["token"]), (&json!("already-granted"), &token));
    let both = json!({ "session_key": key, "acquire": "1", "acquire_number": "1" });
    assert_eq!(
        stage.post("/v1/leases/cancel", &both).fault(400, "bad-field", "refused")["field"],
        "acquire_number"
    );
    let neither = json!({ "session_key": key });
    assert_eq!(
        stage.post("/v1/leases/cancel", &neither).fault(400, "bad-field", "refused")["field"],
        "acquire"
    );
}
