//! The holder's side of a proxy: a receiver that is sealed over HTTP, and requests that carry the stamp.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue};
use http::uri::{Authority as HostAndPort, PathAndQuery, Scheme};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;

use super::OWN_PATH;
use super::problem::{ANSWER_HEADER, CODES};
use super::stamps::stamped;
use crate::counts::Counts;
use crate::error::{Error, Stale, Trouble, causes};
use crate::receiver::{Answer, Mark, Receiver, Refused, Seen};
use crate::stamp::{Authority, Stamp};

/// So long an answer is waited for unless another time is chosen: longer than a proxy waits for its upstream, so that its words are heard.
pub const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// The longest problem, or look, that is read from a proxy.
pub const MAX_PROBLEM_BYTES: usize = 256 * 1024;
/// A proxy that takes no connection within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that nobody uses are closed before a server would close them: a request on its way when that happens would be unknown.
const POOL_IDLE: Duration = Duration::from_secs(4);

type Sending = Client<HttpConnector, Full<Bytes>>;

/// An address that is none of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} {why}; write it like {like}")]
pub struct BadAddress {
    /// What was given, without a password.
    pub url: String,
    /// What is wrong with it.
    pub why: &'static str,
    /// One that would be right.
    pub like: &'static str,
}

/// Where a proxy listens unless it is told otherwise.
const A_PROXY: &str = "http://127.0.0.1:7421";
/// Where many services do. Not where the proxy itself does.
#[cfg(feature = "proxy")]
pub(crate) const A_SERVICE: &str = "http://127.0.0.1:8080";

/// Scheme, host and port of a URL, and its path without the slash at its end.
pub(crate) fn base(url: &str, like: &'static str) -> Result<(HostAndPort, String), BadAddress> {
    let shown = url.split_once('@').map_or_else(|| url.to_owned(), |(_, host)| format!("...@{host}"));
    let bad = |why| BadAddress { url: shown.clone(), why, like };
    let uri: Uri = url.parse().map_err(|_| bad("is no URL"))?;
    if uri.scheme() != Some(&Scheme::HTTP) {
        return Err(bad("does not begin with http://, and there is no TLS here"));
    }
    let host = uri.authority().ok_or_else(|| bad("names no host"))?;
    if host.as_str().contains('@') {
        return Err(bad("has a user name or password, and they would be sent to nobody"));
    }
    if uri.query().is_some() {
        return Err(bad("has a query"));
    }
    Ok((host.clone(), uri.path().trim_end_matches('/').to_owned()))
}

/// A [proxy](crate::proxy) as a receiver: sealed at the grant, looked at, and written through.
///
/// **Which step is atomic**: the proxy raises its token durably before it forwards the first request of a holder, and lets no greater one
/// pass while requests with smaller ones are under way. **What it needs**: that every way to the service leads through that one
/// proxy. **What it does not cover**: a request that the proxy gave up on may still be carried out by the service; see the
/// [proxy](crate::proxy).
///
/// ```no_run
/// use leasehold_fence::Receiver;
/// use leasehold_fence::http::Proxy;
///
/// # async fn example(guard: leasehold_fence::Stamp) -> Result<(), Box<dyn std::error::Error>> {
/// let store = Proxy::new("http://127.0.0.1:7421")?;
/// store.seal(&guard).await?; // once, at the grant; the library does it
/// let answer = store.send(&guard, http::Request::put("/report").body("...")?).await?;
/// assert!(answer.status().is_success()); // what the service itself answered
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Proxy {
    place: String,
    host: HostAndPort,
    path: String,
    client: Sending,
    timeout: Duration,
    counts: Counts,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Proxy {
    /// The proxy at a URL such as `http://127.0.0.1:7421`. Nothing is sent.
    ///
    /// # Errors
    /// When it is no such URL.
    pub fn new(url: &str) -> Result<Self, BadAddress> {
        let (host, path) = base(url, A_PROXY)?;
        let place = format!("http://{host}{path}");
        let counts = Counts::default();
        Ok(Self { place, host, path, client: client(), timeout: DEFAULT_ANSWER_TIMEOUT, counts })
    }

    /// Counts seals and writes here.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Waits so long for an answer. What takes longer is unknown.
    #[must_use]
    pub const fn answered_within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends a request to the service behind the proxy, with the stamp of whoever may act now. Of its URI only path and query count.
    ///
    /// What comes back is the service's own answer, whatever its status: read that too.
    ///
    /// # Errors
    /// [`Error::NoAuthority`] when nothing may be sent, [`Error::Stale`] when a greater token was seen, [`Error::Failed`] when nothing was
    /// forwarded, [`Error::Unknown`] when nobody can say.
    pub async fn send(
        &self,
        authority: &impl Authority,
        request: Request<impl Into<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        self.counts.writing(&self.place, self.write(authority, request.map(Into::into))).await
    }

    async fn write(
        &self,
        authority: &impl Authority,
        mut request: Request<Bytes>,
    ) -> Result<Response<Incoming>, Error> {
        let stamp = stamped(request.headers_mut(), authority)?;
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        *request.uri_mut() = self.uri(&target)?;
        // Some servers take no write without one, and an empty body has none of its own.
        let length = HeaderValue::from(request.body().len());
        request.headers_mut().insert(CONTENT_LENGTH, length);
        let response = self.ask(request).await?;
        if response.headers().contains_key(ANSWER_HEADER) {
            return Err(self.said(&stamp, response).await);
        }
        Ok(response)
    }

    async fn sealed(&self, stamp: &Stamp) -> Result<(), Error> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = self.uri(&format!("{OWN_PATH}/seal"))?;
        stamped(request.headers_mut(), stamp)?;
        let response = self.ask(request).await?;
        if response.headers().contains_key(ANSWER_HEADER) {
            return Err(self.said(stamp, response).await);
        }
        self.is_a_proxy(&response)
    }

    async fn looked(&self, name: &str) -> Result<Seen, Error> {
        let query: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.uri(&format!("{OWN_PATH}/fence?name={query}"))?;
        // A look writes nothing, however it ends.
        let nothing_written = |error| match error {
            Error::Unknown { source, .. } => self.failed(source),
            other => other,
        };
        let response = self.ask(request).await.map_err(nothing_written)?;
        self.is_a_proxy(&response)?;
        let body = text(response).await.map_err(|why| self.failed(why))?;
        seen(&body)
            .ok_or_else(|| self.failed("its answer is not understood; use the same release on both sides"))
    }

    fn uri(&self, target: &str) -> Result<Uri, Error> {
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.host.clone());
        uri.path_and_query(format!("{}{target}", self.path)).build().map_err(|why| self.failed(why))
    }

    /// One request and the head of its answer. An error before the connection stood is one that wrote nothing.
    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Incoming>, Error> {
        let asked = self.client.request(request.map(Full::new));
        match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => Err(Error::away(&self.place, in_words(&error))),
            Ok(Err(error)) => Err(Error::unknown(&self.place, in_words(&error))),
            Err(_) => {
                let waited = self.timeout.as_millis();
                Err(Error::unknown(&self.place, format!("no answer came within {waited} ms")))
            }
        }
    }

    /// What a refusal says.
    async fn said(&self, stamp: &Stamp, response: Response<Incoming>) -> Error {
        let status = response.status();
        let code =
            response.headers().get(ANSWER_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let code = code.and_then(|code| CODES.into_iter().find(|known| known.name == code));
        // Whatever cannot be read of it is left out; the code alone decides.
        let body: Value = match text(response).await {
            Ok(body) => serde_json::from_str(&body).unwrap_or_default(),
            Err(_) => Value::Null,
        };
        let words = body["detail"].as_str().map_or_else(|| format!("it answers {status}"), str::to_owned);
        match code {
            Some(code) if code.name == "stale" => {
                let highest = body["highest"].as_str().and_then(|token| token.parse().ok());
                Stale::of(stamp, highest).into()
            }
            Some(code) if code.name == "name-differs" => Error::lasting(&self.place, words),
            Some(code) if code.kind != "unknown" => self.failed(words),
            // One of a later release may be of any kind.
            _ => Error::unknown(&self.place, words),
        }
    }

    /// A service that was not meant answers too.
    fn is_a_proxy(&self, response: &Response<Incoming>) -> Result<(), Error> {
        if response.status().is_success()
            && response.headers().get(ANSWER_MARK.0).is_some_and(|mark| mark == ANSWER_MARK.1)
        {
            return Ok(());
        }
        Err(self.failed(format!("it answers {} and is no fence proxy; check the address", response.status())))
    }

    fn failed(&self, why: impl Into<Trouble>) -> Error {
        Error::failed(&self.place, why)
    }
}

/// On answers of the proxy itself that are good.
pub(crate) const ANSWER_MARK: (&str, &str) = ("server", "leasehold-fence-proxy");

impl Receiver for Proxy {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(self.counts.sealing(&self.place, self.sealed(stamp)))
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(self.looked(name))
    }
}

/// A client with connections that are used again.
pub(crate) fn client<B>() -> Client<HttpConnector, B>
where
    B: hyper::body::Body + Send,
    B::Data: Send,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
    builder.build(connector)
}

async fn text(response: Response<Incoming>) -> Result<String, Trouble> {
    let body = Limited::new(response.into_body(), MAX_PROBLEM_BYTES).collect().await?;
    Ok(String::from_utf8(body.to_bytes().to_vec())?)
}

/// An error with its causes: the client's own words alone say little.
pub(crate) fn in_words(error: &(dyn StdError + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What a proxy shows of a fence name.
fn seen(body: &str) -> Option<Seen> {
    let body: Value = serde_json::from_str(body).ok()?;
    let token = |value: &Value| value.as_str()?.parse().ok();
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let highest = match &body["highest"] {
        Value::Null => None,
        mark => Some(Mark { token: token(&mark["token"])?, holder: word(&mark["holder"]) }),
    };
    let refusals = body["refusals"].as_array()?.iter().map(|one| {
        Some(Refused {
            token: token(&one["token"])?,
            highest: token(&one["highest"])?,
            holder: word(&one["holder"]),
            at: word(&one["at"]),
        })
    });
    Some(Seen { highest, refusals: Some(refusals.collect::<Option<_>>()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_and_never_show_a_password() {
        assert_eq!(Proxy::new("http://[::1]:7421/base/").unwrap().place(), "http://[::1]:7421/base");
        for (url, part) in [
            ("https://a", "no TLS"),
            ("a:7421", "http://"),
            ("127.0.0.1:7421", "http://"),
            ("http://a b", "is no URL"),
            ("http://a?b", "query"),
            ("", "is no URL"),
        ] {
            let said = Proxy::new(url).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
        let said = Proxy::new("http://me:secret@a").unwrap_err().to_string();
        assert!(said.contains("password") && !said.contains("secret"), "{said}");
    }

    #[test]
    fn a_look_is_read_with_whole_tokens() {
        let body = r#"{"name":"a","highest":{"token":"9007199254740993","holder":null},
            "refusals":[{"token":"1","highest":"9007199254740993","holder":"x","at":null}]}"#;
        let seen = seen(body).unwrap();
        assert_eq!(seen.highest, Some(Mark { token: (1 << 53) + 1, holder: None }));
        assert_eq!(seen.refusals.unwrap()[0].holder.as_deref(), Some("x"));
    }

    #[tokio::test]
    async fn nobody_there_is_failed_and_not_unknown() {
        let proxy = Proxy::new("http://127.0.0.1:1").unwrap();
        let stamp = Stamp::new("a", 1).unwrap();
        assert!(matches!(proxy.seal(&stamp).await, Err(Error::Failed { .. })));
        assert!(matches!(proxy.look("a").await, Err(Error::Failed { .. })));
        assert_eq!(proxy.counts.seals("http://127.0.0.1:1", crate::Outcome::Failed), 1);
    }
}
