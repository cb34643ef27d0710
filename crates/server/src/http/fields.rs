//! The fields of a request: a JSON object in the body of a POST, or the parameters of a GET. Both are read into the same types,
//! and both are read strictly: a field that is not known, or given twice, is refused by name.
//!
//! A body must be said to be JSON. Forms of web pages cannot say so, which keeps other people's pages from posting in the name of
//! whoever looks at them.

mod node;
mod read;

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, Method};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;

use self::node::Node;
pub(crate) use self::read::quoted;
use super::HttpState;
use super::answer::Refused;
use crate::plain::ApiError;

/// Of a body that is too large, so many times the limit is read and thrown away before it is refused.
const DISCARDED_BODIES: usize = 4;
/// And for so long at most.
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// The fields of a request, read and checked.
pub(crate) struct Fields<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<HttpState> for Fields<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &HttpState) -> Result<Self, Refused> {
        let query = Node::from_query(request.uri().query().unwrap_or_default())?;
        let node = match *request.method() {
            Method::GET | Method::HEAD => query,
            _ => {
                refuse_parameters(query)?;
                let (parts, body) = request.into_parts();
                let body = state.read_body(&parts.headers, body).await?;
                Node::from_json(&body)?
            }
        };
        T::deserialize(node).map(Self).map_err(|error| Refused(error.into()))
    }
}

/// Where a body is expected, a parameter would be overlooked.
fn refuse_parameters(query: Node) -> Result<(), ApiError> {
    match query {
        Node::Map(fields) => match fields.into_iter().next() {
            None => Ok(()),
            Some((field, _)) => {
                Err(ApiError::BadField { field, why: "a POST has its fields in the body".to_owned() })
            }
        },
        _ => Ok(()),
    }
}

impl HttpState {
    async fn read_body(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, ApiError> {
        let limit = self.limits().max_body_bytes;
        let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let too_large = said.is_some_and(|said: usize| said > limit);
        if too_large && headers.contains_key(EXPECT) {
            return Err(ApiError::BodyTooLarge { limit });
        }
        let mut chunks = body.into_data_stream();
        let time = self.limits().request_timeout;
        let collected = if too_large {
            None
        } else {
            let collecting = tokio::time::timeout(time, collect(&mut chunks, limit));
            collecting.await.map_err(|_| ApiError::RequestTimeout { limit: time })??
        };
        let Some(body) = collected else {
            let _ = tokio::time::timeout(DISCARD_TIME, discard(&mut chunks, limit)).await;
            return Err(ApiError::BodyTooLarge { limit });
        };
        if !body.is_empty() || headers.contains_key(CONTENT_TYPE) {
            check_content_type(headers)?;
        }
        Ok(body)
    }
}

/// The whole body; nothing if it is longer than that.
async fn collect(chunks: &mut BodyDataStream, limit: usize) -> Result<Option<Vec<u8>>, ApiError> {
    let mut whole = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| ApiError::BadJson { why: format!("it broke off: {error}") })?;
        if whole.len() + chunk.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Some(whole))
}

/// Reads on a little and keeps nothing: a client that is still sending when the connection is closed sees a broken connection
/// and not its answer.
async fn discard(chunks: &mut BodyDataStream, limit: usize) {
    let mut left = limit.saturating_mul(DISCARDED_BODIES);
    while let Some(Ok(chunk)) = chunks.next().await {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            return;
        }
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut given = headers.get_all(CONTENT_TYPE).iter();
    let (first, second) = (given.next(), given.next());
    let text = first.map_or("", |value| value.to_str().unwrap_or("unreadable"));
    if second.is_none() && is_json(text) {
        return Ok(());
    }
    Err(ApiError::WrongContentType { found: text.chars().take(100).collect() })
}

fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let utf8 = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
    };
    json && parts.all(utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_in_utf_8_is_json() {
        for good in ["application/json", "Application/JSON ; charset=\"UTF-8\"", "application/json;x=y"] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "text/plain", "application/json; charset=latin1", "application/jsonp", "text/json"] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
