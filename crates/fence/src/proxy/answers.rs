//! What the proxy answers by itself, below `/.leasehold`: seals, looks, metrics.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};

use super::relay::{Body, problem_response, whole};
use super::service::Service;
use crate::error::{Error, Stale};
use crate::http::{ANSWER_MARK, OWN_PATH, Problem, decoded, read};
use crate::receiver::Seen;

const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The path below our own, if it is one of those.
pub(super) fn own_path(path: &str) -> Option<&str> {
    path.strip_prefix(OWN_PATH).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request to one of our own paths.
pub(super) async fn answer<B>(service: &Service, path: &str, request: &Request<B>) -> Response<Body> {
    let answered = match (path, request.method()) {
        ("/seal", &Method::PUT) => seal(service, request).await,
        ("/seal", _) => Err(Problem::wrong_method("PUT")),
        ("/fence", &Method::GET) => look(service, request),
        ("/fence", _) => Err(Problem::wrong_method("GET")),
        ("/metrics", &Method::GET) => Ok((METRICS_TYPE, service.metrics())),
        ("/metrics", _) => Err(Problem::wrong_method("GET")),
        _ => Err(Problem::no_such_path(request.uri().path())),
    };
    match answered {
        Ok((kind, text)) => {
            let mut response = Response::new(whole(Full::new(Bytes::from(text))));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(HeaderName::from_static(ANSWER_MARK.0), HeaderValue::from_static(ANSWER_MARK.1));
            response
        }
        Err(problem) => problem_response(&problem),
    }
}

/// Raises without forwarding anything, and answers when nothing with a smaller token is under way any more.
async fn seal<B>(service: &Service, request: &Request<B>) -> Result<(&'static str, String), Problem> {
    let stamp = read(request.headers(), service.name.as_deref())?.ok_or_else(Problem::token_missing)?;
    let passage = service.enter(&stamp).await;
    // Its end is told by the answer; the counters have it too.
    let counted = passage.as_ref().map(|_| ()).map_err(|problem| error_of(service, problem, &stamp));
    let _ = service.counts.seal(service.place(), counted);
    drop(passage?);
    let sealed = json!({ "name": stamp.name(), "token": stamp.token().to_string() });
    Ok(("application/json", sealed.to_string()))
}

/// The error that a problem stands for, for the counters.
pub(super) fn error_of(service: &Service, problem: &Problem, stamp: &crate::Stamp) -> Error {
    match problem.code() {
        "stale" => Stale::of(stamp, None).into(),
        _ => Error::failed(service.place(), problem.detail()),
    }
}

fn look<B>(service: &Service, request: &Request<B>) -> Result<(&'static str, String), Problem> {
    let query = request.uri().query().unwrap_or_default();
    let name = query.split('&').find_map(|pair| pair.strip_prefix("name="));
    // A comma needs no percent sign in a query, and a plus is a space there for most who write one.
    let name = name.map(|name| name.replace(',', "%2C").replace('+', "%20"));
    let name = name.and_then(|name| String::from_utf8(decoded(name.as_bytes())?).ok());
    let name = name.filter(|name| !name.is_empty()).ok_or_else(Problem::query_malformed)?;
    Ok(("application/json", shown(&name, &service.gate.look(&name)).to_string()))
}

fn shown(name: &str, seen: &Seen) -> Value {
    let refusals = seen.refusals.iter().flatten().map(|one| {
        let (token, highest) = (one.token.to_string(), one.highest.to_string());
        json!({ "token": token, "highest": highest, "holder": one.holder, "at": one.at })
    });
    let refusals: Vec<Value> = refusals.collect();
    let highest =
        seen.highest.as_ref().map(|mark| json!({ "token": mark.token.to_string(), "holder": mark.holder }));
    json!({ "name": name, "highest": highest, "refusals": refusals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_paths_are_ours() {
        assert_eq!(own_path("/.leasehold/seal"), Some("/seal"));
        assert_eq!(own_path("/.leasehold"), Some(""));
        assert_eq!(own_path("/.leaseholder/seal"), None);
        assert_eq!(own_path("/a/.leasehold/seal"), None);
    }
}
