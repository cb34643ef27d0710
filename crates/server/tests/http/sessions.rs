//! Sessions: opened, found again, renewed, overdue, closed, listed.

use serde_json::json;

use super::stage::Stage;

#[test]
fn an_open_says_how_to_keep_the_session() {
    let stage = Stage::new();
    let opened = stage.post("/v1/sessions", &json!({})).good();
    let (id, key) = (opened["session"].as_str().unwrap(), opened["session_key"].as_str().unwrap());
    assert_eq!(key.len(), id.len() + 33, "{key}");
    assert!(key.starts_with(&format!("{id}-")), "{key}");
    assert_eq!((&opened["ttl_ms"], &opened["drift_ppm"]), (&json!(10_000), &json!(1_000)));
    assert_eq!((&opened["renew_every_ms"], &opened["margin_ms"]), (&json!(3_333), &json!(1_000)));
    assert_eq!((&opened["renewal"], &opened["repeated"]), (&json!("0"), &json!(false)));
    // A body is not needed, and two opens are two sessions.
    let again = stage.connect().ask("POST", "/v1/sessions", &["Content-Type: application/json"], b"").good();
    assert_ne!(again["session_key"], opened["session_key"]);
}

#[test]
fn an_open_that_is_repeated_with_its_nonce_finds_the_session() {
    let stage = Stage::new();
    let body = json!({ "nonce": "00112233445566778899aabbccddeeff", "ttl_ms": 60_000 });
    let first = stage.post("/v1/sessions", &body).good();
    let second = stage.post("/v1/sessions", &body).good();
    assert_eq!(second["repeated"], true);
    assert_eq!(first["session_key"], second["session_key"]);
    assert!(first["session_key"].as_str().unwrap().ends_with("-00112233445566778899aabbccddeeff"));
}

#[test]
fn own_numbers_are_judged_before_anything_is_opened() {
    let stage = Stage::new();
    let fitting = json!({ "renew_every_ms": 2_000, "margin_ms": 1_500, "round_trip_ms": 20 });
    let opened = stage.post("/v1/sessions", &fitting).good();
    assert_eq!((&opened["renew_every_ms"], &opened["margin_ms"]), (&json!(2_000), &json!(1_500)));
    let half = json!({ "ttl_ms": 10_000, "renew_every_ms": 5_000 });
    let reply = stage.post("/v1/sessions", &half);
    let message = reply.message();
    assert!(message.contains("2 x 5000 ms + 100 ms = 10100 ms is not below"), "{message}");
    assert_eq!(reply.fault(400, "bad-numbers", "refused")["inequality"], "availability");
    let bare = stage.post("/v1/sessions", &json!({ "margin_ms": 9 }));
    assert_eq!(bare.fault(400, "bad-numbers", "refused")["inequality"], "safety");
    // What is outside the limits of the table is the table's to refuse.
    stage.post("/v1/sessions", &json!({ "ttl_ms": 400, "margin_ms": 50 })).fault(
        400,
        "ttl-out-of-range",
        "refused",
    );
    let sessions = stage.get("/v1/sessions").good();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn numbers_that_cannot_be_are_refused_with_their_limits() {
    let stage = Stage::new();
    for ttl in [0, 499, 300_001, u64::MAX] {
        let details =
            stage.post("/v1/sessions", &json!({ "ttl_ms": ttl })).fault(400, "ttl-out-of-range", "refused");
        assert_eq!(details, json!({ "ttl_ms": ttl, "min_ms": 500, "max_ms": 300_000 }));
    }
    for policies in [json!({ "grace_ms": 2, "hard_ms": 1 }), json!({ "delay_ms": 86_400_001 })] {
        stage.post("/v1/sessions", &policies).fault(400, "bad-policies", "refused");
    }
    let bad = stage.post("/v1/sessions", &json!({ "label": "x".repeat(257) }));
    assert_eq!(bad.fault(400, "bad-field", "refused"), json!({ "field": "label" }));
    assert_eq!(bad.message(), "label: label of 257 bytes is above the maximum of 256 bytes");
    stage.post("/v1/sessions", &json!({ "nonce": "0011" })).fault(400, "bad-field", "refused");
}

#[test]
fn every_renewal_has_the_next_number_and_lists_what_the_session_has() {
    let stage = Stage::new();
    let (holder, waiter) = (stage.open("holder"), stage.open("waiter"));
    assert_eq!(stage.renew(&holder), json!({ "renewal": "1", "leases": [], "waits": [] }));
    let token = stage.take(&holder, "job");
    let wait =
        json!({ "session_key": waiter, "resource": "job", "wait_ms": 60_000, "when_queued": "return" });
    let queued = stage.post("/v1/leases/acquire", &wait).good();
    let held = json!({ "resource": "job", "token": token, "fence_token": token, "slot": null, "release_requested": false });
    assert_eq!(stage.renew(&holder), json!({ "renewal": "2", "leases": [held], "waits": [] }));
    let waits = json!([{ "acquire": queued["acquire"], "resources": ["job"] }]);
    assert_eq!(stage.renew(&waiter), json!({ "renewal": "1", "leases": [], "waits": waits }));
}

#[test]
fn a_session_that_is_closed_is_over() {
    let stage = Stage::new();
    let key = stage.open("x");
    stage.take(&key, "job");
    assert_eq!(stage.post("/v1/sessions/SESSION/close", &json!({ "session_key": key })).good(), json!({}));
    assert_eq!(stage.lease("job")["held"], false);
    let id = key.split('-').next().unwrap();
    for path in ["/v1/sessions/SESSION/renew", "/v1/sessions/SESSION/close"] {
        let details = stage.post(path, &json!({ "session_key": key })).fault(410, "session-ended", "refused");
        assert_eq!(details, json!({ "session": id }));
    }
    let acquire = json!({ "session_key": key, "resource": "job" });
    stage.post("/v1/leases/acquire", &acquire).fault(410, "session-ended", "refused");
}

#[test]
fn an_id_without_its_nonce_is_worth_nothing() {
    let stage = Stage::new();
    let key = stage.open("x");
    let token = stage.take(&key, "job");
    let id = key.split('-').next().unwrap();
    let ahead = "9999999999999999999";
    for (forged, named) in
        [(format!("{id}-{}", "0".repeat(32)), id), (format!("{ahead}-{}", "0".repeat(32)), ahead)]
    {
        let session = json!({ "session_key": forged });
        let lease = json!({ "session_key": forged, "resource": "job", "token": token });
        for (path, body) in [
            ("/v1/sessions/SESSION/renew", &session),
            ("/v1/sessions/SESSION/close", &session),
            ("/v1/leases/release", &lease),
        ] {
            let reply = stage.post(path, body);
            assert_eq!(reply.fault(403, "not-your-session", "refused"), json!({ "session": named }));
            assert!(!String::from_utf8_lossy(&reply.body).contains(&key), "a proof is never repeated");
        }
    }
    assert_eq!(stage.lease("job")["held"], true);
}

#[test]
fn an_overdue_session_is_granted_nothing_until_it_is_renewed() {
    let stage = Stage::new();
    let opened = stage.post("/v1/sessions", &json!({ "ttl_ms": 500, "grace_ms": 60_000 })).good();
    let key = opened["session_key"].as_str().unwrap();
    let token = stage.take(key, "job");
    stage.until("the session is overdue", || {
        stage.get("/v1/sessions").good()["sessions"][0]["overdue"] == true
    });
    let other = json!({ "session_key": key, "resource": "other" });
    stage.post("/v1/leases/acquire", &other).fault(409, "session-overdue", "refused");
    let thief = stage.open("thief");
    let details = stage
        .post("/v1/leases/acquire", &json!({ "session_key": thief, "resource": "job" }))
        .fault(409, "not-free", "refused");
    assert_eq!((&details["why"], &details["overdue"]), (&json!("held"), &json!(true)));
    assert_eq!(stage.renew(key)["leases"][0]["token"], token, "grace keeps the lease");
}

#[test]
fn a_session_that_is_not_renewed_ends() {
    let stage = Stage::new();
    let opened = stage.post("/v1/sessions", &json!({ "ttl_ms": 500 })).good();
    let key = opened["session_key"].as_str().unwrap();
    let token = stage.take(key, "job");
    stage.until("the lease is over", || stage.lease("job")["held"] == false);
    stage.post("/v1/sessions/SESSION/renew", &json!({ "session_key": key })).fault(
        410,
        "session-ended",
        "refused",
    );
    let check = stage.get(&format!("/v1/leases/check?resource=job&token={token}")).good();
    assert_eq!((&check["state"], &check["ending"]["ended"]), (&json!("ended"), &json!("expired")));
}

#[test]
fn sessions_are_listed_in_pages() {
    let stage = Stage::new();
    let keys: Vec<String> = (0..3).map(|i| stage.open(&format!("s{i}"))).collect();
    let ids: Vec<&str> = keys.iter().map(|key| key.split('-').next().unwrap()).collect();
    let first = stage.get("/v1/sessions?limit=2").good();
    assert_eq!(first["next"], ids[1]);
    let listed: Vec<&str> = first["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["session"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ids[..2]);
    let second = stage.get(&format!("/v1/sessions?after={}&limit=2", ids[1])).good();
    assert_eq!((&second["next"], &second["sessions"][0]["label"]), (&json!(null), &json!("s2")));
    let text = second.to_string();
    assert!(keys.iter().all(|key| !text.contains(key.split('-').nth(1).unwrap())), "no list shows a nonce");
}
