//! Limits of a request and of a connection: sizes, time, and what may follow on the same connection.

use std::time::Duration;

use serde_json::json;

use super::stage::Stage;

const JSON: &str = "Content-Type: application/json";

#[test]
fn a_body_above_the_limit_is_refused_before_it_is_read() {
    let stage = Stage::with(|config| config.http.max_body_bytes = 150_000);
    let mut connection = stage.connect();
    let head = "POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    connection.send(format!("{head}Content-Length: 150001\r\nExpect: 100-continue\r\n\r\n").as_bytes());
    // Not one byte of the body was sent, and nobody asked for it.
    let reply = connection.reply(false).unwrap();
    assert_eq!(reply.fault(413, "body-too-large", "failed"), json!({ "limit": 150_000 }));
    assert!(reply.message().contains("150000 bytes"), "{}", reply.message());
}

#[test]
fn a_body_in_chunks_is_cut_off_at_the_limit() {
    let stage = Stage::with(|config| config.http.max_body_bytes = 150_000);
    let mut connection = stage.connect();
    let head = "POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    connection.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let chunk = format!("2710\r\n{}\r\n", " ".repeat(10_000));
    for _ in 0..16 {
        connection.send(chunk.as_bytes());
    }
    connection.reply(false).unwrap().fault(413, "body-too-large", "failed");
}

#[test]
fn whoever_sends_a_little_too_much_sees_the_answer_and_not_a_broken_connection() {
    let stage = Stage::with(|config| config.http.max_body_bytes = 150_000);
    for length in [150_001, 300_000, 500_000] {
        let mut connection = stage.connect();
        let body = vec![b' '; length];
        connection.ask("POST", "/v1/session/open", &[JSON], &body).fault(413, "body-too-large", "failed");
        connection.ask("GET", "/v1/status", &[], b"").good();
    }
    // Whoever does not stop is not read for ever.
    let mut connection = stage.connect();
    connection.send_request("POST", "/v1/session/open", &[JSON], &vec![b' '; 20_000_000]);
    assert!(connection.reply(false).is_none_or(|reply| reply.status == 413));
}

#[test]
fn a_body_at_the_limit_is_taken() {
    let stage = Stage::with(|config| config.http.max_body_bytes = 150_000);
    let body = format!("{{{}}}", " ".repeat(149_998));
    stage.post_text("/v1/session/open", &body).good();
}

#[test]
fn whoever_is_asked_to_go_on_sends_the_body_then() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    connection.send(
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\
          Expect: 100-continue\r\n\r\n",
    );
    assert_eq!(connection.reply(false).unwrap().status, 100);
    connection.send(b"{}");
    connection.reply(false).unwrap().good();
}

#[test]
fn a_body_that_does_not_arrive_in_time_is_refused() {
    let stage = Stage::with(|config| config.http.request_timeout = Duration::from_millis(300));
    let mut connection = stage.connect();
    connection.send(
        b"POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
    );
    let reply = connection.reply(false).unwrap();
    assert_eq!(reply.fault(408, "request-timeout", "failed"), json!({ "limit_ms": 300 }));
    assert!(connection.ends(), "the rest of that body must not be taken for a request");
}

#[test]
fn half_a_request_does_not_hold_a_connection_for_ever() {
    let stage = Stage::with(|config| config.http.request_timeout = Duration::from_millis(300));
    for half in ["G", "GET /v1/status HT", "GET /v1/status HTTP/1.1\r\nHost: x\r\n"] {
        let mut connection = stage.connect();
        connection.send(half.as_bytes());
        if let Some(reply) = connection.reply(false) {
            assert_eq!(reply.status, 408, "{half:?}");
        }
        assert!(connection.ends(), "{half:?}");
    }
}

#[test]
fn half_a_request_that_ends_changes_nothing() {
    let stage = Stage::new();
    let whole = "POST /v1/session/open HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"label\":\"x\"}";
    for length in [1, 20, 60, whole.len() - 13, whole.len() - 1] {
        let mut connection = stage.connect();
        connection.send(&whole.as_bytes()[..length]);
        connection.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
        while connection.reply(false).is_some_and(|reply| reply.status >= 400) {}
    }
    assert_eq!(stage.get("/v1/status").good()["sessions"], 0);
}

#[test]
fn a_head_above_the_limit_is_refused() {
    let stage = Stage::with(|config| config.http.max_header_bytes = 8_192);
    for header in ["x".repeat(8_000), "x".repeat(20_000), "x".repeat(1_000_000)] {
        let mut connection = stage.connect();
        connection.send_request("GET", "/v1/status", &[&format!("X-Long: {header}")], b"");
        if let Some(reply) = connection.reply(false) {
            let expected = if header.len() == 8_000 { 200 } else { 431 };
            assert_eq!(reply.status, expected, "{}", header.len());
        }
    }
    let mut connection = stage.connect();
    connection.send_request("GET", &format!("/{}", "x".repeat(20_000)), &[], b"");
    assert!(connection.reply(false).is_none_or(|reply| [414, 431].contains(&reply.status)));
    let many: Vec<String> = (0..2_000).map(|i| format!("X-{i}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut connection = stage.connect();
    connection.send_request("GET", "/v1/status", &many, b"");
    assert!(connection.reply(false).is_none_or(|reply| reply.status == 431));
    stage.get("/v1/status").good();
}

#[test]
fn a_head_that_was_read_and_is_above_the_limit_is_refused_by_name() {
    let stage = Stage::with(|config| config.http.max_header_bytes = 2_048);
    let mut connection = stage.connect();
    let header = format!("X-Long: {}", "x".repeat(4_000));
    let reply = connection.ask("GET", "/v1/status", &[&header], b"");
    assert_eq!(reply.fault(431, "headers-too-large", "failed"), json!({ "limit": 2_048 }));
    connection.ask("GET", "/v1/status", &[], b"").good();
}

#[test]
fn a_connection_serves_many_requests_one_after_the_other() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    for i in 0..20 {
        let body = json!({ "label": format!("s{i}") }).to_string();
        connection.ask("POST", "/v1/session/open", &[JSON], body.as_bytes()).good();
        connection.ask("GET", "/v1/nothing", &[], b"").fault(404, "no-such-path", "failed");
    }
    assert_eq!(connection.ask("GET", "/v1/status", &[], b"").good()["sessions"], 20);
    let closing = connection.ask("GET", "/v1/status", &["Connection: close"], b"");
    closing.good();
    assert!(connection.ends());
}

#[test]
fn requests_that_are_sent_at_once_are_answered_in_order() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    for i in 0..10 {
        connection.send_request(
            "GET",
            &format!("/v1/lease/get?resource=r{i}"),
            &[&format!("X-Request-Id: n{i}")],
            b"",
        );
        connection.send_request(
            "POST",
            "/v1/session/open",
            &[JSON, &format!("X-Request-Id: p{i}")],
            b"{\"label\":",
        );
    }
    for i in 0..10 {
        let reply = connection.reply(false).unwrap();
        assert_eq!((reply.status, reply.header("x-request-id")), (200, Some(format!("n{i}").as_str())));
        let reply = connection.reply(false).unwrap();
        reply.fault(400, "bad-json", "failed");
        assert_eq!(reply.header("x-request-id"), Some(format!("p{i}").as_str()));
    }
}

#[test]
fn whoever_asks_only_for_the_head_gets_no_body() {
    let stage = Stage::new();
    let mut connection = stage.connect();
    for target in ["/v1/status", "/healthz", "/v1/lease/get?resource=a", "/openapi.json"] {
        let reply = connection.ask("HEAD", target, &[], b"");
        assert_eq!((reply.status, reply.body.len()), (200, 0), "{target}");
    }
    // The next response would be out of place if a body had been sent.
    let reply = connection.ask("HEAD", "/v1/nothing", &[], b"");
    assert_eq!(reply.status, 404);
    connection.ask("GET", "/v1/status", &[], b"").good();
}
