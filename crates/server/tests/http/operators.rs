//! What needs no session: asking for a release, and revoking.

use serde_json::{Value, json};

use super::stage::Stage;

fn revoke(stage: &Stage, token: &str, now: bool) -> super::client::Reply {
    let body = json!({ "resource": "job", "token": token, "reason": "stuck", "by": "alice", "now": now });
    stage.post("/v1/lease/revoke", &body)
}

#[test]
fn a_revoked_lease_goes_to_nobody_until_its_holder_knows() {
    let stage = Stage::new();
    let (holder, next) = (stage.open("holder"), stage.open("next"));
    let token = stage.take(&holder, "job");
    let held_back = revoke(&stage, &token, false).good()["held_back_ms"].as_u64().unwrap();
    assert!((1..=61_000).contains(&held_back), "{held_back}");
    let acquire = json!({ "session_key": next, "resource": "job" });
    let details = stage.post("/v1/lease/acquire", &acquire).fault(409, "not-free", "refused");
    assert_eq!((&details["why"], &details["token"]), (&json!("revoke-pending"), &json!(token)));
    assert_eq!(stage.renew(&holder)["leases"], json!([]), "a renewal does not count for it any more");
    stage.release(&holder, "job", &token);
    stage.take(&next, "job");
    let history = stage.get("/v1/lease/history?resource=job").good();
    let past = &history["history"][0];
    let told = (&past["ended"], &past["by"], &past["reason"]);
    assert_eq!(told, (&json!("revoked"), &json!("alice"), &json!("stuck")));
}

#[test]
fn whoever_cannot_wait_relies_on_the_fence() {
    let stage = Stage::new();
    let (holder, next) = (stage.open("holder"), stage.open("next"));
    let token = stage.take(&holder, "job");
    assert_eq!(revoke(&stage, &token, true).good(), json!({ "held_back_ms": 0 }));
    let later: u64 = stage.take(&next, "job").parse().unwrap();
    assert!(later > token.parse().unwrap());
}

#[test]
fn a_revoke_touches_no_other_lease() {
    let stage = Stage::new();
    let holder = stage.open("holder");
    let old = stage.take(&holder, "job");
    stage.release(&holder, "job", &old);
    stage.take(&holder, "job");
    let details = revoke(&stage, &old, false).fault(409, "not-current", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": old, "ended": "released" }));
    assert_eq!(stage.lease("job")["held"], true);
    let reasonless = json!({ "resource": "job", "token": old });
    let details = stage.post("/v1/lease/revoke", &reasonless).fault(400, "bad-field", "failed");
    assert_eq!(details, json!({ "field": "reason" }));
}

#[test]
fn a_holder_learns_with_its_renewal_that_it_is_asked_to_release() {
    let stage = Stage::new();
    let holder = stage.open("holder");
    let token = stage.take(&holder, "job");
    let ask = |body: Value| stage.post("/v1/lease/ask-release", &body);
    assert_eq!(ask(json!({ "resource": "job" })).good(), json!({ "token": token, "label": "holder" }));
    assert_eq!(stage.renew(&holder)["leases"][0]["release_requested"], true);
    ask(json!({ "resource": "job", "token": token, "by": "alice" })).good();
    let details = ask(json!({ "resource": "job", "token": "1" })).fault(409, "not-current", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": "1", "ended": null }));
    let details = ask(json!({ "resource": "other" })).fault(409, "not-held", "refused");
    assert_eq!(details, json!({ "resource": "other" }));
}
