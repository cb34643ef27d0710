//! For those who run the nodes: how they stand, who is one of them, and a backup of what they keep.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use leasehold_core::protocol::{ClusterCommand, Failure};
use leasehold_host::backup_file;

use super::HttpState;
use super::answer::{Answered, Refused};
use super::fields::Fields;
use super::input::{AddFields, BackupFields, MemberFields, NoFields, TransferFields};
use crate::plain::ApiError;
use leasehold_api::answer;
use leasehold_api::view::{Changed, Cluster, LocalCluster, Transferred};

type Answer<T> = Result<Answered<T>, Refused>;

const CHECKSUM: HeaderName = HeaderName::from_static("x-checksum-crc32c");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AS_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"leasehold.backup\"");
/// A node that is asked for a backup gets this long to apply what was decided by then.
const CATCH_UP_TIME: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(super) async fn status(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Answer<Cluster> {
    let view = state.plain().cluster().await?;
    let look = state.plain().caller().inspect().await;
    Ok(Answered(answer::ClusterState { view, restore_wait: look.and_then(|look| look.restore_wait) }.into()))
}

/// What this node knows without asking anybody.
pub(super) async fn local(
    State(state): State<HttpState>,
    Fields(NoFields {}): Fields<NoFields>,
) -> Answer<LocalCluster> {
    let look = state.plain().caller().inspect().await.ok_or_else(|| not_now("the service has stopped"))?;
    Ok(Answered(
        answer::LocalNode {
            me: look.membership.me,
            members: look.membership.members.clone(),
            advertised: state.asking().advertised().to_owned(),
            incarnation: look.membership.incarnation,
            epoch: look.membership.epoch,
            leader: look.leader,
            ready: look.ready,
            applied: look.applied,
            restore_wait: look.restore_wait,
        }
        .into(),
    ))
}

pub(super) async fn add(
    State(state): State<HttpState>,
    Fields(fields): Fields<AddFields>,
) -> Answer<Changed> {
    let (name, address) = fields.node()?;
    let (me, _, membership) = state.asking().known();
    let advertised = state.asking().advertised();
    // The new node would dial what is recorded, for ever and in vain.
    if let Some(recorded) = membership.member(me).filter(|member| member.address != advertised) {
        let (recorded, advertised) = (recorded.address.clone(), advertised.to_owned());
        return Err(Refused(ApiError::AddressDiffers { recorded, advertised }));
    }
    let revision = state.plain().add_member(state.asking(), &name, &address).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn promote(
    State(state): State<HttpState>,
    Fields(fields): Fields<MemberFields>,
) -> Answer<Changed> {
    let revision = state.plain().change(ClusterCommand::Promote { name: fields.name()? }).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn remove(
    State(state): State<HttpState>,
    Fields(fields): Fields<MemberFields>,
) -> Answer<Changed> {
    let revision = state.plain().change(ClusterCommand::Remove { name: fields.name()? }).await?;
    Ok(Answered(revision.into()))
}

pub(super) async fn transfer(
    State(state): State<HttpState>,
    Fields(fields): Fields<TransferFields>,
) -> Answer<Transferred> {
    let leader = state.plain().transfer(fields.to()?).await?;
    let (_, _, membership) = state.asking().known();
    Ok(Answered(
        answer::Transferred { leader, name: membership.member(leader).map(|member| member.name.clone()) }
            .into(),
    ))
}

/// Everything that this node has applied, as a file. It is put together off the thread that answers others.
pub(super) async fn backup(
    State(state): State<HttpState>,
    Fields(fields): Fields<BackupFields>,
) -> Result<Response, Refused> {
    if state.asking().known().2.is_blank() {
        return Err(not_now("this node belongs to no cluster yet"));
    }
    if !fields.may_be_old() {
        until_current(&state).await?;
    }
    let snapshot =
        state.plain().caller().snapshot().await.ok_or_else(|| not_now("the service has stopped"))?;
    let made = tokio::task::spawn_blocking(move || {
        let file = backup_file(snapshot.save());
        let checksum = crc32c::crc32c(&file);
        (file, checksum)
    });
    let (file, checksum) = made.await.map_err(|_| not_now("the backup could not be made"))?;
    let checksum = HeaderValue::from_str(&format!("{checksum:08x}")).expect("digits are visible ASCII");
    let headers = [(CONTENT_TYPE, BYTES), (CONTENT_DISPOSITION, AS_FILE), (CHECKSUM, checksum)];
    Ok((headers, file).into_response())
}

/// Waits until this node has applied everything that was decided when it was asked. One that is cut off, or has no leader, cannot know what
/// that is: its backup would be old without a word.
async fn until_current(state: &HttpState) -> Result<(), Refused> {
    let old = |why: &str| not_now(&format!("a backup of this node might be old: {why}"));
    let caller = state.plain().caller();
    let look = || async { caller.inspect().await.ok_or_else(|| not_now("the service has stopped")) };
    let current = async {
        while !look().await?.ready {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        // A read is answered as of now, by whoever leads.
        let decided = state.plain().list(String::new(), None, 1).await?.revision;
        while look().await?.applied < decided {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    };
    let waited = tokio::time::timeout(CATCH_UP_TIME, current).await;
    waited.unwrap_or_else(|_| Err(old("it is not in touch with a leader, or does not catch up in time")))
}

fn not_now(why: &str) -> Refused {
    Refused(ApiError::Failed(Failure::Unavailable { why: why.to_owned() }))
}
