//! Responses: JSON for what was asked for, and a fault that is rendered where the request's id is known.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

use crate::plain::ApiError;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What was asked for.
pub(crate) struct Answered<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Answered<T> {
    fn into_response(self) -> Response {
        let body =
            serde_json::to_vec(&self.0).expect("answers have texts as keys and no failing serializers");
        ([(CONTENT_TYPE, JSON)], body).into_response()
    }
}

/// Why there is no answer. The response has no body yet: see [`render`].
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) ApiError);

impl From<ApiError> for Refused {
    fn from(fault: ApiError) -> Self {
        Self(fault)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = status(&self.0).into_response();
        response.extensions_mut().insert(Arc::new(self.0));
        response
    }
}

fn status(fault: &ApiError) -> StatusCode {
    StatusCode::from_u16(fault.http_status()).expect("faults have statuses that exist")
}

/// A fault as everybody sees it.
pub(crate) fn error_json(fault: &ApiError, request_id: &str) -> Value {
    json!({
        "error": {
            "code": fault.code(),
            "kind": fault.kind().as_str(),
            "message": fault.message(),
            "request_id": request_id,
            "details": fault.details(),
        }
    })
}

/// Gives a response that carries a fault its body, and gives the fault back.
pub(crate) fn render(response: &mut Response, request_id: &str) -> Option<Arc<ApiError>> {
    let fault = response.extensions_mut().remove::<Arc<ApiError>>()?;
    *response.body_mut() = Body::from(error_json(&fault, request_id).to_string());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let ApiError::WrongMethod { allowed } = *fault {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    Some(fault)
}
