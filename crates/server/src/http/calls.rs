//! The calls: fields in, one call to the node, JSON out.

use axum::extract::State;

use leasehold_core::{Millis, Token};

use super::HttpState;
use super::answer::{Answered, Refused};
use super::fields::Fields;
use super::input::{
    AcquireFields, AskFields, CancelFields, ClearFields, DrainFields, GapsFields, LeasesFields, NoFields,
    OpenFields, ReadyFields, RegisterFields, ReleaseFields, ResourceFields, RevokeFields, SessionFields,
    SessionsFields, SetValueFields, TokenFields, WriteFields,
};
use leasehold_api::view::*;

type Answer<T> = Result<Answered<T>, Refused>;

pub(super) async fn open(
    State(state): State<HttpState>,
    Fields(fields): Fields<OpenFields>,
) -> Answer<Opened> {
    let opened = state.plain().open(fields.session()).await?;
    Ok(Answered(opened.into()))
}

pub(super) async fn renew(
    State(state): State<HttpState>,
    Fields(fields): Fields<SessionFields>,
) -> Answer<Renewed> {
    let renewed = state.plain().renew(fields.session_key.0).await?;
    Ok(Answered(renewed.into()))
}

pub(super) async fn close(
    State(state): State<HttpState>,
    Fields(fields): Fields<SessionFields>,
) -> Answer<Done> {
    state.plain().close(fields.session_key.0).await?;
    Ok(Answered(().into()))
}

pub(super) async fn sessions(
    State(state): State<HttpState>,
    Fields(fields): Fields<SessionsFields>,
) -> Answer<Sessions> {
    let (after, limit) = fields.page()?;
    let seen = state.plain().sessions(after, limit).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn acquire(
    State(state): State<HttpState>,
    Fields(fields): Fields<AcquireFields>,
) -> Answer<Acquired> {
    let key = fields.session_key.0;
    let (acquire, hold) = fields.acquire()?;
    let acquired = state.plain().acquire(key, acquire, hold).await?;
    Ok(Answered(acquired.into()))
}

pub(super) async fn release(
    State(state): State<HttpState>,
    Fields(fields): Fields<ReleaseFields>,
) -> Answer<Done> {
    let (key, token) = (fields.session_key.0, fields.token());
    state.plain().release(key, fields.resource, token, fields.drained.unwrap_or(false)).await?;
    Ok(Answered(().into()))
}

pub(super) async fn set_value(
    State(state): State<HttpState>,
    Fields(mut fields): Fields<SetValueFields>,
) -> Answer<Done> {
    let value = fields.value()?;
    let (key, token) = (fields.session_key.0, Token::from_u64(fields.token.0));
    state.plain().set_value(key, fields.resource, token, value).await?;
    Ok(Answered(().into()))
}

pub(super) async fn drain(
    State(state): State<HttpState>,
    Fields(fields): Fields<DrainFields>,
) -> Answer<Done> {
    let (key, token) = (fields.session_key.0, Token::from_u64(fields.token.0));
    let shown = (fields.in_flight, Millis::new(fields.within_ms));
    state.plain().drain(key, fields.resource, token, shown).await?;
    Ok(Answered(().into()))
}

pub(super) async fn ready(
    State(state): State<HttpState>,
    Fields(fields): Fields<ReadyFields>,
) -> Answer<Done> {
    let (key, token) = (fields.session_key.0, Token::from_u64(fields.token.0));
    state.plain().ready(key, fields.resource, token, fields.ready.unwrap_or(true)).await?;
    Ok(Answered(().into()))
}

pub(super) async fn cancel(
    State(state): State<HttpState>,
    Fields(fields): Fields<CancelFields>,
) -> Answer<Cancelled> {
    let cancelled = state.plain().cancel(fields.session_key.0, fields.acquire()).await?;
    Ok(Answered(cancelled.into()))
}

pub(super) async fn get(
    State(state): State<HttpState>,
    Fields(fields): Fields<ResourceFields>,
) -> Answer<LeaseAnswer> {
    let seen = state.plain().get(fields.resource).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn list(
    State(state): State<HttpState>,
    Fields(fields): Fields<LeasesFields>,
) -> Answer<Leases> {
    let (prefix, after, limit) = fields.page()?;
    let seen = state.plain().list(prefix, after, limit).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn check(
    State(state): State<HttpState>,
    Fields(fields): Fields<TokenFields>,
) -> Answer<Check> {
    let seen = state.plain().check(fields.resource, Token::from_u64(fields.token.0)).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn history(
    State(state): State<HttpState>,
    Fields(fields): Fields<ResourceFields>,
) -> Answer<History> {
    let seen = state.plain().history(fields.resource).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn gaps(State(state): State<HttpState>, Fields(fields): Fields<GapsFields>) -> Answer<Gaps> {
    let (of, last) = fields.of()?;
    let seen = state.plain().gaps(of, last).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn revoke(
    State(state): State<HttpState>,
    Fields(fields): Fields<RevokeFields>,
) -> Answer<Revoked> {
    let held_back = state.plain().revoke(fields.revoke()).await?;
    Ok(Answered(held_back.into()))
}

pub(super) async fn alarms(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Answer<Alarms> {
    let seen = state.plain().alarms().await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn clear_alarm(
    State(state): State<HttpState>,
    Fields(fields): Fields<ClearFields>,
) -> Answer<Done> {
    state.plain().clear_alarm(fields.clear()).await?;
    Ok(Answered(().into()))
}

pub(super) async fn ask_release(
    State(state): State<HttpState>,
    Fields(fields): Fields<AskFields>,
) -> Answer<Asked> {
    let (resource, token, by) = fields.split();
    let asked = state.plain().ask_release(resource, token, by).await?;
    Ok(Answered(asked.into()))
}

pub(super) async fn write_register(
    State(state): State<HttpState>,
    Fields(fields): Fields<WriteFields>,
) -> Answer<Done> {
    let key = fields.session_key.0;
    state.plain().write_register(key, fields.write()?).await?;
    Ok(Answered(().into()))
}

pub(super) async fn read_register(
    State(state): State<HttpState>,
    Fields(fields): Fields<RegisterFields>,
) -> Answer<RegisterAnswer> {
    let seen = state.plain().read_register(fields.resource, fields.key).await?;
    Ok(Answered(seen.into()))
}

pub(super) async fn status(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Answer<Status> {
    let status = state.plain().status().await?;
    Ok(Answered(status.into()))
}
