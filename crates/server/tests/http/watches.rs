//! Watches: order, prefixes, resuming, and where that is not possible.

use serde_json::{Value, json};

use super::client::Watch;
use super::stage::Stage;

fn newest(stage: &Stage) -> u64 {
    let text = stage.get("/v1/lease/list?limit=1").good()["revision"].clone();
    text.as_str().expect("a read says its revision").parse().expect("a revision is a number")
}

#[test]
fn a_watch_tells_everything_in_order() {
    let stage = Stage::new();
    let key = stage.open("web");
    let (mut watch, begin) = Watch::begin(stage.address, "/v1/watch", &[]);
    assert_eq!(begin, newest(&stage));
    let token = stage.take(&key, "job");
    let lease = json!({ "session_key": key, "resource": "job", "token": token });
    let with = |rest: Value| {
        let mut body = lease.clone();
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    stage.post("/v1/lease/set-value", &with(json!({ "value": "a" }))).good();
    stage.post("/v1/register/write", &with(json!({ "key": "k", "value": "v" }))).good();
    stage.post("/v1/lease/release", &lease).good();
    let session = key.split('-').next().unwrap();
    let granted = watch.change();
    assert_eq!(
        granted,
        json!({
            "kind": "granted", "resource": "job", "token": token, "fence_token": token, "slot": null, "shared": false,
            "session": session, "label": "web", "value": null, "value_hex": null, "value_left_out": false,
        })
    );
    let set = watch.change();
    assert_eq!(
        (&set["kind"], &set["value"], &set["session"]),
        (&json!("value-set"), &json!("a"), &json!(session))
    );
    let written = json!({ "kind": "register-written", "resource": "job", "key": "k", "token": token, "removed": false });
    assert_eq!(watch.change(), written);
    assert_eq!(
        watch.change(),
        json!({
            "kind": "ended", "resource": "job", "token": token, "session": session, "label": "web", "ended": "released",
            "by": null, "reason": null, "successor": null, "taken_by": null,
        })
    );
}

#[test]
fn all_changes_of_one_revision_that_match_are_one_message() {
    let stage = Stage::new();
    let key = stage.open("x");
    let (mut all, _) = Watch::begin(stage.address, "/v1/watch", &[]);
    let (mut some, _) = Watch::begin(stage.address, "/v1/watch?prefix=b%2F", &[]);
    stage.take(&key, "a/0");
    let resources = json!([{ "resource": "a/1" }, { "resource": "b/1" }, { "resource": "b/2" }]);
    stage.post("/v1/lease/acquire", &json!({ "session_key": key, "resources": resources })).good();
    assert_eq!(all.change()["resource"], "a/0");
    let names = |events: Vec<Value>| -> Vec<Value> {
        events.into_iter().map(|event| event["resource"].clone()).collect()
    };
    let (revision, events) = all.changes();
    assert_eq!(names(events), ["a/1", "b/1", "b/2"]);
    let (same, events) = some.changes();
    assert_eq!((same, names(events)), (revision, vec![json!("b/1"), json!("b/2")]));
}

#[test]
fn list_then_watch_misses_nothing() {
    let stage = Stage::new();
    let key = stage.open("x");
    let revision = newest(&stage);
    let token = stage.take(&key, "job");
    stage.release(&key, "job", &token);
    let (mut watch, begin) = Watch::begin(stage.address, &format!("/v1/watch?after={revision}"), &[]);
    assert_eq!(begin, revision);
    assert_eq!(watch.change()["kind"], "granted");
    assert_eq!(watch.change()["kind"], "ended");
}

#[test]
fn a_watch_that_broke_off_goes_on_behind_what_was_seen() {
    let stage = Stage::new();
    let key = stage.open("x");
    let (mut watch, begin) = Watch::begin(stage.address, "/v1/watch", &[]);
    for name in ["a", "b", "c"] {
        stage.take(&key, name);
    }
    let (seen, _) = watch.changes();
    drop(watch);
    let header = format!("Last-Event-ID: {seen}");
    // The header wins: it is what the client has seen since it asked first.
    let (mut watch, resumed) = Watch::begin(stage.address, &format!("/v1/watch?after={begin}"), &[&header]);
    assert_eq!(resumed, seen);
    assert_eq!(watch.change()["resource"], "b");
    assert_eq!(watch.change()["resource"], "c");
    for bad in ["x", "-1", ""] {
        let reply = stage.connect().ask("GET", "/v1/watch", &[&format!("Last-Event-ID: {bad}")], b"");
        assert_eq!(reply.fault(400, "bad-field", "failed"), json!({ "field": "last-event-id" }));
    }
}

#[test]
fn a_revision_of_the_future_is_refused() {
    let stage = Stage::new();
    let newest = newest(&stage);
    let reply = stage.get(&format!("/v1/watch?after={}", newest + 1_000));
    let details = reply.fault(409, "revision-ahead", "failed");
    assert_eq!(details["after"], (newest + 1_000).to_string());
    assert!(details["newest"].as_str().unwrap().parse::<u64>().unwrap() >= newest);
}

#[test]
fn what_is_forgotten_is_refused_by_name() {
    let stage = Stage::new();
    let key = stage.open("x");
    let begin = newest(&stage);
    // About a quarter of a megabyte each, and eight megabytes are kept.
    let value = "v".repeat(4_096);
    for round in 0..40 {
        let resources: Vec<Value> = (0..64).map(|i| json!({ "resource": format!("r{i}") })).collect();
        let body = json!({ "session_key": key, "resources": resources, "value": value });
        let granted = stage.post("/v1/lease/acquire", &body).good();
        assert_eq!(granted["outcome"], "granted", "round {round}");
        for lease in granted["leases"].as_array().unwrap() {
            stage.release(&key, lease["resource"].as_str().unwrap(), lease["token"].as_str().unwrap());
        }
    }
    let details = stage.get(&format!("/v1/watch?after={begin}")).fault(410, "revision-too-old", "failed");
    assert_eq!(details["after"], begin.to_string());
    let oldest = details["oldest"].as_str().unwrap();
    let (mut watch, _) = Watch::begin(stage.address, &format!("/v1/watch?after={oldest}"), &[]);
    watch.changes();
}

#[test]
fn one_watch_too_many_is_refused_and_a_place_that_is_left_is_free() {
    let stage = Stage::with(|config| {
        config.limits.max_watches = 2;
        config.limits.max_watches_per_connection = 2;
    });
    let (first, _) = Watch::begin(stage.address, "/v1/watch", &[]);
    let (_second, _) = Watch::begin(stage.address, "/v1/watch", &[]);
    let details = stage.get("/v1/watch").fault(429, "too-many-watches", "failed");
    assert_eq!(details, json!({ "limit": 2 }));
    drop(first);
    stage.until("the place is free", || {
        let mut connection = stage.connect();
        connection.send_request("GET", "/v1/watch", &[], b"");
        connection.head().is_some_and(|(status, _)| status == 200)
    });
}

#[test]
fn a_watch_with_nothing_to_tell_says_how_far_the_log_is() {
    let stage = Stage::new();
    let key = stage.open("x");
    let (mut watch, begin) = Watch::begin(stage.address, "/v1/watch?prefix=nothing", &[]);
    stage.take(&key, "job");
    let message = watch.next().unwrap();
    assert_eq!(message.event, "progress");
    let revision = message.id.unwrap();
    assert!(revision > begin, "{revision} is not after {begin}");
    Watch::begin(stage.address, "/v1/watch", &[&format!("Last-Event-ID: {revision}")]);
}
