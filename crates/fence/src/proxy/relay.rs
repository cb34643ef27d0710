//! One request to the upstream and its answer back.
//!
//! A fenced request has a task of its own, which stays with it until the upstream has answered whole or the time is over, whether the
//! caller is still there or not: a greater token must not pass while the upstream may be at work. Only then its passage ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::gate::Passage;
use super::headers::leave_behind;
use crate::counts::Counts;
use crate::error::{Error, Trouble};
use crate::http::{A_SERVICE, Problem, base, client, in_words};

/// What is answered with.
pub(super) type Body = UnsyncBoxBody<Bytes, Trouble>;

/// Pieces of an answer that wait for a caller that reads slowly.
const WAITING_FRAMES: usize = 8;

/// The service behind the proxy.
#[derive(Debug)]
pub(super) struct Upstream {
    place: String,
    host: Authority,
    path: String,
    client: Client<HttpConnector, Incoming>,
    timeout: Duration,
    settle: Duration,
    counts: Counts,
}

impl Upstream {
    pub(super) fn new(
        url: &str,
        timeout: Duration,
        settle: Duration,
        counts: Counts,
    ) -> Result<Self, crate::http::BadAddress> {
        let (host, path) = base(url, A_SERVICE)?;
        let place = format!("http://{host}{path}");
        Ok(Self { place, host, path, client: client(), timeout, settle, counts })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Points a request at the upstream.
    pub(super) fn aim(&self, request: &mut Request<Incoming>) -> Result<(), Problem> {
        let refused = |target: &Uri| Problem::target_refused(&target.to_string());
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        if !target.starts_with('/') {
            return Err(refused(request.uri()));
        }
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.host.clone());
        let uri = uri.path_and_query(format!("{}{target}", self.path)).build();
        *request.uri_mut() = uri.map_err(|_| refused(request.uri()))?;
        *request.version_mut() = Version::HTTP_11;
        Ok(())
    }

    /// A request that is not fenced: its answer is passed on as it comes.
    pub(super) async fn pass(&self, request: Request<Incoming>) -> Response<Body> {
        match tokio::time::timeout(self.timeout, self.ask(request)).await {
            Ok(Ok(response)) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
            Ok(Err((problem, _))) => problem_response(&problem),
            Err(_) => problem_response(&Problem::unknown(&self.too_late())),
        }
    }

    /// A fenced request.
    pub(super) async fn carry(
        self: Arc<Self>,
        request: Request<Incoming>,
        passage: Passage,
        slot: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let (head, answered) = oneshot::channel();
        tokio::spawn(async move {
            let end = self.exchange(request, head).await;
            let was_cut = matches!(end, Err(Error::Unknown { .. }));
            // Counted by its end, and the end is nobody's but the counters'.
            let _ = self.counts.write(&self.place, end);
            if was_cut {
                tokio::time::sleep(self.settle).await;
            }
            drop(passage);
            drop(slot);
        });
        match answered.await {
            Ok(response) => response,
            Err(_) => problem_response(&Problem::unknown("the proxy is ending")),
        }
    }

    /// Sends, and stays until the answer is whole. The caller may go away meanwhile.
    async fn exchange(
        &self,
        request: Request<Incoming>,
        head: oneshot::Sender<Response<Body>>,
    ) -> Result<(), Error> {
        let mut head = Some(head);
        let work = async {
            let response = match self.ask(request).await {
                Ok(response) => response,
                Err((problem, error)) => {
                    tell(&mut head, problem_response(&problem));
                    return Err(error);
                }
            };
            if response.body().is_end_stream() {
                tell(&mut head, response.map(|body| body.map_err(Into::into).boxed_unsync()));
                return Ok(());
            }
            let (sending, frames) = mpsc::channel(WAITING_FRAMES);
            let is_whole = Arc::new(AtomicBool::new(false));
            let hint = response.body().size_hint();
            let (parts, body) = response.into_parts();
            let relayed = Relayed { frames, is_whole: Arc::clone(&is_whole), hint };
            tell(&mut head, Response::from_parts(parts, relayed.boxed_unsync()));
            let pumped = pump(body, &sending).await.map_err(|error| Error::unknown(&self.place, error));
            is_whole.store(pumped.is_ok(), Ordering::Release);
            pumped
        };
        match tokio::time::timeout(self.timeout, work).await {
            Ok(end) => end,
            Err(_) => {
                let problem = Problem::unknown(&self.too_late());
                tell(&mut head, problem_response(&problem));
                Err(Error::unknown(&self.place, self.too_late()))
            }
        }
    }

    /// Sends a request and gives the head of its answer; or what to say, and what is known.
    async fn ask(&self, mut request: Request<Incoming>) -> Result<Response<Incoming>, (Problem, Error)> {
        if request.body().size_hint().exact().is_none() {
            // Said here, because the client takes a read whose length nobody tells for one without a body.
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        match self.client.request(request).await {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                let why = "the upstream has switched to another protocol";
                Err((Problem::unknown(why), Error::unknown(&self.place, why)))
            }
            Ok(mut response) => {
                leave_behind(response.headers_mut());
                Ok(response)
            }
            Err(error) if error.is_connect() => {
                let why = format!("{} takes no connection ({})", self.place, in_words(&error));
                Err((Problem::upstream_unreachable(&why), Error::failed(&self.place, error)))
            }
            Err(error) => {
                let why = format!("the connection to {} ended ({})", self.place, in_words(&error));
                Err((Problem::unknown(&why), Error::unknown(&self.place, error)))
            }
        }
    }

    fn too_late(&self) -> String {
        format!("{} gave no whole answer within {} ms", self.place, self.timeout.as_millis())
    }
}

fn tell(head: &mut Option<oneshot::Sender<Response<Body>>>, response: Response<Body>) {
    if let Some(head) = head.take() {
        // A caller that is gone hears nothing.
        let _ = head.send(response);
    }
}

/// Hands on what comes until the end; to nobody, if the caller has gone.
async fn pump(mut body: Incoming, frames: &mpsc::Sender<Frame<Bytes>>) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        let _ = frames.send(frame?).await;
    }
    Ok(())
}

/// An answer of the proxy itself.
pub(super) fn problem_response(problem: &Problem) -> Response<Body> {
    problem.response::<Full<Bytes>>().map(whole)
}

pub(super) fn whole(body: Full<Bytes>) -> Body {
    body.map_err(|never| match never {}).boxed_unsync()
}

/// The answer of a fenced request, as its task hands it on.
struct Relayed {
    frames: mpsc::Receiver<Frame<Bytes>>,
    is_whole: Arc<AtomicBool>,
    hint: SizeHint,
}

impl HttpBody for Relayed {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        self.frames.poll_recv(context).map(|frame| match frame {
            Some(frame) => Some(Ok(frame)),
            None if self.is_whole.load(Ordering::Acquire) => None,
            // The caller's connection is cut, so that half of an answer does not look whole.
            None => Some(Err("the upstream's answer is not whole".into())),
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
