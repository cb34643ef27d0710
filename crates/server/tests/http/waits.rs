//! Waits: kept waiting, queued, cancelled, and given up by whoever hangs up.

use serde_json::{Value, json};

use super::client::Connection;
use super::stage::{Stage, addressed};

fn acquire(key: &str, wait_ms: u64) -> Value {
    json!({ "session_key": key, "resource": "job", "wait_ms": wait_ms })
}

/// Asks on a connection of its own and does not wait for the answer.
fn ask(stage: &Stage, body: &Value) -> Connection {
    let mut connection = stage.connect();
    let (path, headers, body) = addressed("/v1/leases/acquire", body);
    connection.send_request("POST", &path, &[&headers[0], &headers[1]], body.as_bytes());
    connection
}

#[test]
fn a_caller_is_kept_waiting_until_it_is_granted() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    let token = stage.take(&holder, "job");
    let mut call = ask(&stage, &acquire(&waiter, 50_000));
    stage.until_waiting("job", 1);
    stage.renew(&waiter);
    stage.release(&holder, "job", &token);
    let granted = call.reply(false).unwrap().good();
    assert_eq!((&granted["outcome"], &granted["renewal"]), (&json!("granted"), &json!("1")));
    assert_eq!(stage.lease("job")["holders"][0]["token"], granted["leases"][0]["token"]);
}

#[test]
fn waits_are_granted_in_the_order_in_which_they_came() {
    let stage = Stage::new();
    let holder = stage.open("holder");
    let mut token = stage.take(&holder, "job");
    let mut key = holder;
    let mut calls = Vec::new();
    for i in 0..3 {
        let waiter = stage.open(&format!("w{i}"));
        calls.push((ask(&stage, &acquire(&waiter, 50_000)), waiter));
        stage.until_waiting("job", i + 1);
    }
    for (mut call, waiter) in calls {
        stage.release(&key, "job", &token);
        let granted = call.reply(false).unwrap().good();
        token = granted["leases"][0]["token"].as_str().unwrap().to_owned();
        key = waiter;
    }
}

#[test]
fn a_wait_that_takes_too_long_ends_and_says_so() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let ended = stage.post("/v1/leases/acquire", &acquire(&waiter, 50));
    assert_eq!(ended.fault(409, "wait-ended", "refused")["why"], "timed-out");
    stage.until_waiting("job", 0);
    stage.post("/v1/leases/acquire", &acquire(&waiter, 0)).fault(409, "not-free", "refused");
    let long = stage.post("/v1/leases/acquire", &acquire(&waiter, 86_400_001));
    assert_eq!(long.fault(400, "bad-request", "refused")["field"], "wait_ms");
}

#[test]
fn a_caller_that_hangs_up_takes_its_wait_with_it() {
    let stage = Stage::new();
    let (holder, waiter, third) = (stage.open("holder"), stage.open("waiter"), stage.open("third"));
    let token = stage.take(&holder, "job");
    let call = ask(&stage, &acquire(&waiter, 50_000));
    stage.until_waiting("job", 1);
    let mut behind = ask(&stage, &acquire(&third, 50_000));
    stage.until_waiting("job", 2);
    drop(call);
    stage.until_waiting("job", 1);
    assert_eq!(stage.renew(&waiter)["waits"], json!([]));
    stage.release(&holder, "job", &token);
    behind.reply(false).unwrap().good();
    assert_eq!(stage.lease("job")["holders"][0]["label"], "third");
}

#[test]
fn whoever_does_not_want_to_be_kept_waiting_is_told_its_place() {
    let stage = Stage::new();
    let (holder, first, second) = (stage.open("holder"), stage.open("first"), stage.open("second"));
    let token = stage.take(&holder, "job");
    let queue = |key: &str| {
        let mut body = acquire(key, 50_000);
        body["when_queued"] = json!("return");
        stage.post("/v1/leases/acquire", &body).good()
    };
    let (a, b) = (queue(&first), queue(&second));
    assert_eq!((&a["outcome"], &a["leases"], &a["ahead"]), (&json!("queued"), &json!([]), &json!(0)));
    assert_eq!(b["ahead"], 1);
    let cancel = |key: &str, queued: &Value| {
        stage.post("/v1/leases/cancel", &json!({ "session_key": key, "acquire": queued["acquire"] }))
    };
    assert_eq!(
        cancel(&second, &b).good(),
        json!({ "outcome": "cancelled", "leases": [], "repeated": false })
    );
    let details = cancel(&second, &b).fault(404, "no-such-wait", "refused");
    assert_eq!(details, json!({ "acquire": b["acquire"] }));
    stage.release(&holder, "job", &token);
    let late = cancel(&first, &a).good();
    assert_eq!(
        (&late["outcome"], &late["leases"][0]["resource"]),
        (&json!("already-granted"), &json!("job"))
    );
    assert_eq!(stage.renew(&first)["leases"][0]["token"], late["leases"][0]["token"]);
}

#[test]
fn a_call_that_waits_is_told_when_another_call_cancels_it() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let mut call = ask(&stage, &acquire(&waiter, 50_000));
    stage.until_waiting("job", 1);
    let waits = stage.renew(&waiter)["waits"].clone();
    let cancel = json!({ "session_key": waiter, "acquire": waits[0]["acquire"] });
    assert_eq!(stage.post("/v1/leases/cancel", &cancel).good()["outcome"], "cancelled");
    let details = call.reply(false).unwrap().fault(409, "wait-ended", "refused");
    assert_eq!(details, json!({ "acquire": waits[0]["acquire"], "why": "cancelled" }));
}

#[test]
fn a_call_that_waits_is_told_when_its_session_ends() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let mut call = ask(&stage, &acquire(&waiter, 50_000));
    stage.until_waiting("job", 1);
    stage.post("/v1/sessions/SESSION/close", &json!({ "session_key": waiter })).good();
    call.reply(false).unwrap().fault(410, "session-ended", "refused");
}

#[test]
fn a_caller_that_hangs_up_behind_bytes_that_it_sent_ahead_gives_its_wait_up_too() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    stage.take(&holder, "job");
    let mut call = ask(&stage, &acquire(&waiter, 50_000));
    call.send(b"G");
    stage.until_waiting("job", 1);
    drop(call);
    stage.until_waiting("job", 0);
}
