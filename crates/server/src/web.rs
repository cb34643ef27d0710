//! HTTP and gRPC on one port: the limits of a connection, and who answers what.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use leasehold_api::ApiError;
use leasehold_core::protocol::Failure;
use leasehold_host::{Room, Served};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::paced::{keeping, paced};
use crate::running::{Counts, Stopping};
use crate::tcp::{Counted, WebStream};
use crate::timed::{Line, Timed};
use crate::{grpc, http};

/// The smallest buffer for a head that the HTTP library takes.
const LEAST_BUFFER: usize = 8_192;
/// A connection without requests is closed after this time: longer than the pools of most clients keep one.
const IDLE_TIME: Duration = Duration::from_secs(75);
/// An idle HTTP/2 connection is asked this often whether anybody is there, and closed without an answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIME: Duration = Duration::from_secs(20);
/// Calls at once on one HTTP/2 connection, watches not counted.
const MAX_CALLS: usize = 256;
/// What is kept for one HTTP/2 connection that does not read.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// Everything that answers over HTTP.
pub(crate) struct Web {
    http: axum::Router,
    grpc: axum::Router,
    builder: auto::Builder<TokioExecutor>,
    write_timeout: Duration,
    request_timeout: Duration,
    max_watches: usize,
    room: Room,
    counts: Arc<Counts>,
}

impl Web {
    pub(crate) fn new(config: &Config, served: &Served, metrics: Arc<Metrics>, counts: Arc<Counts>) -> Self {
        let streams = MAX_CALLS + config.limits.max_watches_per_connection;
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(config.http.request_timeout.max(IDLE_TIME))
            // Twice the limit: a head that is a little too long gets an answer that says so.
            .max_buf_size((2 * config.http.max_header_bytes).max(LEAST_BUFFER));
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIME)
            .max_concurrent_streams(u32::try_from(streams).unwrap_or(u32::MAX))
            .max_header_list_size(u32::try_from(config.http.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(MAX_SEND_BUFFER);
        Self {
            http: http::router(http::HttpState::new(
                config,
                served,
                Arc::clone(&metrics),
                Arc::clone(&counts),
            )),
            grpc: grpc::router(config, served, metrics, Arc::clone(&counts)),
            builder,
            write_timeout: config.limits.write_timeout,
            request_timeout: config.http.request_timeout,
            max_watches: config.limits.max_watches_per_connection,
            room: served.caller().room().clone(),
            counts,
        }
    }

    fn watches(&self) -> ConnectionWatches {
        ConnectionWatches { open: Arc::new(AtomicUsize::new(0)), limit: self.max_watches }
    }
}

/// Serves connections until the service ends.
pub(crate) async fn serve(
    web: Web,
    mut streams: mpsc::UnboundedReceiver<WebStream>,
    mut stopping: watch::Receiver<Stopping>,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let WebStream { stream, counted, http2 } = tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => stream,
                None => break,
            },
            _ = stopping.changed() => break,
        };
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let line = Line::new(stream);
        let head_time = (!http2).then_some(web.request_timeout);
        let io = TokioIo::new(Timed::new(Arc::clone(&line), web.write_timeout, head_time));
        let (http, grpc, watches) = (web.http.clone(), web.grpc.clone(), web.watches());
        let (room, ends) = (web.room.clone(), Arc::clone(&line));
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(watches.clone());
            let router = if is_grpc(&request) { grpc.clone() } else { http.clone() };
            answer(router, request, Arc::clone(&line), room.clone())
        });
        let connection = web.builder.serve_connection(io, TowerToHyperService::new(service));
        let connection = graceful.watch(connection.into_owned());
        let counts = Counted::new(&web.counts, |counts| &counts.http);
        tokio::spawn(async move {
            // What a client does wrong ends its connection and nothing else.
            tokio::select! {
                _ = connection => {}
                () = ends.ended() => {}
            }
            drop((counts, counted));
        });
    }
    // Every connection ends after the answers that are under way. When the node has ended, all of them have been given.
    let finished = graceful.shutdown();
    tokio::pin!(finished);
    tokio::select! {
        () = &mut finished => return,
        _ = stopping.wait_for(|stopping| *stopping == Stopping::Ended) => {}
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), finished).await;
}

/// The answer to a request. A client that hangs up before it begins gives its call up, and its connection ends.
async fn answer(
    router: axum::Router,
    request: Request<Body>,
    line: Arc<Line>,
    room: Room,
) -> io::Result<Response> {
    let _in_flight = line.begin();
    tokio::select! {
        biased;
        (answer, page) = keeping(router.oneshot(request)) => {
            let answer = answer.unwrap_or_else(|never| match never {});
            Ok(paced(answer, page, &room, &line))
        }
        () = line.hung_up() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Watches of one connection, and how many there may be. Clones share the count; it is part of every request.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionWatches {
    open: Arc<AtomicUsize>,
    limit: usize,
}

/// One watch of a connection, as long as it lives.
#[derive(Debug)]
pub(crate) struct ConnectionWatch(Arc<AtomicUsize>);

impl ConnectionWatches {
    /// Counts one more, if there may be one more.
    pub(crate) fn count(&self) -> Result<ConnectionWatch, ApiError> {
        let counted = ConnectionWatch(Arc::clone(&self.open));
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.limit {
            return Err(Failure::TooManyWatches { limit: self.limit }.into());
        }
        Ok(counted)
    }
}

impl Drop for ConnectionWatch {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_grpc(request: &Request<Body>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
