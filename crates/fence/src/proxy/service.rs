//! Connections, and what becomes of each request.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::UPGRADE;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::gate::{Barred, Gate, Passage};
use super::relay::{Body, Upstream, problem_response};
use super::{
    MAX_CONNECTIONS, MAX_FENCE_NAMES, MAX_HEAD_BYTES, MAX_HEADERS, MAX_IN_FLIGHT, OpenError, Settings,
    answers, headers,
};
use crate::counts::Counts;
use crate::http::{Problem, is_write, read};
use crate::stamp::Stamp;

/// A caller has so long to send the head of a request; a connection that nobody uses is closed after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// After an error of the listener, such as too many open files, it is tried again so much later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How HTTP/2 begins where nobody has agreed on it before.
const HTTP2_PREFACE: &[u8] = b"PRI ";

/// Everything that requests share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) gate: Arc<Gate>,
    upstream: Arc<Upstream>,
    slots: Arc<Semaphore>,
    max_in_flight: usize,
    pub(super) name: Option<String>,
    all: bool,
    drain: Duration,
    pub(super) counts: Counts,
    registry: Registry,
}

impl Service {
    pub(super) fn open(settings: Settings) -> Result<Self, OpenError> {
        let Settings { upstream, directory, name, all, timeout, settle, max_in_flight, at } = settings;
        if let Some(name) = &name {
            // Any token: it is the name that is looked at.
            Stamp::new(name.as_str(), 1)?;
        }
        let (counts, mut registry) = (Counts::default(), Registry::default());
        counts.register(&mut registry);
        let upstream = Arc::new(Upstream::new(&upstream, timeout, settle, counts.clone())?);
        let gate = Arc::new(Gate::open(&directory, settle, at)?);
        let max_in_flight = max_in_flight.clamp(1, MAX_IN_FLIGHT);
        let slots = Arc::new(Semaphore::new(max_in_flight));
        // Whoever waits has the time of those before it and its own.
        let drain = timeout.saturating_mul(2).saturating_add(settle);
        Ok(Self { gate, upstream, slots, max_in_flight, name, all, drain, counts, registry })
    }

    pub(super) fn place(&self) -> &str {
        self.upstream.place()
    }

    pub(super) fn metrics(&self) -> String {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &self.registry).expect("text takes everything");
        page
    }

    /// Waits for its turn.
    pub(super) async fn enter(&self, stamp: &Stamp) -> Result<Passage, Problem> {
        self.gate.enter(stamp).await.map_err(|barred| match barred {
            Barred::Stale(stale) => Problem::stale(&stale),
            Barred::Unusable(why) => Problem::fence_unusable(&why),
            Barred::TooManyNames => Problem::too_many_names(MAX_FENCE_NAMES),
        })
    }

    async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
        self.answered(peer, request).await.unwrap_or_else(|problem| problem_response(&problem))
    }

    async fn answered(
        &self,
        peer: SocketAddr,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Problem> {
        if request.method() == Method::CONNECT {
            return Err(Problem::upgrade_refused("CONNECT"));
        }
        if let Some(to) = request.headers().get(UPGRADE) {
            let to = String::from_utf8_lossy(to.as_bytes());
            return Err(Problem::upgrade_refused(&format!("an upgrade to {to:?}")));
        }
        if let Some(path) = answers::own_path(request.uri().path()) {
            return Ok(answers::answer(self, path, &request).await);
        }
        let stamp = match self.all || is_write(request.method()) {
            true => Some(read(request.headers(), self.name.as_deref())?.ok_or_else(Problem::token_missing)?),
            // What passes without a token must not be a write to the service behind.
            false => match headers::override_in(request.headers()) {
                Some(header) => return Err(Problem::override_refused(header, request.method())),
                None => None,
            },
        };
        self.upstream.aim(&mut request)?;
        headers::inwards(request.headers_mut(), peer.ip());
        let Some(stamp) = stamp else {
            let _slot = self.slot()?;
            return Ok(self.upstream.pass(request).await);
        };
        let entered = match self.slot() {
            Ok(slot) => self.enter(&stamp).await.map(|passage| (passage, slot)),
            Err(problem) => Err(problem),
        };
        match entered {
            Ok((passage, slot)) => Ok(Arc::clone(&self.upstream).carry(request, passage, slot).await),
            Err(problem) => {
                let error = answers::error_of(self, &problem, &stamp);
                // Counted by its end; the problem tells it.
                let _ = self.counts.write::<()>(self.place(), Err(error));
                Err(problem)
            }
        }
    }

    fn slot(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        slot.map_err(|_| Problem::too_many_in_flight(self.max_in_flight))
    }
}

/// Takes connections until `stop`, then waits for what is under way.
pub(super) async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut stop = pin!(stop);
    let (stopping, stopped) = watch::channel(false);
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let room = Arc::clone(&connections).acquire_owned();
        let accepted = async {
            let room = room.await.expect("it is never closed");
            (room, listener.accept().await)
        };
        tokio::select! {
            () = stop.as_mut() => break,
            (room, accepted) = accepted => match accepted {
                Ok((stream, peer)) => {
                    let (service, stopped) = (Arc::clone(&service), stopped.clone());
                    tokio::spawn(async move {
                        connection(service, stream, peer, stopped).await;
                        drop(room);
                    });
                }
                // One connection that is gone before it is taken is no reason to stop, and neither is a full table of files.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let quiet = async {
        all(&connections, MAX_CONNECTIONS).await;
        // Those whose callers went away, too.
        all(&service.slots, service.max_in_flight).await;
    };
    // What is not over by then is cut, and was told so or is told nothing; a crash does the same.
    let _ = tokio::time::timeout(service.drain, quiet).await;
    Ok(())
}

/// Waits until everything of something was given back.
async fn all(semaphore: &Semaphore, of: usize) {
    let of = u32::try_from(of).expect("limits are small");
    drop(semaphore.acquire_many(of).await);
}

async fn connection(
    service: Arc<Service>,
    stream: TcpStream,
    peer: SocketAddr,
    mut stopped: watch::Receiver<bool>,
) {
    // Slower without, and no more.
    let _ = stream.set_nodelay(true);
    let mut first = [0; HTTP2_PREFACE.len()];
    tokio::select! {
        _ = stopped.wait_for(|stopped| *stopped) => return,
        peeked = tokio::time::timeout(HEAD_TIMEOUT, stream.peek(&mut first)) => match peeked {
            Ok(Ok(1..)) => {}
            // Nothing came, or it is gone.
            _ => return,
        },
    }
    if first == HTTP2_PREFACE {
        return refuse_version(stream).await;
    }
    let handler = service_fn(|request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(peer, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), handler));
    tokio::select! {
        // A connection that ends badly is its caller's business.
        _ = serving.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// Says in words that HTTP/2 is not spoken here; who speaks it alone shows them as an error.
async fn refuse_version(mut stream: TcpStream) {
    let problem = Problem::version_refused();
    let (status, body) = (problem.status(), problem.to_json());
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nfencing-answer: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        problem.code(),
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
