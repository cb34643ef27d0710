//! Sessions: opening, renewing, closing, listing.

use leasehold_core::Refusal;
use leasehold_wire::messages as pb;
use tonic::Code;

use super::support::{Running, assert_status, failure, held, open, refusal, renew};

#[tokio::test]
async fn an_open_gives_a_key_and_the_numbers_to_live_by() {
    let running = Running::start();
    let mut client = running.client().await;
    let request = pb::OpenSessionRequest { label: "web-1".into(), ..Default::default() };
    let answer = client.open_session(request).await.unwrap().into_inner();
    let opened = answer.opened.unwrap();
    assert_eq!((opened.ttl_ms, opened.drift_ppm, opened.existed), (10_000, 1_000, false));
    assert!(answer.session_key.starts_with(&format!("{}-", opened.session)), "{}", answer.session_key);
    assert_eq!(answer.renewal, 0);
    assert_eq!(answer.margin_ms, Some(1_000));
    assert!((2_000..=3_334).contains(&answer.renew_every_ms.unwrap()), "{:?}", answer.renew_every_ms);
}

#[tokio::test]
async fn an_open_with_the_same_nonce_finds_the_session_again() {
    let running = Running::start();
    let mut client = running.client().await;
    let request = pb::OpenSessionRequest { nonce: vec![7; 16], ..Default::default() };
    let first = client.open_session(request.clone()).await.unwrap().into_inner();
    let second = client.open_session(request).await.unwrap().into_inner();
    assert_eq!(first.session_key, second.session_key);
    assert!(first.session_key.ends_with(&"07".repeat(16)));
    assert!(!first.opened.unwrap().existed && second.opened.unwrap().existed);
}

#[tokio::test]
async fn a_ttl_outside_its_limits_is_refused_with_them() {
    let running = Running::start();
    let request = pb::OpenSessionRequest { ttl_ms: Some(50), ..Default::default() };
    let status = running.client().await.open_session(request).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "ttl-out-of-range", "refused");
    let Refusal::TtlOutOfRange { ttl, min, max } = refusal(&status) else { panic!("{status:?}") };
    assert_eq!((ttl.get(), min.get(), max.get()), (50, 500, 300_000));
}

#[tokio::test]
async fn own_numbers_are_judged_before_anything_is_opened() {
    let running = Running::start();
    let mut client = running.client().await;
    let fitting = pb::OpenSessionRequest {
        renew_every_ms: Some(2_000),
        margin_ms: Some(1_500),
        round_trip_ms: Some(20),
        ..Default::default()
    };
    let answer = client.open_session(fitting.clone()).await.unwrap().into_inner();
    assert_eq!((answer.renew_every_ms, answer.margin_ms), (Some(2_000), Some(1_500)));
    let half = pb::OpenSessionRequest { renew_every_ms: Some(5_000), ..fitting };
    let status = client.open_session(half).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-numbers", "refused");
    assert!(status.message().contains("2 x 5000 ms + 20 ms = 10020 ms is not below"), "{status:?}");
}

#[tokio::test]
async fn a_field_that_cannot_be_is_named() {
    let running = Running::start();
    let mut client = running.client().await;
    let request = pb::OpenSessionRequest { label: "l".repeat(257), ..Default::default() };
    let status = client.open_session(request).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    assert!(status.message().starts_with("label: "), "{}", status.message());
    let request = pb::RenewSessionRequest { session_key: "7-secret".into() };
    let status = client.renew_session(request).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    assert!(!status.message().contains("secret"), "{}", status.message());
}

#[tokio::test]
async fn a_renewal_lists_leases_and_waits() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &first, "jobs").await;
    let waiting = pb::AcquireRequest {
        wait_ms: Some(60_000),
        return_when_queued: true,
        ..super::support::acquire(&second, "jobs")
    };
    let queued = client.acquire(waiting).await.unwrap().into_inner();
    let renewed = renew(&mut client, &first).await;
    assert_eq!(renewed.renewal, 1);
    let grant = renewed.leases[0].grant.as_ref().unwrap();
    assert_eq!((grant.resource.as_str(), grant.token), ("jobs", token));
    assert!(!renewed.leases[0].release_requested && renewed.waits.is_empty());
    let renewed = renew(&mut client, &second).await;
    assert!(renewed.leases.is_empty());
    assert_eq!(renewed.waits, [pb::Waited { acquire: queued.acquire, resources: vec!["jobs".into()] }]);
    assert_eq!(renew(&mut client, &second).await.renewal, 2);
}

#[tokio::test]
async fn a_key_of_somebody_else_is_refused() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let (id, _) = key.split_once('-').unwrap();
    let request = pb::RenewSessionRequest { session_key: format!("{id}-{}", "0".repeat(32)) };
    let status = client.renew_session(request).await.unwrap_err();
    assert_status(&status, Code::PermissionDenied, "not-your-session", "refused");
    assert!(failure(&status).to_string().contains(id));
}

#[tokio::test]
async fn a_session_that_was_closed_is_over() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    held(&mut client, &key, "jobs").await;
    let request = pb::CloseSessionRequest { session_key: key.clone(), ..Default::default() };
    client.close_session(request.clone()).await.unwrap();
    let status = client.renew_session(pb::RenewSessionRequest { session_key: key }).await.unwrap_err();
    assert_status(&status, Code::NotFound, "session-ended", "refused");
    let status = client.close_session(request).await.unwrap_err();
    assert_status(&status, Code::NotFound, "session-ended", "refused");
    let lease = client.get_lease(pb::GetLeaseRequest { resource: "jobs".into() }).await.unwrap();
    assert!(lease.into_inner().lease.unwrap().holders.is_empty());
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let running = Running::start();
    let mut client = running.client().await;
    for label in ["a", "b", "c"] {
        open(&mut client, label).await;
    }
    let page = |after, limit| pb::ListSessionsRequest { after, limit };
    let first = client.list_sessions(page(None, Some(2))).await.unwrap().into_inner();
    let labels = |answer: &pb::ListSessionsResponse| {
        answer.sessions.iter().map(|session| session.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&first), ["a", "b"]);
    assert_eq!(first.next, Some(first.sessions[1].session));
    let rest = client.list_sessions(page(first.next, None)).await.unwrap().into_inner();
    assert_eq!((labels(&rest), rest.next), (vec!["c".to_owned()], None));
    assert!(rest.revision >= first.revision && first.revision > 0);
    let status = client.list_sessions(page(None, Some(1_001))).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    assert_eq!(status.message(), "limit: limit of 1001 is outside 1 to 1000");
}
