//! For those who run the nodes: how they stand, who is one of them, and a backup of what they keep.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use leasehold_core::protocol::{ClusterCommand, Failure};
use leasehold_server::backup_file;

use super::HttpState;
use super::answer::{Answered, Refused};
use super::fields::Fields;
use super::input::{AddFields, MemberFields, NoFields, TransferFields};
use super::output::{ChangedJson, ClusterJson, TransferredJson};
use crate::plain::Fault;

type Answer<T> = Result<Answered<T>, Refused>;

const CHECKSUM: HeaderName = HeaderName::from_static("x-checksum-crc32c");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AS_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"leasehold.backup\"");

pub(super) async fn status(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Answer<ClusterJson> {
    let view = state.plain().cluster().await?;
    Ok(Answered((&view).into()))
}

pub(super) async fn add(
    State(state): State<HttpState>,
    Fields(fields): Fields<AddFields>,
) -> Answer<ChangedJson> {
    let (name, address) = fields.node()?;
    let revision = state.plain().add_member(state.asking(), &name, &address).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn promote(
    State(state): State<HttpState>,
    Fields(fields): Fields<MemberFields>,
) -> Answer<ChangedJson> {
    let revision = state.plain().change(ClusterCommand::Promote { name: fields.name()? }).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn remove(
    State(state): State<HttpState>,
    Fields(fields): Fields<MemberFields>,
) -> Answer<ChangedJson> {
    let revision = state.plain().change(ClusterCommand::Remove { name: fields.name()? }).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn transfer(
    State(state): State<HttpState>,
    Fields(fields): Fields<TransferFields>,
) -> Answer<TransferredJson> {
    let leader = state.plain().transfer(fields.to()?).await?;
    let (_, _, membership) = state.asking().known();
    Ok(Answered(TransferredJson::new(leader, &membership)))
}

/// Everything that this node has applied, as a file. It is put together off the thread that answers others.
pub(super) async fn backup(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Result<Response, Refused> {
    let not_now = |why: &str| Refused(Fault::Failed(Failure::Unavailable { why: why.to_owned() }));
    if state.asking().known().2.is_blank() {
        return Err(not_now("this node belongs to no cluster yet"));
    }
    let snapshot =
        state.plain().caller().snapshot().await.ok_or_else(|| not_now("the service has stopped"))?;
    let made = tokio::task::spawn_blocking(move || {
        let file = backup_file(snapshot);
        let checksum = crc32c::crc32c(&file);
        (file, checksum)
    });
    let (file, checksum) = made.await.map_err(|_| not_now("the backup could not be made"))?;
    let checksum = HeaderValue::from_str(&format!("{checksum:08x}")).expect("digits are visible ASCII");
    let headers = [(CONTENT_TYPE, BYTES), (CONTENT_DISPOSITION, AS_FILE), (CHECKSUM, checksum)];
    Ok((headers, file).into_response())
}
