//! Looking: lists in pages, the service itself, health, metrics and the document.

use serde_json::{Value, json};

use super::stage::Stage;

fn names(page: &Value) -> Vec<&str> {
    let leases = page["leases"].as_array().expect("a page has leases");
    leases.iter().map(|lease| lease["resource"].as_str().expect("a lease has a name")).collect()
}

#[test]
fn resources_are_listed_in_pages_by_prefix() {
    let stage = Stage::new();
    let key = stage.open("x");
    for name in ["a/1", "a/2", "a/3", "b/1", "ä"] {
        stage.take(&key, name);
    }
    let all = stage.get("/v1/lease/list").good();
    assert_eq!((names(&all), &all["more"]), (vec!["a/1", "a/2", "a/3", "b/1", "ä"], &json!(false)));
    let first = stage.get("/v1/lease/list?prefix=a/&limit=2").good();
    assert_eq!((names(&first), &first["more"]), (vec!["a/1", "a/2"], &json!(true)));
    let second = stage.post("/v1/lease/list", &json!({ "prefix": "a/", "limit": 2, "after": "a/2" })).good();
    assert_eq!((names(&second), &second["more"]), (vec!["a/3"], &json!(false)));
    assert_eq!(names(&stage.get("/v1/lease/list?prefix=%C3%A4").good()), ["ä"]);
    assert_eq!(names(&stage.get("/v1/lease/list?prefix=none").good()), Vec::<&str>::new());
    for limit in ["0", "1001", "-1", "x", "", "1.0"] {
        let reply = stage.get(&format!("/v1/lease/list?limit={limit}"));
        assert_eq!(reply.fault(400, "bad-field", "failed"), json!({ "field": "limit" }));
    }
}

#[test]
fn what_was_never_held_is_null() {
    let stage = Stage::new();
    let seen = stage.get("/v1/lease/get?resource=nothing").good();
    assert_eq!(seen["lease"], json!(null));
    assert_eq!(stage.get("/v1/lease/history?resource=nothing").good()["history"], json!([]));
    assert_eq!(stage.get("/v1/lease/check?resource=nothing&token=0").good()["state"], "not-known");
}

#[test]
fn reads_say_what_they_have_seen() {
    let stage = Stage::new();
    let revision = || -> u64 {
        let text = stage.get("/v1/lease/get?resource=job").good()["revision"].clone();
        text.as_str().unwrap().parse().unwrap()
    };
    let before = revision();
    let key = stage.open("x");
    stage.take(&key, "job");
    assert!(revision() >= before + 2, "an open and a grant are two entries");
}

#[test]
fn the_service_describes_itself() {
    let stage = Stage::new();
    stage.open("x");
    let status = stage.get("/v1/status").good();
    assert_eq!((&status["sessions"], &status["resources"]), (&json!(1), &json!(0)));
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    stage.get("/v1/status?verbose=1").fault(400, "unknown-field", "failed");
    let document = stage.get("/openapi.json").good();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/v1/lease/acquire"]["post"]["responses"]["409"].is_object());
}

#[test]
fn health_and_metrics_are_plain_text() {
    let stage = Stage::new();
    for path in ["/healthz", "/readyz"] {
        let reply = stage.get(path);
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"ok\n"[..]));
        assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
    }
    stage.open("x");
    stage.get("/made/up/path");
    let metrics = stage.get("/metrics");
    assert_eq!(metrics.status, 200);
    let text = String::from_utf8(metrics.body).unwrap();
    let counted = |operation: &str, code: &str| {
        let wanted =
            [format!("operation=\"{operation}\""), format!("code=\"{code}\""), "door=\"http\"".to_owned()];
        let mut lines = text.lines().filter(|line| line.starts_with("leasehold_requests_total"));
        lines.any(|line| wanted.iter().all(|label| line.contains(label)) && line.ends_with(" 1"))
    };
    assert!(counted("open", "ok"), "{text}");
    assert!(counted("none", "no-such-path"), "{text}");
    assert!(!text.contains("made/up"), "nothing that a client chooses becomes a label");
}
