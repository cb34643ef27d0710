//! Where the check belongs: in the transaction of the handler. One place further out, a pause is enough to corrupt.

use http::Request;
use leasehold_fence::http::stamped;
use leasehold_fence::{Authority, NoAuthority, Stamp};

use crate::http::stage::{Service, send, write};

fn pairs(written: &[(i64, String)]) -> Vec<(i64, &str)> {
    written.iter().map(|(token, value)| (*token, value.as_str())).collect()
}

/// Old is checked, new writes, old writes: the middleware was right about the old one, and it does not matter any more.
#[tokio::test]
async fn wrong_way_a_check_in_middleware_lets_a_stale_write_through() {
    let service = Service::new().await;
    let url = service.serve_wrong().await;
    let gate = service.gate("before old");
    let old = tokio::spawn({
        let url = url.clone();
        async move { write(&url, 33, "old").await }
    });
    gate.reached().await;
    assert_eq!(write(&url, 34, "new").await.0, 200);
    gate.open();
    assert_eq!(old.await.unwrap().0, 200, "nobody noticed");
    assert_eq!(pairs(&service.written().await), [(34, "new"), (33, "old")], "this is the corruption");
    // And yet it looks as if it worked: one that comes late enough is refused.
    assert_eq!(write(&url, 33, "late").await.0, 412);
}

/// The same steps with the check where it belongs.
#[tokio::test]
async fn a_handler_that_was_paused_before_its_transaction_is_refused() {
    let service = Service::new().await;
    let url = service.serve().await;
    let gate = service.gate("before old");
    let old = tokio::spawn({
        let url = url.clone();
        async move { write(&url, 33, "old").await }
    });
    gate.reached().await;
    assert_eq!(write(&url, 34, "new").await.0, 200);
    gate.open();
    let (status, code, body) = old.await.unwrap();
    assert_eq!((status, code.as_deref()), (412, Some("stale")));
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    for (key, value) in [("code", "stale"), ("name", "reports/nightly"), ("token", "33"), ("highest", "34")] {
        assert_eq!(body[key], value, "{body}");
    }
    assert_eq!(pairs(&service.written().await), [(34, "new")]);
}

/// Paused inside of the transaction, behind the guard: the new holder waits, and comes after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_was_paused_inside_its_transaction_comes_first() {
    let service = Service::new().await;
    let url = service.serve().await;
    let gate = service.gate("inside old");
    let old = tokio::spawn({
        let url = url.clone();
        async move { write(&url, 33, "old").await }
    });
    gate.reached().await;
    let new = tokio::spawn(async move { write(&url, 34, "new").await });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!new.is_finished(), "the fence row is locked");
    gate.open();
    assert_eq!(old.await.unwrap().0, 200);
    assert_eq!(new.await.unwrap().0, 200);
    assert_eq!(pairs(&service.written().await), [(33, "old"), (34, "new")]);
}

#[tokio::test]
async fn equal_tokens_pass_and_tokens_above_two_to_the_53_differ() {
    let service = Service::new().await;
    let url = service.serve().await;
    let large = (1 << 53) + 1;
    assert_eq!(write(&url, large, "one").await.0, 200);
    assert_eq!(write(&url, large, "two").await.0, 200);
    let (status, _, body) = write(&url, large - 1, "late").await;
    assert!(status == 412 && body.contains("\"highest\":\"9007199254740993\""), "{body}");
}

#[tokio::test]
async fn failed_and_unknown_have_statuses_of_their_own() {
    let service = Service::new().await;
    let url = service.serve().await;
    for (how, status) in [("failed", 503), ("unknown", 504)] {
        let mut request = Request::put(format!("/broken/{how}")).body(String::new()).unwrap();
        request.headers_mut().insert("fencing-token", "34".parse().unwrap());
        let (answered, code, body) = send(&url, request).await;
        assert_eq!((answered, code.as_deref()), (status, Some(how)));
        assert!(
            !body.contains("disk") && !body.contains("commit"),
            "what the store said is its own business: {body}"
        );
    }
}

#[tokio::test]
async fn the_layer_answers_writes_without_a_stamp_and_leaves_the_rest_alone() {
    let service = Service::new().await;
    let url = service.serve().await;
    let ask = |method: &str, path: &str, token: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path).body("x".to_owned()).unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("fencing-token", token.parse().unwrap());
        }
        send(&url, request)
    };
    assert_eq!(ask("PUT", "/reports/nightly", None).await.1.as_deref(), Some("token-missing"));
    assert_eq!(ask("PUT", "/reports/nightly", Some("x")).await.1.as_deref(), Some("stamp-malformed"));
    assert_eq!(ask("GET", "/reports/nightly", None).await.2, "the report");
    assert_eq!(ask("GET", "/health", None).await.2, "well");
    assert_eq!(service.written().await, []);
}

/// A lease whose guard says no.
struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "it was lost".to_owned() })
    }
}

#[tokio::test]
async fn a_lapsed_authority_sends_nothing() {
    let mut request = Request::put("/reports/nightly").body(String::new()).unwrap();
    assert!(stamped(request.headers_mut(), &Lapsed).is_err());
    assert!(request.headers().is_empty());
    let nobody = leasehold_fence::http::Proxy::new("http://127.0.0.1:1").unwrap();
    let said = nobody.send(&Lapsed, request).await.unwrap_err();
    assert_eq!(said.outcome(), leasehold_fence::Outcome::Lapsed);
}
