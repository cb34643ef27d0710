//! What needs no session, registers, and the service itself.

use leasehold_wire::messages as pb;
use pb::write_register_request::Content;
use tonic::Code;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use super::support::{Running, assert_status, held, open, renew};

#[tokio::test]
async fn a_revoke_ends_the_lease_that_it_names_and_no_other() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let token = held(&mut client, &key, "jobs").await;
    let revoke = |token| pb::RevokeRequest {
        resource: "jobs".into(),
        token,
        reason: "it is stuck".into(),
        ..Default::default()
    };
    let status = client.revoke(revoke(token + 1)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-current", "refused");
    let held_back = client.revoke(revoke(token)).await.unwrap().into_inner().held_back_ms;
    assert!((1..=61_000).contains(&held_back), "{held_back}");
    assert!(renew(&mut client, &key).await.leases.is_empty());
    let history = client.history(pb::HistoryRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    let how = history.past[0].how.as_ref().and_then(|how| how.ending.clone());
    let revoked = pb::RevokedBy { by: "grpc".into(), reason: "it is stuck".into() };
    assert_eq!(how, Some(pb::ending::Ending::Revoked(revoked)));
}

#[tokio::test]
async fn a_holder_that_is_asked_learns_of_it_with_its_next_renewal() {
    let running = Running::start();
    let mut client = running.client().await;
    let ask = pb::AskReleaseRequest { resource: "jobs".into(), ..Default::default() };
    let status = client.ask_release(ask.clone()).await.unwrap_err();
    assert_status(&status, Code::NotFound, "not-held", "refused");
    let key = open(&mut client, "web-1").await;
    let token = held(&mut client, &key, "jobs").await;
    let asked = client.ask_release(ask).await.unwrap().into_inner().asked.unwrap();
    assert_eq!((asked.token, asked.holder.as_str()), (token, "web-1"));
    assert!(renew(&mut client, &key).await.leases[0].release_requested);
}

#[tokio::test]
async fn a_register_is_written_read_and_removed_by_its_holder() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let token = held(&mut client, &key, "jobs").await;
    let write = |token, content| pb::WriteRegisterRequest {
        session_key: key.clone(),
        resource: "jobs".into(),
        token,
        key: "cursor".into(),
        content: Some(content),
        with_lease: false,
        ..Default::default()
    };
    let read = pb::ReadRegisterRequest { resource: "jobs".into(), key: "cursor".into() };
    let value = || Content::Value(b"42".to_vec());
    let status = client.write_register(write(token - 1, value())).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-current", "refused");
    assert_eq!(client.read_register(read.clone()).await.unwrap().into_inner().register, None);
    client.write_register(write(token, value())).await.unwrap();
    let seen = client.read_register(read.clone()).await.unwrap().into_inner();
    assert_eq!(seen.register, Some(pb::Register { value: b"42".to_vec(), token }));
    client.write_register(write(token, Content::Remove(pb::Nothing {}))).await.unwrap();
    assert_eq!(client.read_register(read).await.unwrap().into_inner().register, None);
    let status = client
        .read_register(pb::ReadRegisterRequest { resource: "jobs".into(), key: String::new() })
        .await
        .unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
}

#[tokio::test]
async fn the_service_tells_of_itself() {
    let running = Running::start();
    let mut client = running.client().await;
    open(&mut client, "a").await;
    let answer = client.get_status(pb::GetStatusRequest {}).await.unwrap().into_inner();
    let status = answer.status.unwrap();
    assert_eq!((status.pid, status.sessions, status.resources), (std::process::id().into(), 1, 0));
    assert!(status.applied > 0 && !status.version.is_empty());
}

#[tokio::test]
async fn probes_are_answered() {
    let running = Running::start();
    let mut health = HealthClient::new(running.channel().await);
    for service in ["", "leasehold.v1.Leasehold"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    let status = health.check(HealthCheckRequest { service: "other".into() }).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

#[tokio::test]
async fn a_call_that_does_not_exist_is_unimplemented() {
    let running = Running::start();
    let mut grpc = tonic::client::Grpc::new(running.channel().await);
    grpc.ready().await.unwrap();
    let codec: tonic_prost::ProstCodec<pb::Nothing, pb::Nothing> = tonic_prost::ProstCodec::default();
    let path = "/leasehold.v1.Leasehold/Conjure".parse().unwrap();
    let status = grpc.unary(tonic::Request::new(pb::Nothing {}), path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}
