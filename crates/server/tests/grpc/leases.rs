//! Leases: acquiring, waiting, releasing, looking.

use leasehold_core::{Refusal, Unavailable};
use leasehold_wire::messages as pb;
use pb::acquire_response::Outcome;
use pb::cancel_response::Outcome as CancelOutcome;
use pb::mode::Mode;
use pb::readiness_view::Readiness;
use pb::token_check::Check;
use prost::Message;
use tonic::Code;

use super::support::{Client, Running, acquire, assert_status, granted, held, open, refusal, release, renew};

fn wanted(resource: &str, mode: Mode) -> pb::ResourceRequest {
    pb::ResourceRequest { resource: resource.into(), mode: Some(pb::Mode { mode: Some(mode) }) }
}

#[tokio::test]
async fn a_lease_is_granted_to_one_and_refused_to_the_next() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "web-1").await, open(&mut client, "web-2").await);
    let answer = client.acquire(acquire(&first, "jobs")).await.unwrap().into_inner();
    assert_eq!((answer.acquire, answer.renewal), (1, 0));
    let grant = granted(answer.outcome).remove(0);
    assert_eq!((grant.resource.as_str(), grant.fence, grant.slot), ("jobs", grant.token, None));
    let status = client.acquire(acquire(&second, "jobs")).await.unwrap_err();
    assert_status(&status, Code::Aborted, "not-free", "refused");
    let Refusal::NotFree { resource, why: Unavailable::Held { holder, token, .. } } = refusal(&status) else {
        panic!("{status:?}");
    };
    assert_eq!((resource.as_str(), holder.as_str(), token.get()), ("jobs", "web-1", grant.token));
}

#[tokio::test]
async fn several_resources_are_granted_together_in_every_mode() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let nothing = pb::Nothing {};
    let request = pb::AcquireRequest {
        session_key: key.clone(),
        requests: vec![
            wanted("x", Mode::Exclusive(nothing)),
            wanted("y", Mode::Shared(nothing)),
            wanted("z", Mode::SlotOf(3)),
        ],
        value: b"host:80".to_vec(),
        ..Default::default()
    };
    let grants = granted(client.acquire(request).await.unwrap().into_inner().outcome);
    let got: Vec<_> = grants.iter().map(|grant| (grant.resource.as_str(), grant.slot)).collect();
    assert_eq!(got, [("x", None), ("y", None), ("z", Some(0))]);
    let lease = client.get_lease(pb::GetLeaseRequest { resource: "y".into() }).await.unwrap().into_inner();
    let holder = lease.lease.unwrap().holders.remove(0);
    assert_eq!((holder.shared, holder.value.as_deref()), (true, Some(&b"host:80"[..])));
    let twice =
        pb::AcquireRequest { requests: vec![acquire(&key, "w").requests.remove(0); 2], ..acquire(&key, "w") };
    let status = client.acquire(twice).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-request", "refused");
}

#[tokio::test]
async fn a_wait_is_answered_when_it_is_granted() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &first, "jobs").await;
    let mut waiter = client.clone();
    let request = pb::AcquireRequest { wait_ms: Some(60_000), ..acquire(&second, "jobs") };
    let waiting = tokio::spawn(async move { waiter.acquire(request).await });
    while renew(&mut client, &second).await.waits.is_empty() {
        assert!(!waiting.is_finished());
    }
    client.release(release(&first, "jobs", token)).await.unwrap();
    let answer = waiting.await.unwrap().unwrap().into_inner();
    assert!(answer.renewal > 0, "the renewals made while it waited count");
    assert!(granted(answer.outcome)[0].token > token);
}

#[tokio::test]
async fn a_wait_that_is_over_says_so() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    held(&mut client, &first, "jobs").await;
    let request = pb::AcquireRequest { wait_ms: Some(20), ..acquire(&second, "jobs") };
    let status = client.acquire(request).await.unwrap_err();
    assert_status(&status, Code::Aborted, "wait-ended", "refused");
    let bytes = status.metadata().get_bin("leasehold-wait-ended-bin").unwrap().to_bytes().unwrap();
    let ended = pb::PlainWaitEnded::decode(bytes).unwrap();
    assert_eq!((ended.number, ended.why()), (1, pb::WaitEnding::TimedOut));
}

#[tokio::test]
async fn a_wait_can_be_cancelled_and_a_grant_cannot() {
    let running = Running::start();
    let mut client = running.client().await;
    let (first, second) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &first, "jobs").await;
    let request =
        pb::AcquireRequest { wait_ms: Some(60_000), return_when_queued: true, ..acquire(&second, "jobs") };
    let cancel = |acquire| pb::CancelRequest { session_key: second.clone(), acquire, ..Default::default() };

    let queued = client.acquire(request.clone()).await.unwrap().into_inner();
    assert_eq!(queued.outcome, Some(Outcome::QueuedAhead(0)));
    let cancelled = client.cancel(cancel(queued.acquire)).await.unwrap().into_inner();
    assert_eq!(cancelled.outcome, Some(CancelOutcome::Cancelled(pb::Nothing {})));
    let status = client.cancel(cancel(queued.acquire)).await.unwrap_err();
    assert_status(&status, Code::NotFound, "no-such-wait", "refused");

    let queued = client.acquire(request).await.unwrap().into_inner();
    client.release(release(&first, "jobs", token)).await.unwrap();
    let cancelled = client.cancel(cancel(queued.acquire)).await.unwrap().into_inner();
    let Some(CancelOutcome::AlreadyGranted(grants)) = cancelled.outcome else { panic!("{cancelled:?}") };
    assert_eq!(grants.grants[0].resource, "jobs");
}

#[tokio::test]
async fn a_release_needs_the_token_that_is_held() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let token = held(&mut client, &key, "jobs").await;
    let status = client.release(release(&key, "jobs", token - 1)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-holder", "refused");
    let drained = pb::ReleaseRequest { drained: true, ..release(&key, "jobs", token) };
    client.release(drained).await.unwrap();
    let history = client.history(pb::HistoryRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    let how = history.past[0].how.as_ref().unwrap().ending.clone();
    assert_eq!((history.past[0].token, how), (token, Some(pb::ending::Ending::Drained(pb::Nothing {}))));
}

#[tokio::test]
async fn a_value_is_shown_and_only_its_holder_changes_it() {
    let running = Running::start();
    let mut client = running.client().await;
    let (key, other) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &key, "jobs").await;
    let set = |key: &str| pb::SetValueRequest {
        session_key: key.into(),
        resource: "jobs".into(),
        token,
        value: vec![0xff],
        ..Default::default()
    };
    client.set_value(set(&key)).await.unwrap();
    let status = client.set_value(set(&other)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-holder", "refused");
    let seen = client.get_lease(pb::GetLeaseRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    let holder = seen.lease.unwrap().holders.remove(0);
    assert_eq!((holder.label.as_str(), holder.value), ("a", Some(vec![0xff])));
    assert_eq!(holder.state, i32::from(pb::HoldingState::Held));
}

#[tokio::test]
async fn a_drain_is_shown_by_its_holder_alone() {
    let running = Running::start();
    let mut client = running.client().await;
    let (key, other) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &key, "jobs").await;
    let drain = |key: &str| pb::DrainRequest {
        session_key: key.into(),
        resource: "jobs".into(),
        token,
        in_flight: 3,
        within_ms: 20_000,
        ..Default::default()
    };
    client.drain(drain(&key)).await.unwrap();
    let status = client.drain(drain(&other)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-holder", "refused");
    let many = pb::DrainRequest { in_flight: 1 << 32, ..drain(&key) };
    let status = client.drain(many).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    let seen = client.get_lease(pb::GetLeaseRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    let shown = seen.lease.unwrap().holders.remove(0).draining.unwrap();
    assert!(shown.in_flight == 3 && shown.remaining_ms <= 20_000, "{shown:?}");
}

#[tokio::test]
async fn a_holder_says_that_it_warms_up_and_that_it_is_ready() {
    let running = Running::start();
    let mut client = running.client().await;
    let (key, other) = (open(&mut client, "a").await, open(&mut client, "b").await);
    let token = held(&mut client, &key, "jobs").await;
    let ready = |key: &str, ready| pb::ReadyRequest {
        session_key: key.into(),
        resource: "jobs".into(),
        token,
        ready,
        ..Default::default()
    };
    let said = async |client: &mut Client| {
        let request = pb::GetLeaseRequest { resource: "jobs".into() };
        let seen = client.get_lease(request).await.unwrap().into_inner();
        seen.lease.unwrap().holders.remove(0).readiness.map(|said| said.readiness.unwrap())
    };
    assert_eq!(said(&mut client).await, None);
    let status = client.ready(ready(&other, None)).await.unwrap_err();
    assert_status(&status, Code::FailedPrecondition, "not-holder", "refused");
    client.ready(ready(&key, Some(false))).await.unwrap();
    assert_eq!(said(&mut client).await, Some(Readiness::WarmingUp(pb::Nothing {})));
    client.ready(ready(&key, None)).await.unwrap();
    let last = said(&mut client).await;
    assert!(matches!(last, Some(Readiness::ReadyAfterMs(_))), "{last:?}");
}

#[tokio::test]
async fn gaps_are_told_of_one_name_and_of_a_page() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let mut tokens = Vec::new();
    for resource in ["a/1", "a/2", "b/1"] {
        let token = held(&mut client, &key, resource).await;
        client.release(release(&key, resource, token)).await.unwrap();
        tokens.push(token);
    }
    let mut gaps = async |request| client.gaps(request).await.map(tonic::Response::into_inner);
    let page = |prefix: &str, limit| pb::GapsRequest { prefix: prefix.into(), limit, ..Default::default() };
    let one = gaps(pb::GapsRequest { resource: Some("a/1".into()), ..Default::default() }).await.unwrap();
    let gap = &one.names[0].gaps[0];
    assert_eq!((one.names[0].resource.as_str(), gap.ended_ago_ms, gap.after.as_ref()), ("a/1", None, None));
    let before = gap.before.as_ref().unwrap();
    assert_eq!((before.token, before.label.as_deref()), (tokens[0], Some("a")));
    let released = pb::ending::Ending::Released(pb::Nothing {});
    assert_eq!(before.how, Some(pb::Ending { ending: Some(released) }));
    // A machine that stood still makes an outage.
    let idle = [pb::GapCause::Queue, pb::GapCause::Outage];
    assert!(gap.parts.iter().all(|part| idle.contains(&part.cause())), "{gap:?}");
    assert!(one.revision > 0 && one.next.is_none(), "{one:?}");
    let first = gaps(page("a/", Some(1))).await.unwrap();
    assert_eq!((first.names[0].resource.as_str(), first.next.as_deref()), ("a/1", Some("a/1")));
    let rest = pb::GapsRequest { after: first.next, ..page("a/", None) };
    let rest = gaps(rest).await.unwrap();
    assert_eq!((rest.names.len(), rest.names[0].resource.as_str(), rest.next), (1, "a/2", None));
    let both = pb::GapsRequest { resource: Some("a/1".into()), ..page("a/", None) };
    let status = gaps(both).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
}

#[tokio::test]
async fn a_resource_that_nobody_knows_is_absent() {
    let running = Running::start();
    let mut client = running.client().await;
    let seen = client.get_lease(pb::GetLeaseRequest { resource: "jobs".into() }).await.unwrap().into_inner();
    assert_eq!(seen.lease, None);
    let status = client.get_lease(pb::GetLeaseRequest { resource: "a#1".into() }).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
    assert!(status.message().starts_with("resource: "), "{}", status.message());
}

#[tokio::test]
async fn resources_are_listed_by_prefix_in_pages() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    for resource in ["a/1", "a/2", "a/3", "b/1"] {
        held(&mut client, &key, resource).await;
    }
    let page = |after: Option<&str>, limit| pb::ListLeasesRequest {
        prefix: "a/".into(),
        after: after.map(Into::into),
        limit,
    };
    let names = |answer: &pb::ListLeasesResponse| {
        answer.leases.iter().map(|lease| lease.resource.clone()).collect::<Vec<_>>().join(" ")
    };
    let first = client.list_leases(page(None, Some(2))).await.unwrap().into_inner();
    assert_eq!((names(&first).as_str(), first.next.as_deref()), ("a/1 a/2", Some("a/2")));
    let rest = client.list_leases(page(first.next.as_deref(), None)).await.unwrap().into_inner();
    assert_eq!((names(&rest).as_str(), rest.next), ("a/3", None));
    let status = client.list_leases(page(None, Some(0))).await.unwrap_err();
    assert_status(&status, Code::InvalidArgument, "bad-field", "refused");
}

#[tokio::test]
async fn a_token_is_current_or_ended_or_not_known() {
    let running = Running::start();
    let mut client = running.client().await;
    let key = open(&mut client, "a").await;
    let (ended, current) = (held(&mut client, &key, "jobs").await, {
        let past = renew(&mut client, &key).await.leases.remove(0).grant.unwrap().token;
        client.release(release(&key, "jobs", past)).await.unwrap();
        held(&mut client, &key, "jobs").await
    });
    let mut check = async |token| {
        let request = pb::CheckTokenRequest { resource: "jobs".into(), token };
        client.check_token(request).await.unwrap().into_inner().check.unwrap().check.unwrap()
    };
    assert_eq!(check(current).await, Check::Current(pb::Nothing {}));
    let released = pb::ending::Ending::Released(pb::Nothing {});
    assert_eq!(check(ended).await, Check::Ended(pb::Ending { ending: Some(released) }));
    assert_eq!(check(1).await, Check::NotKnown(pb::Nothing {}), "that was the session's number");
}
