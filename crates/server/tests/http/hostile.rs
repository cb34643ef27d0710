//! Requests that are wrong: each is refused by name, in the one form that errors have, and changes nothing.

use serde_json::{Value, json};

use super::stage::Stage;

const JSON: &str = "Content-Type: application/json";

#[test]
fn a_field_that_is_not_known_is_refused_by_name() {
    let stage = Stage::new();
    let reply = stage.post("/v1/sessions", &json!({ "ttl": 5 }));
    assert_eq!(reply.fault(400, "unknown-field", "refused"), json!({ "field": "ttl" }));
    assert!(
        reply.message().contains("label, ttl_ms, renew_every_ms, margin_ms, round_trip_ms, grace_ms"),
        "{}",
        reply.message()
    );
    let nested = json!({ "session_key": stage.open("x"), "resources": [{ "resource": "a" }, { "resource": "b", "x": 1 }] });
    let details = stage.post("/v1/leases/acquire", &nested).fault(400, "unknown-field", "refused");
    assert_eq!(details, json!({ "field": "resources[1].x" }));
    let details = stage.get("/v1/leases/get?resource=a&x=1").fault(400, "unknown-field", "refused");
    assert_eq!(details, json!({ "field": "x" }));
}

#[test]
fn a_field_that_is_missing_or_wrong_or_given_twice_is_refused_by_name() {
    let stage = Stage::new();
    let key = stage.open("x");
    let posted = [
        ("/v1/sessions", r#"{"label":"a","label":"b"}"#, "label"),
        ("/v1/sessions", r#"{"label":5}"#, "label"),
        ("/v1/sessions", r#"{"label":"a\u0000"}"#, "label"),
        ("/v1/sessions", r#"{"ttl_ms":"10000"}"#, "ttl_ms"),
        ("/v1/sessions", r#"{"ttl_ms":10000.5}"#, "ttl_ms"),
        ("/v1/sessions", r#"{"ttl_ms":18446744073709551616}"#, "ttl_ms"),
        ("/v1/alarms/clear", r#"{"resource":"a","reason":"x","token":17}"#, "token"),
        ("/v1/alarms/clear", r#"{"resource":"a","reason":"x","token":"-1"}"#, "token"),
        ("/v1/alarms/clear", r#"{"resource":"a","reason":"x","token":"10000000000000000000"}"#, "token"),
        ("/v1/alarms/clear", r#"{"resource":"a#1","reason":"x","token":"1"}"#, "resource"),
        ("/v1/alarms/clear", r#"{"reason":"x","token":"1"}"#, "resource"),
        ("/v1/leases/acquire", "{}", "resource"),
        ("/v1/leases/acquire", r#"{"resource":"a","mode":"both"}"#, "mode"),
        ("/v1/leases/acquire", r#"{"resources":"a"}"#, "resources"),
    ];
    let session = format!("Leasehold-Session: {key}");
    for (path, body, field) in posted {
        let reply = stage.connect().ask("POST", path, &[JSON, &session], body.as_bytes());
        assert_eq!(reply.fault(400, "bad-field", "refused"), json!({ "field": field }), "{path} {body}");
    }
    for (query, field) in [
        ("resource=a&resource=a", "resource"),
        ("", "resource"),
        ("resource=%ff", "resource"),
        ("resource=a%23", "resource"),
    ] {
        let details = stage.get(&format!("/v1/leases/get?{query}")).fault(400, "bad-field", "refused");
        assert_eq!(details, json!({ "field": field }), "{query}");
    }
    let details = stage.post("/v1/sessions?resource=a", &json!({})).fault(400, "bad-field", "refused");
    assert_eq!(details, json!({ "field": "resource" }));
}

#[test]
fn a_call_for_a_session_needs_its_key_in_the_header() {
    let stage = Stage::new();
    let (key, other) = (stage.open("x"), stage.open("y"));
    let renew = |id: &str, headers: &[&str]| {
        stage.connect().ask("POST", &format!("/v1/sessions/{id}/renew"), headers, b"")
    };
    let (id, header) = (key.split('-').next().unwrap(), format!("Leasehold-Session: {key}"));
    renew(id, &[JSON, &header]).good();
    let nonsense = "Leasehold-Session: nonsense";
    let wrong: [&[&str]; 4] = [&[], &[nonsense], &[&header, &header], &["Authorization: Bearer x"]];
    for headers in wrong {
        let details = renew(id, headers).fault(400, "bad-field", "refused");
        assert_eq!(details, json!({ "field": "leasehold-session" }), "{headers:?}");
    }
    let other = format!("Leasehold-Session: {other}");
    for (id, header) in [(id, &other), ("x", &header), ("%00", &header)] {
        let reply = renew(id, &[header]);
        assert_eq!(reply.fault(400, "bad-field", "refused"), json!({ "field": "session" }), "{id}");
        assert!(!reply.message().contains(key.split('-').nth(1).unwrap()), "{}", reply.message());
    }
    // In the body it is a field like any other that is not known.
    let body = json!({ "session_key": key }).to_string();
    let reply =
        stage.connect().ask("POST", &format!("/v1/sessions/{id}/renew"), &[JSON, &header], body.as_bytes());
    assert_eq!(reply.fault(400, "unknown-field", "refused"), json!({ "field": "session_key" }));
}

#[test]
fn a_newer_client_can_have_its_new_fields_ignored() {
    let stage = Stage::new();
    let body = json!({ "label": "x", "colour": "red" });
    stage.post("/v1/sessions", &body).fault(400, "unknown-field", "refused");
    stage.post("/v1/sessions?ignore-unknown=false", &body).fault(400, "unknown-field", "refused");
    stage.post("/v1/sessions?ignore-unknown=true", &body).good();
    stage.get("/v1/leases?ignore-unknown=true&colour=red&limit=1").good();
    let details = stage.get("/v1/leases?ignore-unknown=true&limit=x").fault(400, "bad-field", "refused");
    assert_eq!(details, json!({ "field": "limit" }));
    let details = stage.get("/v1/leases?ignore-unknown=yes").fault(400, "bad-field", "refused");
    assert_eq!(details, json!({ "field": "ignore-unknown" }));
}

#[test]
fn up_to_64_unknown_fields_are_ignored() {
    let stage = Stage::new();
    for count in [63, 64, 65] {
        let query: String = (0..count).map(|i| format!("&f{i}=1")).collect();
        let body: Value = (0..count).map(|i| (format!("f{i}"), json!(1))).collect();
        let asked = stage.get(&format!("/v1/leases?ignore-unknown=true{query}"));
        for reply in [asked, stage.post("/v1/sessions?ignore-unknown=true", &body)] {
            if count <= 64 {
                reply.good();
            } else {
                reply.fault(400, "unknown-field", "refused");
            }
        }
    }
}

#[test]
fn a_field_given_twice_is_refused_where_unknown_fields_are_ignored() {
    let stage = Stage::new();
    let session = format!("Leasehold-Session: {}", stage.open("x"));
    for (body, field) in [
        (r#"{"new":1,"resource":"a","resource":"b"}"#, "resource"),
        (r#"{"resource":"a","new":1,"resource":"b"}"#, "resource"),
        (r#"{"resource":"a","resource":"b","new":1}"#, "resource"),
        (r#"{"resource":"a","new":1,"new":[2]}"#, "new"),
        (r#"{"resources":[{"new":1,"resource":"a","resource":"b"}]}"#, "resources[0].resource"),
    ] {
        let path = "/v1/leases/acquire?ignore-unknown=true";
        let reply = stage.connect().ask("POST", path, &[JSON, &session], body.as_bytes());
        assert_eq!(reply.fault(400, "bad-field", "refused"), json!({ "field": field }), "{body}");
        assert!(reply.message().ends_with("it is given twice"), "{}", reply.message());
    }
    for query in ["new=1&resource=a&resource=b", "resource=a&new=1&resource=b", "resource=a&resource=b&new=1"]
    {
        let reply = stage.get(&format!("/v1/leases/get?ignore-unknown=true&{query}"));
        assert_eq!(reply.fault(400, "bad-field", "refused"), json!({ "field": "resource" }), "{query}");
    }
}

#[test]
fn what_is_not_json_is_refused() {
    let stage = Stage::new();
    let deep = format!(r#"{{"label":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    stage.post_text("/v1/sessions", &deep).fault(400, "bad-field", "refused");
    let deep = format!(r#"{{"new":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    stage.post_text("/v1/sessions?ignore-unknown=true", &deep).fault(400, "bad-json", "refused");
    for body in ["{", "[]", "null", "{}x", "\u{feff}{}", "{'label':'x'}", r#"{"label":"\ud800"}"#] {
        stage.post_text("/v1/sessions", body).fault(400, "bad-json", "refused");
    }
    let reply = stage.connect().ask("POST", "/v1/sessions", &[JSON], b"{\"label\":\"\xff\"}");
    reply.fault(400, "bad-json", "refused");
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
}

#[test]
fn a_post_must_be_said_to_be_json() {
    let stage = Stage::new();
    let body: &[u8] = br#"{"label":"x"}"#;
    for kind in [
        "Content-Type: text/plain",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Type: application/json; charset=utf-16",
        "Content-Type: application/json\r\nContent-Type: text/plain",
        "X-Nothing: nothing",
    ] {
        let headers = [kind, "Origin: https://elsewhere.example"];
        // A page of another origin may post without a body, too.
        for body in [body, b""] {
            let reply = stage.connect().ask("POST", "/v1/sessions", &headers, body);
            reply.fault(415, "wrong-content-type", "refused");
        }
    }
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
    let headers = ["content-type: application/json; charset=utf-8"];
    stage.connect().ask("POST", "/v1/sessions", &headers, body).good();
}

#[test]
fn pages_of_other_origins_are_allowed_nothing() {
    let stage = Stage::new();
    let origin = "Origin: https://elsewhere.example";
    let headers =
        [origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"];
    let asked = stage.connect().ask("OPTIONS", "/v1/sessions", &headers, b"");
    asked.fault(405, "wrong-method", "refused");
    let read = stage.connect().ask("GET", "/v1/status", &[origin], b"");
    for reply in [asked, read] {
        assert!(reply.headers.keys().all(|name| !name.starts_with("access-control")), "{reply:?}");
    }
}

#[test]
fn paths_and_methods_that_are_not_there_are_refused_by_name() {
    let stage = Stage::new();
    for target in [
        "/",
        "/v1",
        "/v1/leases/get/",
        "/v1/leases/nothing",
        "/v1//leases/get",
        "/V1/status",
        "/%2e%2e/metrics",
        "/v1/sessions/1",
    ] {
        stage.get(target).fault(404, "no-such-path", "refused");
    }
    for (method, target, allowed) in [
        ("PUT", "/v1/sessions", "GET, HEAD, POST"),
        ("HEAD", "/v1/leases/acquire", "POST"),
        ("DELETE", "/v1/leases/get?resource=a", "GET, HEAD"),
        ("POST", "/v1/leases/get", "GET, HEAD"),
        ("GET", "/v1/sessions/1/renew", "POST"),
        ("POST", "/v1/watch", "GET, HEAD"),
        ("TRACE", "/healthz", "GET, HEAD"),
        ("BREW", "/v1/status", "GET, HEAD"),
    ] {
        let reply = stage.connect().ask(method, target, &[], b"");
        assert_eq!(reply.status, 405, "{method} {target}");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {target}");
        if method != "HEAD" {
            reply.fault(405, "wrong-method", "refused");
        }
    }
}

#[test]
fn what_is_no_http_is_answered_with_400_or_not_at_all() {
    let stage = Stage::new();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"hello there\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    ] {
        let mut connection = stage.connect();
        connection.send(bytes);
        if let Some(reply) = connection.reply(false) {
            assert_eq!(reply.status, 400, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert!(connection.ends(), "{:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
}

#[test]
fn a_length_beside_chunks_does_not_let_a_second_request_in() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    connection.send(
        b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\
          Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nPOST /v1/sessions HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    while connection.reply(false).is_some_and(|reply| reply.status == 200) {}
    let sessions = stage.get("/v1/status").good()["sessions"].as_u64().unwrap();
    assert!(sessions <= 2, "what follows a body that ends by its chunks is a request of its own: {sessions}");
}

#[test]
fn a_request_has_a_name() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    let named = connection.ask("GET", "/v1/nothing", &["X-Request-Id: trace-7"], b"");
    named.fault(404, "no-such-path", "refused");
    assert_eq!(named.header("x-request-id"), Some("trace-7"));
    let long = format!("X-Request-Id: {}", "x".repeat(65));
    for header in ["X-Request-Id: a b", "X-Request-Id: \u{e4}", long.as_str(), "X-Other: x"] {
        let reply = connection.ask("GET", "/v1/status", &[header], b"");
        assert_eq!(reply.header("x-request-id").map(str::len), Some(16), "{header}");
    }
}
