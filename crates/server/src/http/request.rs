//! What happens to every request, whatever it asks for: it gets a name, its head is measured, what came of it is counted and
//! logged, and a fault gets its body. Neither session keys nor values are logged: only method, path and outcome.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leasehold_api::code::Kind;
use leasehold_api::{ApiError, call};
use leasehold_core::holder::Reading;
use tracing::Instrument;

use super::HttpState;
use super::answer::{Refused, render};

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
    let limit = state.shared.limits.max_header_bytes;
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
    let counted = operation(&method, &path);
    let kind = fault.as_ref().map(|fault| fault.kind());
    let code = fault.as_ref().map_or("ok", |fault| fault.code());
    let took = time_since(begun);
    state.shared.metrics.count("http", counted, code, took);
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
        Some(_) => match state.shared.repeats.say((counted, code), leasehold_clock::read()) {
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

/// What a request is counted as: one of a closed list, so that no client can fill the memory with made-up paths.
fn operation(method: &Method, path: &str) -> &'static str {
    let reads = [Method::GET, Method::HEAD].contains(method);
    let kind = if reads { call::Method::Get } else { call::Method::Post };
    match call::at(kind, path).or_else(|| call::at_path(path).next()) {
        Some(call) if call.path.starts_with("/v1/") => call.name,
        Some(_) => "side",
        None => "none",
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
        assert_eq!(operation(&Method::GET, "/elsewhere"), "none");
        assert_eq!(operation(&Method::HEAD, "/metrics"), "side");
        for call in call::CALLS {
            let method = if call.method == call::Method::Get { Method::GET } else { Method::POST };
            let counted = operation(&method, &call.path.replace("{session}", "16"));
            assert!(counted == call.name || counted == "side", "{} is counted as {counted}", call.path);
            assert!(reference.contains(&format!("`{counted}`")), "{} is counted as {counted}", call.path);
        }
    }
}
