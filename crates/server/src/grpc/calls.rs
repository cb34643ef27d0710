//! The unary calls, each as a function from its request to its answer.

use std::time::Duration;

use leasehold_api::answer::{AcquireOutcome as Acquired, Cancelled};
use leasehold_api::{Number, request};
use leasehold_core::Grant;
use leasehold_core::protocol::Failure;
use leasehold_wire::messages as pb;
use leasehold_wire::{MAX_FRAME_BYTES, Wire};
use pb::acquire_response::Outcome as AcquireOutcome;
use pb::cancel_response::Outcome as CancelOutcome;
use prost::Message;
use tonic::Request;

use super::{Answered, deadline, fields, status};
use crate::metrics::Metrics;
use crate::ops::{Operations, Outcome};

/// Answers a call: within its caller's deadline, and in a message that its caller takes.
pub(super) async fn unary<M, A: Message, F: Future<Output = Outcome<A>>>(
    metrics: &Metrics,
    call: &'static str,
    request: Request<M>,
    answer: impl FnOnce(M) -> F,
) -> Answered<A> {
    let begun = leasehold_clock::read();
    let deadline = deadline::of(request.metadata());
    let answer = answer(request.into_inner());
    let outcome = match deadline {
        Some(deadline) => tokio::time::timeout(deadline, answer).await.ok(),
        None => Some(answer.await),
    };
    let took = Duration::from_nanos(leasehold_clock::read().raw.saturating_sub(begun.raw));
    let (code, answered) = match outcome.map(|outcome| outcome.and_then(fitting)) {
        Some(Ok(answer)) => ("ok", Ok(tonic::Response::new(answer))),
        Some(Err(fault)) => (fault.code(), Err(status::of(call, &fault))),
        None => ("outcome-unknown", Err(status::too_late(call))),
    };
    metrics.count("grpc", call, code, took);
    tracing::debug!(call, code, micros = took.as_micros(), "answered");
    answered
}

/// Clients take no longer messages, unless they are told to. Only a page can be too long.
fn fitting<A: Message>(answer: A) -> Outcome<A> {
    if answer.encoded_len() > MAX_FRAME_BYTES {
        let why = "the answer does not fit a message; ask for less at once".into();
        return Err(Failure::Unavailable { why }.into());
    }
    Ok(answer)
}

pub(super) async fn open_session(
    ops: &Operations,
    m: pb::OpenSessionRequest,
) -> Outcome<pb::OpenSessionResponse> {
    let opened = ops.open(fields::open(&m)?).await?;
    Ok(pb::OpenSessionResponse {
        opened: Some(pb::Opened {
            session: opened.key.id.get(),
            ttl_ms: opened.ttl.get(),
            drift_ppm: opened.drift.ppm().into(),
            existed: opened.repeated,
        }),
        session_key: opened.key.reveal(),
        renewal: 0,
        renew_every_ms: opened.advice.map(|advice| advice.renew_every.get()),
        margin_ms: opened.advice.map(|advice| advice.margin.get()),
    })
}

pub(super) async fn renew_session(
    ops: &Operations,
    m: pb::RenewSessionRequest,
) -> Outcome<pb::RenewSessionResponse> {
    let renewed = ops.renew(fields::key(&m.session_key)?).await?;
    let pb::Holdings { leases, waits } = renewed.holdings.to_wire();
    Ok(pb::RenewSessionResponse { renewal: renewed.renewal.get(), leases, waits })
}

pub(super) async fn close_session(
    ops: &Operations,
    m: pb::CloseSessionRequest,
) -> Outcome<pb::CloseSessionResponse> {
    let (number, settled) = fields::numbers(m.number, m.settled);
    ops.close(fields::key(&m.session_key)?, request::Close { number, settled }).await?;
    Ok(pb::CloseSessionResponse {})
}

pub(super) async fn list_sessions(
    ops: &Operations,
    m: pb::ListSessionsRequest,
) -> Outcome<pb::ListSessionsResponse> {
    let seen = ops.sessions(request::Sessions { after: m.after.map(Number), limit: m.limit }).await?;
    Ok(pb::ListSessionsResponse {
        revision: seen.revision.get(),
        sessions: seen.answer.items.iter().map(Wire::to_wire).collect(),
        next: seen.answer.next().map(|last| last.session.get()),
    })
}

pub(super) async fn acquire(ops: &Operations, m: pb::AcquireRequest) -> Outcome<pb::AcquireResponse> {
    let key = fields::key(&m.session_key)?;
    let acquired = ops.acquire(key, fields::acquire(m)?).await?;
    let (outcome, held) = match acquired.outcome {
        Acquired::Granted(granted) => {
            let held = granted.iter().filter(|(_, held)| *held).map(|(grant, _)| grant.token.get()).collect();
            let granted: Vec<Grant> = granted.into_iter().map(|(grant, _)| grant).collect();
            (AcquireOutcome::Granted(grants(&granted)), held)
        }
        Acquired::Queued { ahead } => (AcquireOutcome::QueuedAhead(ahead.into()), Vec::new()),
    };
    Ok(pb::AcquireResponse {
        outcome: Some(outcome),
        acquire: acquired.acquire.get(),
        renewal: acquired.renewal.get(),
        answered_before: acquired.repeated,
        held,
    })
}

pub(super) async fn release(ops: &Operations, m: pb::ReleaseRequest) -> Outcome<pb::ReleaseResponse> {
    let (key, resource) = (fields::key(&m.session_key)?, fields::resource(&m.resource)?);
    let (number, settled) = fields::numbers(m.number, m.settled);
    let (token, drained) = (fields::token(m.token)?, Some(m.drained));
    ops.release(key, request::Release { resource, token, drained, number, settled }).await?;
    Ok(pb::ReleaseResponse {})
}

pub(super) async fn set_value(ops: &Operations, m: pb::SetValueRequest) -> Outcome<pb::SetValueResponse> {
    let (key, resource) = (fields::key(&m.session_key)?, fields::resource(&m.resource)?);
    let value_hex = fields::value(m.value)?;
    let (number, settled) = fields::numbers(m.number, m.settled);
    let set = request::SetValue {
        resource,
        token: fields::token(m.token)?,
        value: None,
        value_hex,
        number,
        settled,
    };
    ops.set_value(key, set).await?;
    Ok(pb::SetValueResponse {})
}

pub(super) async fn drain(ops: &Operations, m: pb::DrainRequest) -> Outcome<pb::DrainResponse> {
    let (key, resource) = (fields::key(&m.session_key)?, fields::resource(&m.resource)?);
    let (token, in_flight) = (fields::token(m.token)?, fields::in_flight(m.in_flight)?);
    let ((number, settled), within_ms) = (fields::numbers(m.number, m.settled), m.within_ms);
    ops.drain(key, request::Drain { resource, token, in_flight, within_ms, number, settled }).await?;
    Ok(pb::DrainResponse {})
}

pub(super) async fn ready(ops: &Operations, m: pb::ReadyRequest) -> Outcome<pb::ReadyResponse> {
    let (key, resource) = (fields::key(&m.session_key)?, fields::resource(&m.resource)?);
    let (number, settled) = fields::numbers(m.number, m.settled);
    let (token, ready) = (fields::token(m.token)?, m.ready);
    ops.ready(key, request::Ready { resource, token, ready, number, settled }).await?;
    Ok(pb::ReadyResponse {})
}

pub(super) async fn cancel(ops: &Operations, m: pb::CancelRequest) -> Outcome<pb::CancelResponse> {
    let key = fields::key(&m.session_key)?;
    let (number, settled) = fields::numbers(m.number, m.settled);
    let acquire_number = m.acquire_number.map(Number);
    // Left out and zero are the same, and no acquire has the number zero.
    let acquire = Some(Number(m.acquire)).filter(|acquire| acquire.0 > 0 || acquire_number.is_none());
    let answer = ops.cancel(key, request::Cancel { acquire, acquire_number, number, settled }).await?;
    let outcome = match answer.outcome {
        Cancelled::Cancelled => CancelOutcome::Cancelled(pb::Nothing {}),
        Cancelled::AlreadyGranted(granted) => CancelOutcome::AlreadyGranted(grants(&granted)),
    };
    Ok(pb::CancelResponse { outcome: Some(outcome), answered_before: answer.repeated })
}

pub(super) async fn get_lease(ops: &Operations, m: pb::GetLeaseRequest) -> Outcome<pb::GetLeaseResponse> {
    let seen = ops.get(request::Resource { resource: fields::resource(&m.resource)? }).await?;
    let lease = seen.answer.as_ref().map(Wire::to_wire);
    Ok(pb::GetLeaseResponse { revision: seen.revision.get(), lease })
}

pub(super) async fn list_leases(
    ops: &Operations,
    m: pb::ListLeasesRequest,
) -> Outcome<pb::ListLeasesResponse> {
    let after = fields::after(m.after.as_deref())?;
    let seen = ops.list(request::Leases { prefix: Some(m.prefix), after, limit: m.limit }).await?;
    Ok(pb::ListLeasesResponse {
        revision: seen.revision.get(),
        leases: seen.answer.items.iter().map(Wire::to_wire).collect(),
        next: seen.answer.next().map(|last| last.resource.to_string()),
    })
}

pub(super) async fn check_token(
    ops: &Operations,
    m: pb::CheckTokenRequest,
) -> Outcome<pb::CheckTokenResponse> {
    let seen = ops
        .check(request::Check { resource: fields::resource(&m.resource)?, token: fields::token(m.token)? })
        .await?;
    Ok(pb::CheckTokenResponse { revision: seen.revision.get(), check: Some(seen.answer.to_wire()) })
}

pub(super) async fn history(ops: &Operations, m: pb::HistoryRequest) -> Outcome<pb::HistoryResponse> {
    let seen = ops.history(request::Resource { resource: fields::resource(&m.resource)? }).await?;
    let past = seen.answer.iter().map(Wire::to_wire).collect();
    Ok(pb::HistoryResponse { revision: seen.revision.get(), past })
}

pub(super) async fn gaps(ops: &Operations, m: pb::GapsRequest) -> Outcome<pb::GapsResponse> {
    let seen = ops.gaps(fields::gaps(m)?).await?;
    let pb::GapsAnswer { names, next, outages } = seen.answer.to_wire();
    Ok(pb::GapsResponse { revision: seen.revision.get(), names, next, outages })
}

pub(super) async fn revoke(ops: &Operations, m: pb::RevokeRequest) -> Outcome<pb::RevokeResponse> {
    let held_back = ops.revoke(fields::revoke(&m)?).await?;
    Ok(pb::RevokeResponse { held_back_ms: held_back.get() })
}

pub(super) async fn list_alarms(
    ops: &Operations,
    _: pb::ListAlarmsRequest,
) -> Outcome<pb::ListAlarmsResponse> {
    let seen = ops.alarms().await?;
    let alarms = seen.answer.iter().map(Wire::to_wire).collect();
    Ok(pb::ListAlarmsResponse { revision: seen.revision.get(), alarms })
}

pub(super) async fn clear_alarm(
    ops: &Operations,
    m: pb::ClearAlarmRequest,
) -> Outcome<pb::ClearAlarmResponse> {
    ops.clear_alarm(fields::clear_alarm(&m)?).await?;
    Ok(pb::ClearAlarmResponse {})
}

pub(super) async fn ask_release(
    ops: &Operations,
    m: pb::AskReleaseRequest,
) -> Outcome<pb::AskReleaseResponse> {
    let (resource, by) = (fields::resource(&m.resource)?, fields::by(&m.by)?);
    let token = m.token.map(fields::token).transpose()?;
    let asked = ops.ask_release(request::AskRelease { resource, token, by }).await?;
    let asked = pb::Asked { token: asked.token.get(), holder: asked.holder.to_string() };
    Ok(pb::AskReleaseResponse { asked: Some(asked) })
}

pub(super) async fn write_register(
    ops: &Operations,
    m: pb::WriteRegisterRequest,
) -> Outcome<pb::WriteRegisterResponse> {
    let key = fields::key(&m.session_key)?;
    ops.write_register(key, fields::write_register(m)?).await?;
    Ok(pb::WriteRegisterResponse {})
}

pub(super) async fn read_register(
    ops: &Operations,
    m: pb::ReadRegisterRequest,
) -> Outcome<pb::ReadRegisterResponse> {
    let seen = ops
        .read_register(request::Register {
            resource: fields::resource(&m.resource)?,
            key: fields::text("key", &m.key)?,
        })
        .await?;
    let register = seen
        .answer
        .map(|(value, token)| pb::Register { value: value.as_bytes().to_vec(), token: token.get() });
    Ok(pb::ReadRegisterResponse { revision: seen.revision.get(), register })
}

pub(super) async fn get_status(ops: &Operations, _: pb::GetStatusRequest) -> Outcome<pb::GetStatusResponse> {
    Ok(pb::GetStatusResponse { status: Some(ops.status().await?.to_wire()) })
}

fn grants(grants: &[Grant]) -> pb::Grants {
    pb::Grants { grants: grants.iter().map(Wire::to_wire).collect() }
}
