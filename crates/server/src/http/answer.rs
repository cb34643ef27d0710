//! Responses: JSON for what was asked for, and an error that becomes a problem where the request's id is known.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use leasehold_api::ApiError;
use leasehold_api::view::Problem;
use serde::Serialize;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Seconds after which a client may ask again: a leader is elected in about that time, and a place becomes free.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("1");

/// What was asked for.
pub(crate) struct Answered<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answered<T> {
    fn into_response(self) -> Response {
        let body =
            serde_json::to_vec(&self.0).expect("answers have texts as keys and no failing serializers");
        ([(CONTENT_TYPE, JSON)], body).into_response()
    }
}

/// An answer in the form in which it is shown.
pub(crate) fn shown<A, V: From<A>>(outcome: Result<A, ApiError>) -> Result<Answered<V>, Refused> {
    Ok(Answered(V::from(outcome?)))
}

/// Why there is no answer. The response has no body yet: see [`render`].
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) ApiError);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = status(&self.0).into_response();
        response.extensions_mut().insert(Arc::new(self.0));
        response
    }
}

fn status(error: &ApiError) -> StatusCode {
    StatusCode::from_u16(error.http_status()).expect("codes have statuses that exist")
}

/// An error as every client sees it.
pub(crate) fn problem(error: &ApiError, request_id: &str) -> String {
    let title = status(error).canonical_reason().unwrap_or_default();
    let problem = Problem::new(error, title, request_id);
    serde_json::to_string(&problem).expect("problems have texts as keys and no failing serializers")
}

/// Gives a response that carries an error its body, and gives the error back.
pub(crate) fn render(response: &mut Response, request_id: &str) -> Option<Arc<ApiError>> {
    let error = response.extensions_mut().remove::<Arc<ApiError>>()?;
    *response.body_mut() = Body::from(problem(&error, request_id));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, PROBLEM);
    if [429, 503].contains(&error.http_status()) {
        headers.insert(RETRY_AFTER, ASK_AGAIN);
    }
    if let ApiError::WrongMethod { allowed } = &*error {
        headers.insert(ALLOW, HeaderValue::from_str(allowed).expect("methods are visible ASCII"));
    }
    Some(error)
}
