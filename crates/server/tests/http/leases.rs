//! Leases: granted, refused, shown, given back; and registers.

use serde_json::json;

use super::stage::Stage;

#[test]
fn a_lease_from_beginning_to_end() {
    let stage = Stage::new();
    let key = stage.open("web-1");
    let body = json!({ "session_key": key, "resource": "jobs/night", "value": "10.0.0.7:80" });
    let acquired = stage.post("/v1/lease/acquire", &body).good();
    let lease = &acquired["leases"][0];
    assert_eq!(
        (&acquired["outcome"], &acquired["renewal"], &acquired["ahead"]),
        (&json!("granted"), &json!("0"), &json!(null))
    );
    assert_eq!((&lease["resource"], &lease["slot"]), (&json!("jobs/night"), &json!(null)));
    assert_eq!(lease["token"], lease["fence_token"]);
    let token = lease["token"].as_str().unwrap();
    let seen = stage.lease("jobs/night");
    let holder = &seen["holders"][0];
    assert_eq!(
        (&seen["held"], &seen["mode"], &seen["waiting"]),
        (&json!(true), &json!("exclusive"), &json!(0))
    );
    assert_eq!(
        (&holder["label"], &holder["token"], &holder["state"]),
        (&json!("web-1"), &json!(token), &json!("held"))
    );
    assert_eq!((&holder["value"], &holder["value_hex"]), (&json!("10.0.0.7:80"), &json!(null)));
    let check =
        |token: &str| stage.get(&format!("/v1/lease/check?resource=jobs%2Fnight&token={token}")).good();
    assert_eq!((&check(token)["state"], &check(token)["ending"]), (&json!("current"), &json!(null)));
    assert_eq!(check("1")["state"], "not-known", "that was the session's number");
    let release = json!({ "session_key": key, "resource": "jobs/night", "token": token, "drained": true });
    assert_eq!(stage.post("/v1/lease/release", &release).good(), json!({}));
    assert_eq!(
        (&check(token)["state"], &check(token)["ending"]["ended"]),
        (&json!("ended"), &json!("drained"))
    );
    let history = stage.get("/v1/lease/history?resource=jobs%2Fnight").good();
    let past = &history["history"][0];
    assert_eq!(
        (&past["token"], &past["label"], &past["ended"]),
        (&json!(token), &json!("web-1"), &json!("drained"))
    );
    // A second release finds nothing, and says how the lease ended.
    let details = stage.post("/v1/lease/release", &release).fault(409, "not-holder", "refused");
    assert_eq!(details, json!({ "resource": "jobs/night", "token": token, "ended": "drained" }));
}

#[test]
fn what_is_held_is_refused_with_its_holder() {
    let stage = Stage::new();
    let (first, second) = (stage.open("first"), stage.open("second"));
    let token = stage.take(&first, "job");
    let body = json!({ "session_key": second, "resource": "job" });
    let reply = stage.post("/v1/lease/acquire", &body);
    let details = reply.fault(409, "not-free", "refused");
    assert_eq!(
        details,
        json!({ "resource": "job", "why": "held", "label": "first", "token": token, "overdue": false })
    );
    assert_eq!(reply.message(), format!("resource job is not free: held by first with token {token}"));
    // Somebody else's token is of no use to another session.
    let theft = json!({ "session_key": second, "resource": "job", "token": token });
    stage.post("/v1/lease/release", &theft).fault(409, "not-holder", "refused");
    assert_eq!(stage.lease("job")["held"], true);
}

#[test]
fn modes_are_kept_apart() {
    let stage = Stage::new();
    let (a, b) = (stage.open("a"), stage.open("b"));
    let acquire = |key: &str, rest: serde_json::Value| {
        let mut body = json!({ "session_key": key });
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        stage.post("/v1/lease/acquire", &body)
    };
    let first = acquire(&a, json!({ "resource": "doc", "mode": "shared" })).good();
    let second = acquire(&b, json!({ "resource": "doc", "mode": "shared" })).good();
    assert_ne!(first["leases"][0]["token"], second["leases"][0]["token"]);
    assert_eq!(first["leases"][0]["fence_token"], second["leases"][0]["fence_token"]);
    assert_eq!(stage.lease("doc")["mode"], "shared");
    let slot = |key: &str| acquire(key, json!({ "resource": "pool", "mode": "slots", "slots": 2 }));
    let slots = [slot(&a).good()["leases"][0]["slot"].clone(), slot(&b).good()["leases"][0]["slot"].clone()];
    assert_eq!(slots, [json!(0), json!(1)]);
    slot(&a).fault(409, "not-free", "refused");
    assert_eq!((&stage.lease("pool")["mode"], &stage.lease("pool")["slots"]), (&json!("slots"), &json!(2)));
    let details = acquire(&a, json!({ "resource": "pool" })).fault(409, "wrong-kind", "refused");
    assert_eq!(details, json!({ "has": "slots", "slots": 2 }));
    let details = acquire(&a, json!({ "resource": "doc", "slots": 2 })).fault(409, "wrong-kind", "refused");
    assert_eq!(details["has"], "exclusive or shared");
    for slots in [0, 10_001] {
        acquire(&a, json!({ "resource": "x", "slots": slots })).fault(400, "bad-request", "refused");
    }
}

#[test]
fn several_resources_are_granted_together_or_not_at_all() {
    let stage = Stage::new();
    let (a, b) = (stage.open("a"), stage.open("b"));
    let token = stage.take(&a, "two");
    let body = |resources: serde_json::Value| json!({ "session_key": b, "resources": resources });
    let three =
        json!([{ "resource": "one" }, { "resource": "two" }, { "resource": "three", "mode": "shared" }]);
    let details = stage.post("/v1/lease/acquire", &body(three.clone())).fault(409, "not-free", "refused");
    assert_eq!(details["resource"], "two");
    assert_eq!(stage.lease("one"), json!(null), "not even its name is known");
    stage.release(&a, "two", &token);
    let acquired = stage.post("/v1/lease/acquire", &body(three)).good();
    let names: Vec<_> =
        acquired["leases"].as_array().unwrap().iter().map(|lease| lease["resource"].clone()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    let named = |count: usize| (0..count).map(|i| json!({ "resource": format!("r{i}") })).collect::<Vec<_>>();
    for bad in [json!([]), json!([{ "resource": "x" }, { "resource": "x" }]), json!(named(65))] {
        stage.post("/v1/lease/acquire", &body(bad)).fault(400, "bad-request", "refused");
    }
    assert_eq!(stage.post("/v1/lease/acquire", &body(json!(named(64)))).good()["outcome"], "granted");
}

#[test]
fn values_are_text_or_bytes_and_change_with_the_token() {
    let stage = Stage::new();
    let key = stage.open("x");
    let token = stage.take(&key, "job");
    let shown = || {
        let holder = stage.lease("job")["holders"][0].clone();
        (holder["value"].clone(), holder["value_hex"].clone())
    };
    assert_eq!(shown(), (json!(null), json!(null)));
    let set = |value: serde_json::Value| {
        let mut body = json!({ "session_key": key, "resource": "job", "token": token });
        body.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        stage.post("/v1/lease/set-value", &body)
    };
    assert_eq!(set(json!({ "value": "grün\n" })).good(), json!({}));
    assert_eq!(shown(), (json!("grün\n"), json!(null)));
    set(json!({ "value_hex": "FF00" })).good();
    assert_eq!(shown(), (json!(null), json!("ff00")));
    set(json!({ "value": "" })).good();
    assert_eq!(shown(), (json!(null), json!(null)));
    set(json!({ "value_hex": "ab".repeat(65_536) })).good();
    let longer = set(json!({ "value": "x".repeat(65_537) }));
    assert_eq!(longer.fault(400, "bad-field", "failed"), json!({ "field": "value" }));
    assert_eq!(longer.message(), "value: value of 65537 bytes is above the maximum of 65536 bytes");
    for bad in [
        json!({}),
        json!({ "value": "a", "value_hex": "00" }),
        json!({ "value_hex": "0" }),
        json!({ "value_hex": "zz" }),
    ] {
        set(bad).fault(400, "bad-field", "failed");
    }
    stage.release(&key, "job", &token);
    set(json!({ "value": "late" })).fault(409, "not-holder", "refused");
}

#[test]
fn registers_are_written_with_a_current_token_only() {
    let stage = Stage::new();
    let key = stage.open("x");
    let token = stage.take(&key, "job");
    let write = |rest: serde_json::Value| {
        let mut body = json!({ "session_key": key, "resource": "job", "token": token });
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        stage.post("/v1/register/write", &body)
    };
    let read = |name: &str| {
        stage.get(&format!("/v1/register/read?resource=job&key={name}")).good()["register"].clone()
    };
    assert_eq!(read("cursor"), json!(null));
    assert_eq!(write(json!({ "key": "cursor", "value": "4711" })).good(), json!({}));
    assert_eq!(read("cursor"), json!({ "value": "4711", "value_hex": null, "token": token }));
    write(json!({ "key": "gone", "value_hex": "ff", "with_lease": true })).good();
    assert_eq!(read("gone")["value_hex"], "ff");
    for i in 0..14 {
        write(json!({ "key": format!("k{i}"), "value": "x" })).good();
    }
    let details = write(json!({ "key": "one-more", "value": "x" })).fault(429, "limit-reached", "refused");
    assert_eq!(details, json!({ "of": "registers of the resource", "limit": 16 }));
    write(json!({ "key": "k0", "remove": true })).good();
    assert_eq!(read("k0"), json!(null));
    write(json!({ "key": "x", "value": "x", "remove": true })).fault(400, "bad-field", "failed");
    write(json!({ "key": "", "value": "x" })).fault(400, "bad-field", "failed");
    stage.release(&key, "job", &token);
    assert_eq!(read("gone"), json!(null), "it went with its lease");
    assert_eq!(read("cursor")["value"], "4711", "it stayed");
    let details = write(json!({ "key": "cursor", "value": "late" })).fault(409, "not-current", "refused");
    assert_eq!(details, json!({ "resource": "job", "token": token, "ended": "released" }));
}

#[test]
fn a_drain_is_shown_to_whoever_looks_and_goes_with_the_lease() {
    let stage = Stage::new();
    let (key, other) = (stage.open("web-1"), stage.open("web-2"));
    let token = stage.take(&key, "job");
    assert_eq!(stage.lease("job")["holders"][0]["draining"], json!(null));
    let drain = |key: &str, within: u64| {
        let body = json!({
            "session_key": key, "resource": "job", "token": token, "in_flight": 3, "within_ms": within
        });
        stage.post("/v1/lease/drain", &body)
    };
    assert_eq!(drain(&key, 20_000).good(), json!({}));
    let shown = stage.lease("job")["holders"][0]["draining"].clone();
    assert_eq!(shown["in_flight"], 3);
    let left = shown["remaining_ms"].as_u64().unwrap();
    assert!((1..=20_000).contains(&left), "{left} ms are left of 20 s");
    drain(&other, 20_000).fault(409, "not-holder", "refused");
    let details = drain(&key, 86_400_001).fault(400, "bad-request", "refused");
    assert_eq!(details["field"], "within_ms");
    let release = json!({ "session_key": key, "resource": "job", "token": token, "drained": true });
    stage.post("/v1/lease/release", &release).good();
    stage.take(&other, "job");
    assert_eq!(stage.lease("job")["holders"][0]["draining"], json!(null), "the next one has shown nothing");
}

#[test]
fn a_holder_warms_up_until_it_says_that_it_is_ready() {
    let stage = Stage::new();
    let (key, other) = (stage.open("web-1"), stage.open("web-2"));
    let token = stage.take(&key, "job");
    let said = || stage.lease("job")["holders"][0]["readiness"].clone();
    assert_eq!(said(), json!(null));
    let ready = |key: &str, ready: serde_json::Value| {
        let body = json!({ "session_key": key, "resource": "job", "token": token, "ready": ready });
        stage.post("/v1/lease/ready", &body)
    };
    ready(&other, json!(true)).fault(409, "not-holder", "refused");
    assert_eq!(ready(&key, json!(false)).good(), json!({}));
    assert_eq!(said(), json!({ "state": "warming-up", "ready_after_ms": null }));
    // Left out, or null, it is ready.
    ready(&key, json!(null)).good();
    assert_eq!(said()["state"], "ready");
    assert!(said()["ready_after_ms"].is_u64(), "{}", said());
    let details = ready(&key, json!("yes")).fault(400, "bad-field", "failed");
    assert_eq!(details["field"], "ready");
    stage.release(&key, "job", &token);
    ready(&key, json!(true)).fault(409, "not-holder", "refused");
}

#[test]
fn a_gap_is_told_with_its_parts_and_with_who_was_before_and_after() {
    let stage = Stage::new();
    let open = json!({ "label": "dies", "ttl_ms": 500, "delay_ms": 100 });
    let dies = stage.post("/v1/session/open", &open).good()["session_key"].as_str().unwrap().to_owned();
    let (first, free) = (stage.take(&dies, "a/1"), stage.take(&dies, "b/1"));
    stage.release(&dies, "b/1", &free);
    let next = stage.open("next");
    let body = json!({ "session_key": next, "resource": "a/1", "wait_ms": 20_000 });
    let second = stage.post("/v1/lease/acquire", &body).good()["leases"][0]["token"].clone();
    let warming = json!({ "session_key": next, "resource": "a/1", "token": second, "ready": false });
    stage.post("/v1/lease/ready", &warming).good();
    let gaps = |query: &str| stage.get(&format!("/v1/lease/gaps{query}")).good();
    let lasting = gaps("?resource=a%2F1")["names"][0]["gaps"][0].clone();
    assert_eq!((&lasting["ended_ago_ms"], &lasting["after"]["token"]), (&json!(null), &second));
    let ready = json!({ "session_key": next, "resource": "a/1", "token": second });
    stage.post("/v1/lease/ready", &ready).good();

    let one = gaps("?resource=a%2F1");
    assert!(one["revision"].is_string() && one["next"].is_null() && one["outages"].is_array(), "{one}");
    let (name, gap) = (&one["names"][0], &one["names"][0]["gaps"][0]);
    assert_eq!((&name["resource"], name["gaps"].as_array().unwrap().len()), (&json!("a/1"), 1));
    assert_eq!(gap["before"]["token"], json!(first));
    assert_eq!(
        (&gap["before"]["label"], &gap["before"]["ending"]["ended"]),
        (&json!("dies"), &json!("expired"))
    );
    assert_eq!(gap["after"], json!({ "token": second, "label": "next", "ending": null }));
    let parts: Vec<(&str, u64)> = gap["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (part["cause"].as_str().unwrap(), part["length_ms"].as_u64().unwrap()))
        .collect();
    let length = |cause: &str| parts.iter().filter(|(of, _)| *of == cause).map(|(_, ms)| ms).sum::<u64>();
    assert!(length("detection") > 0 && length("cool-down") == 100, "{parts:?}");
    assert_eq!(gap["length_ms"].as_u64().unwrap(), parts.iter().map(|(_, ms)| ms).sum::<u64>());
    let (began, ended) = (gap["began_ago_ms"].as_u64().unwrap(), gap["ended_ago_ms"].as_u64().unwrap());
    // A machine that stood still makes an outage, and log time stands still in it.
    assert_eq!(began - ended, gap["length_ms"].as_u64().unwrap() - length("outage"));

    // The one that was given back lasts: nobody wants it.
    let all = gaps("");
    let names: Vec<_> =
        all["names"].as_array().unwrap().iter().map(|name| name["resource"].clone()).collect();
    assert_eq!(names, ["a/1", "b/1"]);
    let idle = &all["names"][1]["gaps"][0];
    assert_eq!((&idle["ended_ago_ms"], &idle["after"]), (&json!(null), &json!(null)));
    let page = gaps("?prefix=a&limit=1");
    assert_eq!((&page["names"][0]["resource"], &page["next"]), (&json!("a/1"), &json!("a/1")));
    assert_eq!(gaps("?prefix=a&after=a%2F1")["names"], json!([]));
    stage.until("the gap is older than that", || gaps("?prefix=a&last_ms=1")["names"] == json!([]));
    for field in ["prefix=a", "after=a", "limit=5"] {
        let reply = stage.get(&format!("/v1/lease/gaps?resource=a&{field}"));
        let details = reply.fault(400, "bad-field", "failed");
        assert_eq!(details["field"], field.split_once('=').unwrap().0);
    }
    assert_eq!(stage.get("/v1/lease/gaps?limit=0").fault(400, "bad-field", "failed")["field"], "limit");
}
