//! For those who run the service: health, readiness, metrics, and the description of the interface.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use leasehold_core::Millis;
use leasehold_core::protocol::Failure;

use super::HttpState;
use super::answer::Refused;
use super::openapi;
use crate::metrics;
use crate::plain::ApiError;

/// The process is there and answers; nothing else is asked.
pub(super) async fn health() -> &'static str {
    "ok\n"
}

/// The node takes in requests, by itself or through its leader.
pub(super) async fn readiness(State(state): State<HttpState>) -> Result<String, Refused> {
    match state.plain().caller().inspect().await {
        Some(inspection) if inspection.ready => Ok(ready(inspection.restore_wait)),
        Some(inspection) if inspection.membership.is_blank() => {
            Err(not_now(&no_cluster(&state.asking().missing_founders())))
        }
        Some(inspection) if inspection.leader.is_none() => Err(not_now("no node is known to lead")),
        Some(_) => Err(not_now("this node has not caught up yet")),
        None => Err(not_now("the service has stopped")),
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
    ([(CONTENT_TYPE, kind)], state.metrics().render().await).into_response()
}

pub(super) async fn openapi() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(CONTENT_TYPE, kind)], openapi::document()).into_response()
}

fn not_now(why: &str) -> Refused {
    Refused(ApiError::Failed(Failure::Unavailable { why: why.to_owned() }))
}
