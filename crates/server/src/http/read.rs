//! The fields of a request: parameters of a GET, or a JSON object in the body of a POST. Both are read strictly by the types themselves: a
//! field that is not known, or given twice, is refused by name. With the parameter `ignore-unknown=true` what is not known is left out instead.
//!
//! A POST must be said to be JSON, even one without a body. A page of another origin cannot say so unless it is allowed to, and it is not: this
//! keeps pages from posting in the name of their reader.

mod query;
mod single;
mod wording;

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use futures_util::StreamExt;
use leasehold_api::call::{IGNORE_UNKNOWN, SESSION_HEADER};
use leasehold_api::{ApiError, Number, Object, SessionKey, bad_field};
use serde::de::DeserializeOwned;

use self::query::{Pairs, pairs};
use self::single::Single;
use self::wording::Wrong;
use super::HttpState;
use super::answer::Refused;

/// Of a body that is too large, this many times the limit is read and thrown away before it is refused.
const DISCARDED_BODIES: usize = 4;
/// And for this long at most.
const DISCARD_TIME: Duration = Duration::from_secs(1);
/// Unknown fields that a request may have when they are ignored: in a body each costs another look at the rest.
const MOST_IGNORED: usize = 64;

/// The fields of a request, read and checked.
pub(crate) struct Fields<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<HttpState> for Fields<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &HttpState) -> Result<Self, Refused> {
        let mut pairs = pairs(request.uri().query().unwrap_or_default())?;
        let ignore = take_ignore(&mut pairs)?;
        if [Method::GET, Method::HEAD].contains(request.method()) {
            return Ok(Self(from_query(pairs, ignore)?));
        }
        // Where a body is expected, a parameter would be overlooked.
        if let Some((field, _)) = pairs.into_iter().next() {
            return Err(Refused(bad_field(field, "a POST has its fields in the body")));
        }
        let (parts, body) = request.into_parts();
        let body = state.read_body(&parts.headers, body).await?;
        Ok(Self(from_body(&body, ignore)?))
    }
}

/// The session that a call is made for: its key is in a header. Where the path names a session it is that one.
pub(crate) struct ForSession(pub(crate) SessionKey);

impl FromRequestParts<HttpState> for ForSession {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &HttpState) -> Result<Self, Refused> {
        let mut given = parts.headers.get_all(SESSION_HEADER).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => {
                let why = "it is missing; give the session_key that the answer to the open has";
                return Err(Refused(bad_field(SESSION_HEADER, why)));
            }
            (Some(_), Some(_)) => return Err(Refused(bad_field(SESSION_HEADER, "it is given twice"))),
            (Some(key), None) => key.to_str().unwrap_or_default().parse::<SessionKey>(),
        };
        let key = key.map_err(|error| bad_field(SESSION_HEADER, error))?;
        let named = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        for (field, id) in named.map_or_else(|_| Vec::new(), |Path(named)| named) {
            let id = Number::parse(&id).map_err(|why| bad_field(field.as_str(), why))?;
            if id.0 != key.id.get() {
                let why = format!("the header {SESSION_HEADER} has the key of session {}", key.id);
                return Err(Refused(bad_field(field, why)));
            }
        }
        Ok(Self(key))
    }
}

fn take_ignore(pairs: &mut Pairs) -> Result<bool, ApiError> {
    let mut said = None;
    for (_, value) in pairs.extract_if(.., |(name, _)| name == IGNORE_UNKNOWN) {
        if said.is_some() {
            return Err(bad_field(IGNORE_UNKNOWN, "it is given twice"));
        }
        let word = value.as_str();
        let wrong =
            || bad_field(IGNORE_UNKNOWN, format!("{} is not true or false", leasehold_api::quoted(word)));
        said = Some(value.parse().map_err(|_| wrong())?);
    }
    Ok(said.unwrap_or(false))
}

fn from_query<T: DeserializeOwned>(mut pairs: Pairs, ignore: bool) -> Result<T, ApiError> {
    let read = query::read(pairs.clone());
    if let (Err(Wrong::Unknown { known, .. }), true) = (&read, ignore) {
        let given = pairs.len();
        pairs.retain(|(name, _)| known.contains(name));
        if given - pairs.len() <= MOST_IGNORED {
            return Ok(query::read(pairs)?);
        }
    }
    Ok(read?)
}

fn from_body<T: DeserializeOwned>(body: &[u8], ignore: bool) -> Result<T, ApiError> {
    // No body at all says as much as an empty object.
    let body = if body.is_empty() { b"{}" } else { body };
    match parse(body) {
        Err(Wrong::Unknown { .. }) if ignore => without_unknown(body),
        read => read.map(|Object(fields)| fields).map_err(ApiError::from),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut reader)?;
    reader.end().map_err(|error| Wrong::Json(error.to_string()))?;
    Ok(read)
}

fn without_unknown<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let Single(mut whole) = parse(body)?;
    let mut ignored = 0;
    loop {
        match serde_path_to_error::deserialize::<_, Object<T>>(&whole).map_err(Wrong::from) {
            Ok(Object(fields)) => return Ok(fields),
            Err(Wrong::Unknown { place, name, .. }) if ignored < MOST_IGNORED => {
                ignored += 1;
                let pointer = place.replace(['.', '['], "/").replace(']', "");
                let pointer = if pointer.is_empty() { pointer } else { format!("/{pointer}") };
                let holder = whole.pointer_mut(&pointer).and_then(|value| value.as_object_mut());
                holder.expect("an unknown field is in an object").remove(&name);
            }
            Err(wrong) => return Err(wrong.into()),
        }
    }
}

impl HttpState {
    async fn read_body(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, ApiError> {
        let limit = self.shared.limits.max_body_bytes;
        let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let too_large = said.is_some_and(|said: usize| said > limit);
        if too_large && headers.contains_key(EXPECT) {
            return Err(ApiError::BodyTooLarge { limit });
        }
        let mut chunks = body.into_data_stream();
        let time = self.shared.limits.request_timeout;
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
        check_content_type(headers)?;
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
