//! What is answered instead of what was asked for: a JSON problem with a code, its kind, and words that name the next step.
//!
//! The shape is that of RFC 9457 (`application/problem+json`), with the members `code` and `kind`, and for a stale token `name`, `token`
//! and `highest`. Tokens are strings, because a JSON number loses the last digits of one.

#[cfg(feature = "proxy")]
use http::Method;
use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::stamps::{NAME_HEADER, TOKEN_HEADER};
use crate::error::{Error, Stale};

/// Says that the fence answers and not the service behind it, and with which code: statuses and bodies may be anybody's.
pub const ANSWER_HEADER: HeaderName = HeaderName::from_static("fencing-answer");

/// What such an answer is.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// A code that programs compare, the status that it comes with, and which of the three kinds of answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub name: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// `refused` and `failed`: nothing was done, now or later; `unknown`: nobody can say.
    pub kind: &'static str,
}

const fn code(name: &'static str, status: u16, kind: &'static str) -> Code {
    Code { name, status, kind }
}

/// All codes that [`refusal`], the layer and the proxy answer with.
pub const CODES: [Code; 18] = [
    code("stale", 412, "refused"),
    code("token-missing", 428, "failed"),
    code("name-missing", 428, "failed"),
    code("stamp-malformed", 400, "failed"),
    code("name-differs", 400, "failed"),
    code("lapsed", 503, "failed"),
    code("failed", 503, "failed"),
    code("unknown", 504, "unknown"),
    code("upstream-unreachable", 502, "failed"),
    code("fence-unusable", 503, "failed"),
    code("too-many-fence-names", 503, "failed"),
    code("too-many-in-flight", 503, "failed"),
    code("upgrade-refused", 501, "failed"),
    code("override-refused", 400, "failed"),
    code("target-refused", 400, "failed"),
    code("version-refused", 505, "failed"),
    code("no-such-path", 404, "refused"),
    code("wrong-method", 405, "refused"),
];

/// An answer that is not what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    code: Code,
    detail: String,
    more: Map<String, Value>,
    allow: Option<&'static str>,
}

/// The answer of a handler whose fenced write was not accepted: 412 when the token is stale, 503 when nothing was written for another
/// reason, 504 when nobody can say.
///
/// What the store said is left out, because it is none of the caller's business: log the error.
pub fn refusal<B: From<String>>(error: &Error) -> Response<B> {
    Problem::of(error).response()
}

impl Problem {
    fn new(name: &str, detail: impl Into<String>) -> Self {
        let code = CODES.iter().find(|code| code.name == name).expect("every code is in the list");
        Self { code: *code, detail: detail.into(), more: Map::new(), allow: None }
    }

    /// The answer for an error of a fenced write.
    pub fn of(error: &Error) -> Self {
        match error {
            Error::Stale(stale) => Self::stale(stale),
            Error::NoAuthority(_) => Self::new(
                "lapsed",
                "this service may not act any more, and nothing was written; ask again, another one may answer",
            ),
            Error::Failed { .. } => Self::new("failed", "nothing was written; it may be tried again"),
            Error::Unknown { .. } => Self::unknown("no answer came from the store"),
        }
    }

    pub(crate) fn stale(stale: &Stale) -> Self {
        let next = "stop acting: another holds the lease now";
        let mut problem = Self::new("stale", format!("{stale}; {next}"));
        problem.more.insert("name".to_owned(), json!(stale.name));
        problem.more.insert("token".to_owned(), json!(stale.token.to_string()));
        problem.more.insert("highest".to_owned(), json!(stale.highest.map(|highest| highest.to_string())));
        problem
    }

    pub(crate) fn unknown(why: &str) -> Self {
        let next = "look before you send it again";
        Self::new("unknown", format!("nobody can say whether it was carried out: {why}; {next}"))
    }

    pub(crate) fn token_missing() -> Self {
        let detail = format!("{TOKEN_HEADER} is missing, and writes need one; send the token of your lease");
        Self::new("token-missing", detail)
    }

    pub(crate) fn name_missing() -> Self {
        let detail = format!(
            "{NAME_HEADER} is missing, and tokens are compared under a name; send that of your lease"
        );
        Self::new("name-missing", detail)
    }

    pub(crate) fn malformed(detail: String) -> Self {
        Self::new("stamp-malformed", detail)
    }

    pub(crate) fn name_differs(given: &str, name: &str) -> Self {
        let next = "send the token of a lease on that";
        let detail = format!("{NAME_HEADER} is {given:?}, and this is fenced under {name:?}; {next}");
        Self::new("name-differs", detail)
    }

    /// The status to answer with.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status).expect("every code has a status that exists")
    }

    /// The code that programs compare.
    pub const fn code(&self) -> &'static str {
        self.code.name
    }

    /// What is wrong and what to do, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let mut body = Map::new();
        body.insert("code".to_owned(), json!(self.code.name));
        body.insert("kind".to_owned(), json!(self.code.kind));
        body.insert("status".to_owned(), json!(self.code.status));
        body.insert("title".to_owned(), json!(self.status().canonical_reason()));
        body.insert("detail".to_owned(), json!(self.detail));
        body.extend(self.more.clone());
        Value::Object(body).to_string()
    }

    /// The whole answer.
    pub fn response<B: From<String>>(&self) -> Response<B> {
        let mut response = Response::new(B::from(self.to_json()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(ANSWER_HEADER, HeaderValue::from_static(self.code.name));
        if self.code.status == 503 {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(allow) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// What only a proxy answers.
#[cfg(feature = "proxy")]
impl Problem {
    pub(crate) fn upstream_unreachable(why: &str) -> Self {
        Self::new("upstream-unreachable", format!("nothing was sent: {why}; it may be tried again"))
    }

    pub(crate) fn fence_unusable(why: &str) -> Self {
        let detail = format!("nothing was sent: the fence cannot be kept: {why}; mend its directory");
        Self::new("fence-unusable", detail)
    }

    pub(crate) fn too_many_names(limit: usize) -> Self {
        let next = "use fewer names, or another proxy for some of them";
        let detail = format!("the limit of {limit} fence names is reached, and none is forgotten; {next}");
        Self::new("too-many-fence-names", detail)
    }

    pub(crate) fn too_many_in_flight(limit: usize) -> Self {
        let detail = format!("the limit of {limit} requests at once is reached; ask again later");
        Self::new("too-many-in-flight", detail)
    }

    pub(crate) fn upgrade_refused(what: &str) -> Self {
        let why = "what comes afterwards could not be compared with a token";
        Self::new("upgrade-refused", format!("{what} is not forwarded: {why}; connect to the service itself"))
    }

    pub(crate) fn override_refused(header: &HeaderName, method: &Method) -> Self {
        let why = format!("{header} asks for another method than {method}, which needs no token here");
        Self::new("override-refused", format!("{why}; send that method itself, with the token of your lease"))
    }

    pub(crate) fn target_refused(target: &str) -> Self {
        let detail = format!("the target {target:?} is no path; send one that begins with a slash");
        Self::new("target-refused", detail)
    }

    pub(crate) fn version_refused() -> Self {
        Self::new("version-refused", "this proxy speaks HTTP/1.1 and 1.0 alone; send it one of them")
    }

    pub(crate) fn no_such_path(path: &str) -> Self {
        let detail = format!("nothing is at {path:?}; there are PUT seal, GET fence?name= and GET metrics");
        Self::new("no-such-path", detail)
    }

    pub(crate) fn wrong_method(allow: &'static str) -> Self {
        let mut problem = Self::new("wrong-method", format!("this path takes {allow} alone"));
        problem.allow = Some(allow);
        problem
    }

    pub(crate) fn query_malformed() -> Self {
        Self::malformed(
            "the query has no readable name; ask for /.leasehold/fence?name=NAME, percent-encoded".to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NoAuthority;

    fn answered(error: &Error) -> (u16, Value) {
        let response: Response<String> = refusal(error);
        assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
        (response.status().as_u16(), serde_json::from_str(response.body()).unwrap())
    }

    #[test]
    fn a_stale_token_is_412_with_tokens_as_text() {
        let stale = Stale { name: "a".to_owned(), token: (1 << 53) + 1, highest: Some((1 << 53) + 2) };
        let (status, body) = answered(&stale.into());
        assert_eq!(status, 412);
        let shown = ["code", "kind", "name", "token", "highest"].map(|key| body[key].as_str().unwrap());
        assert_eq!(shown, ["stale", "refused", "a", "9007199254740993", "9007199254740994"]);
    }

    #[test]
    fn failed_and_unknown_are_told_apart_and_keep_what_the_store_said_to_themselves() {
        let secret = "password of postgres://me@db is wrong";
        let (status, body) = answered(&Error::failed("db", secret));
        assert_eq!(
            (status, body["code"].as_str(), body["kind"].as_str()),
            (503, Some("failed"), Some("failed"))
        );
        assert!(!body.to_string().contains("password"));
        let (status, body) = answered(&Error::unknown("db", secret));
        assert_eq!(
            (status, body["code"].as_str(), body["kind"].as_str()),
            (504, Some("unknown"), Some("unknown"))
        );
        assert!(!body.to_string().contains("password"));
        let lapsed = NoAuthority { name: "a".to_owned(), why: secret.to_owned() };
        assert_eq!(answered(&lapsed.into()).1["code"], "lapsed");
    }

    #[test]
    fn every_code_has_a_status_and_a_kind_and_is_listed_once() {
        for code in CODES {
            assert!(StatusCode::from_u16(code.status).is_ok());
            assert!(["refused", "failed", "unknown"].contains(&code.kind), "{code:?}");
            assert_eq!(CODES.iter().filter(|other| other.name == code.name).count(), 1, "{code:?}");
        }
    }
}
