//! Tokens that were never granted: what raises an alarm, whom it stops, and who answers it.

use serde_json::{Value, json};

use super::client::Watch;
use super::stage::Stage;

/// Above every token that is granted here.
const AHEAD: &str = "4711";

/// Shows a token that was never granted, which is refused; gives the details.
#[track_caller]
fn show(stage: &Stage, key: &str) -> Value {
    let body = json!({ "session_key": key, "resource": "job", "token": AHEAD });
    stage.post("/v1/leases/release", &body).fault(409, "token-ahead", "refused")
}

fn clear(stage: &Stage, token: &str) -> super::client::Reply {
    let body = json!({ "resource": "job", "token": token, "reason": "made up", "by": "alice" });
    stage.post("/v1/alarms/clear", &body)
}

/// The value of a metric without labels.
#[track_caller]
fn metric(stage: &Stage, name: &str) -> u64 {
    let reply = stage.get("/metrics");
    let text = String::from_utf8(reply.body).expect("metrics are text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a metric is a number")
}

#[test]
fn a_token_that_was_never_granted_stops_its_resource_and_no_other_until_it_is_answered() {
    let stage = Stage::new();
    let (holder, next) = (stage.open("holder"), stage.open("next"));
    let token = stage.take(&holder, "job");
    let details = show(&stage, &holder);
    assert_eq!(details, json!({ "resource": "job", "token": AHEAD, "newest": token }));
    assert_eq!(metric(&stage, "leasehold_alarms"), 1);
    stage.release(&holder, "job", &token);
    let acquire = json!({ "session_key": next, "resource": "job" });
    let details = stage.post("/v1/leases/acquire", &acquire).fault(409, "not-free", "refused");
    assert_eq!(details, json!({ "resource": "job", "why": "alarm", "token": AHEAD }));
    stage.take(&next, "other");
    let details = clear(&stage, "4710").fault(404, "no-such-alarm", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": "4710", "raised": AHEAD }));
    let reasonless = json!({ "resource": "job", "token": AHEAD });
    let details = stage.post("/v1/alarms/clear", &reasonless).fault(400, "bad-field", "refused");
    assert_eq!(details, json!({ "field": "reason" }));
    assert_eq!(clear(&stage, AHEAD).good(), json!({}));
    assert_eq!(metric(&stage, "leasehold_alarms"), 0);
    stage.take(&next, "job");
    let details = clear(&stage, AHEAD).fault(404, "no-such-alarm", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": AHEAD, "raised": null }));
    assert_eq!(stage.get("/v1/alarms/clear").status, 405);
}

#[test]
fn alarms_are_listed_and_seen_with_their_resources() {
    let stage = Stage::new();
    let key = stage.open("web");
    stage.take(&key, "job");
    assert_eq!(stage.lease("job")["alarm"], Value::Null);
    show(&stage, &key);
    let without_age = |mut alarm: Value| {
        assert!(alarm["age_ms"].take().is_u64(), "{alarm}");
        alarm
    };
    let expected = json!({ "resource": "job", "token": AHEAD, "by": "web", "age_ms": null });
    let answer = stage.get("/v1/alarms").good();
    assert_eq!(answer["alarms"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(without_age(answer["alarms"][0].clone()), expected);
    assert!(answer["revision"].is_string(), "{answer}");
    let lease = stage.lease("job");
    assert_eq!(lease["held"], true, "whoever holds it keeps it");
    assert_eq!(without_age(lease["alarm"].clone()), expected);
    let listed = stage.get("/v1/leases").good();
    assert_eq!(without_age(listed["leases"][0]["alarm"].clone()), expected);
}

#[test]
fn whoever_waits_is_served_when_the_alarm_is_answered_and_watchers_see_both() {
    let stage = Stage::new();
    let (holder, next) = (stage.open("holder"), stage.open("next"));
    let (mut watch, _) = Watch::begin(stage.address, "/v1/watch", &[]);
    let token = stage.take(&holder, "job");
    assert_eq!(watch.change()["kind"], "granted");
    let write = json!({ "session_key": holder, "resource": "job", "token": AHEAD, "key": "k", "value": "v" });
    stage.post("/v1/registers/write", &write).fault(409, "token-ahead", "refused");
    let raised = json!({ "kind": "alarm-raised", "resource": "job", "token": AHEAD, "by": "holder" });
    assert_eq!(watch.change(), raised);
    let wait = json!({ "session_key": next, "resource": "job", "wait_ms": 60_000, "when_queued": "return" });
    assert_eq!(stage.post("/v1/leases/acquire", &wait).good()["outcome"], "queued");
    stage.release(&holder, "job", &token);
    assert_eq!(watch.change()["kind"], "ended");
    assert_eq!(stage.lease("job")["waiting"], 1, "nobody is served");
    clear(&stage, AHEAD).good();
    let cleared = json!({
        "kind": "alarm-cleared", "resource": "job", "token": AHEAD, "by": "alice", "reason": "made up",
    });
    let (_, changes) = watch.changes();
    assert!(changes.contains(&cleared), "{changes:?}");
    assert!(changes.iter().any(|change| change["kind"] == "granted"), "{changes:?}");
    assert_eq!(stage.renew(&next)["leases"][0]["resource"], "job");
}

/// There to find: a name stopped by a number that no log could ever grant, and an alarm that no command could answer.
#[test]
fn a_number_that_can_be_no_token_is_a_bad_field_at_every_call() {
    let stage = Stage::new();
    let key = stage.open("web");
    let token = stage.take(&key, "job");
    let beyond = "9223372036854775808";
    let calls = [
        ("leases/release", json!({})),
        ("leases/set-value", json!({ "value": "v" })),
        ("leases/drain", json!({ "in_flight": 1, "within_ms": 1 })),
        ("leases/ready", json!({})),
        ("registers/write", json!({ "key": "k", "value": "v" })),
        ("leases/revoke", json!({ "reason": "r" })),
        ("leases/ask-release", json!({})),
        ("alarms/clear", json!({ "reason": "r" })),
    ];
    for (call, mut body) in calls {
        body["resource"] = json!("job");
        body["token"] = json!(beyond);
        let of_session = !["leases/revoke", "leases/ask-release", "alarms/clear"].contains(&call);
        if of_session {
            body["session_key"] = json!(key);
        }
        let details = stage.post(&format!("/v1/{call}"), &body).fault(400, "bad-field", "refused");
        assert_eq!(details, json!({ "field": "token" }), "{call}");
    }
    let details = stage.get(&format!("/v1/leases/check?resource=job&token={beyond}"));
    assert_eq!(details.fault(400, "bad-field", "refused"), json!({ "field": "token" }));
    assert_eq!((metric(&stage, "leasehold_alarms"), metric(&stage, "leasehold_tokens_ahead_total")), (0, 0));
    stage.release(&key, "job", &token);
}

#[test]
fn one_session_stops_sixteen_names_and_what_it_shows_beyond_is_refused_and_counted() {
    let stage = Stage::new();
    let (key, other) = (stage.open("slip"), stage.open("other"));
    for number in 0..20 {
        let body = json!({ "session_key": key, "resource": format!("job-{number}"), "token": AHEAD });
        stage.post("/v1/leases/release", &body).fault(409, "token-ahead", "refused");
    }
    assert_eq!(
        (metric(&stage, "leasehold_alarms"), metric(&stage, "leasehold_tokens_ahead_total")),
        (16, 20)
    );
    stage.take(&other, "job-16");
    stage.take(&other, "job");
    let acquire = json!({ "session_key": other, "resource": "job-15" });
    stage.post("/v1/leases/acquire", &acquire).fault(409, "not-free", "refused");
    let body = json!({ "session_key": other, "resource": "job-17", "token": AHEAD });
    stage.post("/v1/leases/release", &body).fault(409, "token-ahead", "refused");
    assert_eq!(metric(&stage, "leasehold_alarms"), 17, "another session may still stop a name");
}

#[test]
fn a_question_about_a_token_raises_nothing_and_is_counted() {
    let stage = Stage::new();
    let key = stage.open("web");
    let token = stage.take(&key, "job");
    assert_eq!(metric(&stage, "leasehold_token_checks_ahead_total"), 0);
    let answer = stage.get(&format!("/v1/leases/check?resource=job&token={AHEAD}")).good();
    assert_eq!((&answer["state"], &answer["newest"]), (&json!("ahead"), &json!(token)));
    let answer = stage.get(&format!("/v1/leases/check?resource=job&token={token}")).good();
    assert_eq!((&answer["state"], &answer["newest"]), (&json!("current"), &Value::Null));
    assert_eq!(stage.get("/v1/alarms").good()["alarms"], json!([]));
    assert_eq!(metric(&stage, "leasehold_token_checks_ahead_total"), 1);
    assert_eq!(metric(&stage, "leasehold_alarms"), 0);
}
