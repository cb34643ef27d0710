//! For those who run the service: health, readiness, metrics, and the description of the interface.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use leasehold_api::request;
use leasehold_core::Millis;

use super::HttpState;
use super::answer::Refused;
use super::read::Fields;
use crate::metrics;
use crate::ops::not_now;

/// The process is there and answers; nothing else is asked.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// The node takes in requests, by itself or through its leader.
pub(super) async fn readiness(State(state): State<HttpState>) -> Result<String, Refused> {
    match state.shared.ops.caller().inspect().await {
        Some(inspection) if inspection.ready => Ok(ready(inspection.restore_wait)),
        Some(inspection) if inspection.membership.is_blank() => {
            Err(Refused(not_now(&no_cluster(&state.shared.ops.asking().missing_founders()))))
        }
        Some(inspection) if inspection.leader.is_none() => Err(Refused(not_now("no node is known to lead"))),
        Some(_) => Err(Refused(not_now("this node has not caught up yet"))),
        None => Err(Refused(not_now("the service has stopped"))),
    }
}

/// Why a blank node is not ready.
fn no_cluster(missing: &[String]) -> String {
    let why = "this node belongs to no cluster yet";
    if missing.is_empty() { why.to_owned() } else { format!("{why}: it waits for {}", missing.join(", ")) }
}

/// The first line is for programs. A node that grants nothing yet is ready all the same: sessions are opened, and waits wait.
fn ready(restore_wait: Option<Millis>) -> String {
    match restore_wait {
        None => "ok\n".to_owned(),
        Some(left) => {
            let seconds = left.get().div_ceil(1_000);
            format!("ok\nthe state was restored, and nothing is granted for another {seconds} s\n")
        }
    }
}

/// Answered as long as the process can: what a stopped node would have said is left out.
pub(super) async fn numbers(State(state): State<HttpState>) -> Response {
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    ([(CONTENT_TYPE, kind)], state.shared.metrics.render().await).into_response()
}

pub(super) async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], include_str!("../../openapi.json")).into_response()
}

const CHECKSUM: HeaderName = HeaderName::from_static("x-checksum-crc32c");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const AS_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"leasehold.backup\"");

/// Everything that this node has applied, as a file.
pub(super) async fn backup(
    State(state): State<HttpState>,
    Fields(fields): Fields<request::Backup>,
) -> Result<Response, Refused> {
    let (file, checksum) = state.shared.ops.backup(fields).await?;
    let checksum = HeaderValue::from_str(&format!("{checksum:08x}")).expect("digits are visible ASCII");
    let headers = [(CONTENT_TYPE, BYTES), (CONTENT_DISPOSITION, AS_FILE), (CHECKSUM, checksum)];
    Ok((headers, file).into_response())
}
