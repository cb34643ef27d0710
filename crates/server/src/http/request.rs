//! What happens to every request, whatever it asks for: it gets a name, its head is measured, what came of it is counted and
//! logged, and a fault gets its body. Neither session keys nor values are logged: only method, path and outcome.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leasehold_core::holder::Reading;
use tracing::Instrument;

use super::HttpState;
use super::answer::{Refused, render};
use leasehold_api::ApiError;
use leasehold_api::code::Kind;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFFING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
/// Longest name that a caller may give its request.
const LONGEST_NAME: usize = 64;
/// What a log shows of a path.
const SHOWN_PATH: usize = 128;

/// What a request is called in answers and logs: the caller's word, or one that is drawn.
#[derive(Debug, Clone)]
pub(crate) struct RequestName(Arc<str>);

impl RequestName {
    fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let fits = |name: &&str| {
            (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
        };
        given.filter(fits).map_or_else(Self::draw, |name| Self(name.into()))
    }

    fn draw() -> Self {
        let mut bytes = [0; 8];
        // Without randomness requests share a name, and nothing depends on it.
        let _ = getrandom::fill(&mut bytes);
        Self(format!("{:016x}", u64::from_be_bytes(bytes)).into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Wraps every request.
pub(super) async fn every(State(state): State<HttpState>, mut request: Request, next: Next) -> Response {
    let begun = leasehold_clock::read();
    let name = RequestName::of(request.headers());
    let method = request.method().clone();
    let path: String = request.uri().path().chars().take(SHOWN_PATH).collect();
    request.extensions_mut().insert(name.clone());
    let limit = state.limits().max_header_bytes;
    let span = tracing::debug_span!("http", request_id = name.as_str());
    let mut response = if head_bytes(&request) > limit {
        Refused(ApiError::HeadersTooLarge { limit }).into_response()
    } else {
        next.run(request).instrument(span).await
    };
    let fault = render(&mut response, name.as_str());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(NO_SNIFFING.0, NO_SNIFFING.1);
    let echoed = HeaderValue::from_str(name.as_str()).expect("a name is visible ASCII");
    headers.insert(REQUEST_ID, echoed);
    let kind = fault.as_ref().map(|fault| fault.kind());
    let code = fault.as_ref().map_or("ok", |fault| fault.code());
    let took = time_since(begun);
    state.metrics().count("http", operation(&path), code, took);
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    let (request_id, method) = (name.as_str(), method.as_str());
    match kind {
        None => tracing::debug!(request_id, method, path, status, micros, code, "answered"),
        Some(Kind::Refused) => {
            tracing::info!(request_id, method, path, status, micros, code, "refused");
        }
        // What the caller did wrong is not worth more than what the table refuses.
        Some(Kind::Failed) if status < 500 => {
            tracing::info!(request_id, method, path, status, micros, code, "not taken in");
        }
        // Whoever looks whether a node is ready does so all the time.
        Some(_) => match state.repeats().say((operation(&path), code), leasehold_clock::read()) {
            Some(more) => {
                let words = "failed; `more` of the kind were not told";
                tracing::warn!(request_id, method, path, status, micros, code, more, "{words}");
            }
            None => tracing::debug!(request_id, method, path, status, micros, code, "failed"),
        },
    }
    response
}

/// The head as it is counted against its limit: path, query, names and values.
fn head_bytes(request: &Request) -> usize {
    let uri = request.uri();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
    uri.path().len() + uri.query().map_or(0, str::len) + headers.sum::<usize>()
}

fn time_since(begun: Reading) -> Duration {
    Duration::from_nanos(leasehold_clock::read().raw.saturating_sub(begun.raw))
}

/// What a path is counted as: one of a closed list, so that nobody can fill the memory with made-up paths.
fn operation(path: &str) -> &'static str {
    match path {
        "/v1/session/open" => "open",
        "/v1/session/renew" => "renew",
        "/v1/session/close" => "close",
        "/v1/session/list" => "sessions",
        "/v1/lease/acquire" => "acquire",
        "/v1/lease/release" => "release",
        "/v1/lease/set-value" => "set-value",
        "/v1/lease/drain" => "drain",
        "/v1/lease/ready" => "set-ready",
        "/v1/lease/cancel" => "cancel",
        "/v1/lease/get" => "get",
        "/v1/lease/list" => "list",
        "/v1/lease/check" => "check",
        "/v1/lease/history" => "history",
        "/v1/lease/gaps" => "gaps",
        "/v1/lease/revoke" => "revoke",
        "/v1/lease/ask-release" => "ask-release",
        "/v1/lease/alarms" => "alarms",
        "/v1/lease/clear-alarm" => "clear-alarm",
        "/v1/register/write" => "write-register",
        "/v1/register/read" => "read-register",
        "/v1/status" => "status",
        "/v1/watch" => "watch",
        "/v1/backup" => "backup",
        "/v1/cluster/status" => "cluster-status",
        "/v1/cluster/local" => "cluster-local",
        "/v1/cluster/add" => "cluster-add",
        "/v1/cluster/promote" => "cluster-promote",
        "/v1/cluster/remove" => "cluster-remove",
        "/v1/cluster/transfer" => "cluster-transfer",
        "/openapi.json" | "/healthz" | "/readyz" | "/metrics" => "side",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_the_name_that_its_caller_gave_it_if_that_fits_a_header() {
        let name = |given: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
            RequestName::of(&headers).as_str().to_owned()
        };
        assert_eq!(name(b"trace-7/x"), "trace-7/x");
        for odd in [&b""[..], &[b'x'; 65], b"a b", b"\xc3\xa4", b"a\tb"] {
            assert_eq!(name(odd).len(), 16, "{odd:?}");
        }
        assert_ne!(name(b""), name(b""));
    }

    #[test]
    fn the_reference_names_everything_that_a_path_is_counted_as() {
        let reference = include_str!("../../../../docs/reference/metrics.md");
        for path in crate::http::openapi::paths().chain(["/metrics", "/elsewhere"]) {
            let counted = operation(path);
            assert_eq!(counted == "none", path == "/elsewhere", "{path}");
            assert!(reference.contains(&format!("`{counted}`")), "{path} is counted as {counted}");
        }
    }
}
