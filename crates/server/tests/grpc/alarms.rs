//! Tokens that were never granted, over gRPC.

use leasehold_core::{Refusal, Unavailable};
use leasehold_wire::messages as pb;
use tonic::Code;

use super::support::{Running, acquire, assert_status, held, open, refusal, release};

#[tokio::test]
async fn an_alarm_is_raised_listed_and_answered() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "web-1").await;
    let token = held(&mut client, &key, "jobs").await;
    let shown = token + 40;
    let status = client.release(release(&key, "jobs", shown)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "token-ahead", "refused");
    assert!(
        matches!(refusal(&status), Refusal::TokenAhead { token: t, newest, .. } if t.get() == shown && newest == token)
    );
    client.release(release(&key, "jobs", token)).await.unwrap();
    let status = client.acquire(acquire(&key, "jobs")).await.unwrap_err();
    assert_status(&status, Code::Aborted, "not-free", "refused");
    assert!(
        matches!(refusal(&status), Refusal::NotFree { why: Unavailable::Alarm { token }, .. } if token.get() == shown)
    );
    let listed = client.list_alarms(pb::ListAlarmsRequest {}).await.unwrap().into_inner();
    let [alarm] = &listed.alarms[..] else { panic!("{listed:?}") };
    assert_eq!((alarm.resource.as_str(), alarm.token, alarm.by.as_str()), ("jobs", shown, "web-1"));
    assert!(listed.revision > 0);
    let seen = client.get_lease(pb::GetLeaseRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    assert_eq!(seen.lease.unwrap().alarm.map(|alarm| alarm.token), Some(shown));
    let clear = |token, reason: &str| pb::ClearAlarmRequest {
        resource: "jobs".into(),
        token,
        reason: reason.into(),
        ..Default::default()
    };
    let status = client.clear_alarm(clear(shown + 1, "looked")).await.unwrap_err();
    assert_status(&status, Code::NotFound, "no-such-alarm", "refused");
    assert!(
        matches!(refusal(&status), Refusal::NoSuchAlarm { raised: Some(raised), .. } if raised.get() == shown)
    );
    let status = client.clear_alarm(clear(shown, &"x".repeat(1_025))).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    client.clear_alarm(clear(shown, "looked")).await.unwrap();
    held(&mut client, &key, "jobs").await;
    assert!(client.list_alarms(pb::ListAlarmsRequest {}).await.unwrap().into_inner().alarms.is_empty());
}

#[tokio::test]
async fn a_number_that_can_be_no_token_is_a_bad_field() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    held(&mut client, &key, "jobs").await;
    let beyond = 1 << 63;
    let status = client.release(release(&key, "jobs", beyond)).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    let write = pb::WriteRegisterRequest {
        session_key: key,
        resource: "jobs".into(),
        token: beyond,
        key: "k".into(),
        content: Some(pb::write_register_request::Content::Value(b"v"[..].into())),
        ..Default::default()
    };
    let status = client.write_register(write).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    let check = pb::CheckTokenRequest { resource: "jobs".into(), token: beyond };
    let status = client.check_token(check).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    let ask = pb::AskReleaseRequest { resource: "jobs".into(), token: Some(beyond), ..Default::default() };
    let status = client.ask_release(ask).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    assert!(client.list_alarms(pb::ListAlarmsRequest {}).await.unwrap().into_inner().alarms.is_empty());
}

#[tokio::test]
async fn a_check_says_that_a_token_is_ahead_and_raises_nothing() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let token = held(&mut client, &key, "jobs").await;
    let check = pb::CheckTokenRequest { resource: "jobs".into(), token: token + 1 };
    let answer = client.check_token(check).await.unwrap().into_inner().check.unwrap();
    assert_eq!(answer.check, Some(pb::token_check::Check::AheadOfNewest(token)));
    assert!(client.list_alarms(pb::ListAlarmsRequest {}).await.unwrap().into_inner().alarms.is_empty());
}
