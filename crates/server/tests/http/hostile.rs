//! Requests that are wrong: each is refused by name, in the one form that errors have, and changes nothing.

use serde_json::json;

use super::stage::Stage;

const JSON: &str = "Content-Type: application/json";

#[test]
fn a_field_that_is_not_known_is_refused_by_name() {
    let stage = Stage::new();
    let reply = stage.post("/v1/session/open", &json!({ "ttl": 5 }));
    assert_eq!(reply.fault(400, "unknown-field", "failed"), json!({ "field": "ttl" }));
    assert!(
        reply.message().contains("label, ttl_ms, renew_every_ms, margin_ms, round_trip_ms, grace_ms"),
        "{}",
        reply.message()
    );
    let nested = json!({ "session_key": stage.open("x"), "resources": [{ "resource": "a" }, { "resource": "b", "x": 1 }] });
    let details = stage.post("/v1/lease/acquire", &nested).fault(400, "unknown-field", "failed");
    assert_eq!(details, json!({ "field": "resources[1].x" }));
    let details = stage.get("/v1/lease/get?resource=a&x=1").fault(400, "unknown-field", "failed");
    assert_eq!(details, json!({ "field": "x" }));
}

#[test]
fn a_field_that_is_missing_or_wrong_or_given_twice_is_refused_by_name() {
    let stage = Stage::new();
    let key = stage.open("x");
    for (path, body, field) in [
        ("/v1/lease/get", "{}".to_owned(), "resource"),
        ("/v1/lease/get", r#"{"resource":"a","resource":"b"}"#.to_owned(), "resource"),
        ("/v1/lease/get", r#"{"resource":5}"#.to_owned(), "resource"),
        ("/v1/lease/get", r#"{"resource":"a#1"}"#.to_owned(), "resource"),
        ("/v1/lease/get", r#"{"resource":"a\u0000"}"#.to_owned(), "resource"),
        ("/v1/lease/check", r#"{"resource":"a","token":17}"#.to_owned(), "token"),
        ("/v1/lease/check", r#"{"resource":"a","token":"-1"}"#.to_owned(), "token"),
        ("/v1/lease/check", r#"{"resource":"a","token":"10000000000000000000"}"#.to_owned(), "token"),
        ("/v1/session/open", r#"{"ttl_ms":"10000"}"#.to_owned(), "ttl_ms"),
        ("/v1/session/open", r#"{"ttl_ms":10000.5}"#.to_owned(), "ttl_ms"),
        ("/v1/session/open", r#"{"ttl_ms":18446744073709551616}"#.to_owned(), "ttl_ms"),
        ("/v1/session/renew", r#"{"session_key":"nonsense"}"#.to_owned(), "session_key"),
        ("/v1/lease/acquire", format!(r#"{{"session_key":"{key}"}}"#), "resource"),
        ("/v1/lease/acquire", format!(r#"{{"session_key":"{key}","resource":"a","mode":"both"}}"#), "mode"),
        ("/v1/lease/acquire", format!(r#"{{"session_key":"{key}","resources":"a"}}"#), "resources"),
    ] {
        let details = stage.post_text(path, &body).fault(400, "bad-field", "failed");
        assert_eq!(details, json!({ "field": field }), "{path} {body}");
    }
    for (query, field) in
        [("resource=a&resource=a", "resource"), ("", "resource"), ("resource=%ff", "resource")]
    {
        let details = stage.get(&format!("/v1/lease/get?{query}")).fault(400, "bad-field", "failed");
        assert_eq!(details, json!({ "field": field }), "{query}");
    }
    let details = stage.post("/v1/lease/get?resource=a", &json!({})).fault(400, "bad-field", "failed");
    assert_eq!(details, json!({ "field": "resource" }));
}

#[test]
fn what_is_not_json_is_refused() {
    let stage = Stage::new();
    let deep = format!(r#"{{"label":{}{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    for body in
        ["{", "[]", "null", "{}x", "\u{feff}{}", "{'label':'x'}", r#"{"label":"\ud800"}"#, deep.as_str()]
    {
        stage.post_text("/v1/session/open", body).fault(400, "bad-json", "failed");
    }
    let reply = stage.connect().ask("POST", "/v1/session/open", &[JSON], b"{\"label\":\"\xff\"}");
    reply.fault(400, "bad-json", "failed");
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
}

#[test]
fn a_body_must_be_said_to_be_json() {
    let stage = Stage::new();
    let body = br#"{"label":"x"}"#;
    for kind in [
        "Content-Type: text/plain",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Type: multipart/form-data; boundary=x",
        "Content-Type: application/json; charset=utf-16",
        "Content-Type: application/json\r\nContent-Type: text/plain",
        "X-Nothing: nothing",
    ] {
        let headers = [kind, "Origin: https://elsewhere.example"];
        let reply = stage.connect().ask("POST", "/v1/session/open", &headers, body);
        reply.fault(415, "wrong-content-type", "failed");
    }
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
    let headers = ["content-type: application/json; charset=utf-8"];
    stage.connect().ask("POST", "/v1/session/open", &headers, body).good();
}

#[test]
fn pages_of_other_origins_are_allowed_nothing() {
    let stage = Stage::new();
    let origin = "Origin: https://elsewhere.example";
    let headers =
        [origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type"];
    let asked = stage.connect().ask("OPTIONS", "/v1/session/open", &headers, b"");
    asked.fault(405, "wrong-method", "failed");
    let read = stage.connect().ask("GET", "/v1/status", &[origin], b"");
    for reply in [asked, read] {
        assert!(reply.headers.keys().all(|name| !name.starts_with("access-control")), "{reply:?}");
    }
}

#[test]
fn paths_and_methods_that_are_not_there_are_refused_by_name() {
    let stage = Stage::new();
    for target in
        ["/", "/v1", "/v1/lease/get/", "/v1/lease/nothing", "/v1//lease/get", "/V1/status", "/%2e%2e/metrics"]
    {
        stage.get(target).fault(404, "no-such-path", "failed");
    }
    for (method, target, allowed) in [
        ("GET", "/v1/session/open", "POST"),
        ("HEAD", "/v1/lease/acquire", "POST"),
        ("DELETE", "/v1/lease/get?resource=a", "GET, HEAD, POST"),
        ("POST", "/v1/watch", "GET, HEAD"),
        ("TRACE", "/healthz", "GET, HEAD"),
        ("BREW", "/v1/status", "GET, HEAD"),
    ] {
        let reply = stage.connect().ask(method, target, &[], b"");
        assert_eq!(reply.status, 405, "{method} {target}");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {target}");
        if method != "HEAD" {
            reply.fault(405, "wrong-method", "failed");
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
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}",
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
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\
          Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nPOST /v1/session/open HTTP/1.1\r\nHost: x\r\n\r\n",
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
    named.fault(404, "no-such-path", "failed");
    assert_eq!(named.header("x-request-id"), Some("trace-7"));
    let long = format!("X-Request-Id: {}", "x".repeat(65));
    for header in ["X-Request-Id: a b", "X-Request-Id: \u{e4}", long.as_str(), "X-Other: x"] {
        let reply = connection.ask("GET", "/v1/status", &[header], b"");
        assert_eq!(reply.header("x-request-id").map(str::len), Some(16), "{header}");
    }
}
