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
    stage.post("/v1/lease/release", &body).fault(409, "token-ahead", "refused")
}

fn clear(stage: &Stage, token: &str) -> super::client::Reply {
    let body = json!({ "resource": "job", "token": token, "reason": "made up", "by": "alice" });
    stage.post("/v1/lease/clear-alarm", &body)
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
    let details = stage.post("/v1/lease/acquire", &acquire).fault(409, "not-free", "refused");
    assert_eq!(details, json!({ "resource": "job", "why": "alarm", "token": AHEAD }));
    stage.take(&next, "other");
    let details = clear(&stage, "4710").fault(409, "no-such-alarm", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": "4710", "raised": AHEAD }));
    let reasonless = json!({ "resource": "job", "token": AHEAD });
    let details = stage.post("/v1/lease/clear-alarm", &reasonless).fault(400, "bad-field", "failed");
    assert_eq!(details, json!({ "field": "reason" }));
    assert_eq!(clear(&stage, AHEAD).good(), json!({}));
    assert_eq!(metric(&stage, "leasehold_alarms"), 0);
    stage.take(&next, "job");
    let details = clear(&stage, AHEAD).fault(409, "no-such-alarm", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": AHEAD, "raised": null }));
    assert_eq!(stage.get("/v1/lease/clear-alarm").status, 405);
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
    for reply in [stage.get("/v1/lease/alarms"), stage.post("/v1/lease/alarms", &json!({}))] {
        let answer = reply.good();
        assert_eq!(answer["alarms"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(without_age(answer["alarms"][0].clone()), expected);
        assert!(answer["revision"].is_string(), "{answer}");
    }
    let lease = stage.lease("job");
    assert_eq!(lease["held"], true, "whoever holds it keeps it");
    assert_eq!(without_age(lease["alarm"].clone()), expected);
    let listed = stage.get("/v1/lease/list").good();
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
    stage.post("/v1/register/write", &write).fault(409, "token-ahead", "refused");
    let raised = json!({ "kind": "alarm-raised", "resource": "job", "token": AHEAD, "by": "holder" });
    assert_eq!(watch.change(), raised);
    let wait = json!({ "session_key": next, "resource": "job", "wait_ms": 60_000, "when_queued": "return" });
    assert_eq!(stage.post("/v1/lease/acquire", &wait).good()["outcome"], "queued");
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

#[test]
fn a_question_about_a_token_raises_nothing_and_is_counted() {
    let stage = Stage::new();
    let key = stage.open("web");
    let token = stage.take(&key, "job");
    assert_eq!(metric(&stage, "leasehold_token_checks_ahead_total"), 0);
    let answer = stage.get(&format!("/v1/lease/check?resource=job&token={AHEAD}")).good();
    assert_eq!((&answer["state"], &answer["newest"]), (&json!("ahead"), &json!(token)));
    let answer = stage.get(&format!("/v1/lease/check?resource=job&token={token}")).good();
    assert_eq!((&answer["state"], &answer["newest"]), (&json!("current"), &Value::Null));
    assert_eq!(stage.get("/v1/lease/alarms").good()["alarms"], json!([]));
    assert_eq!(metric(&stage, "leasehold_token_checks_ahead_total"), 1);
    assert_eq!(metric(&stage, "leasehold_alarms"), 0);
}
