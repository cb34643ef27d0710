//! HTTP and gRPC on one port: the limits of a connection, and who answers what.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use leasehold_server::Served;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::running::{Counts, Stopping};
use crate::tcp::{Counted, WebStream};
use crate::timed::Timed;
use crate::{grpc, http};

/// The smallest buffer for a head that the HTTP library takes.
const LEAST_BUFFER: usize = 8_192;
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
    counts: Arc<Counts>,
}

impl Web {
    pub(crate) fn new(config: &Config, served: &Served, metrics: Arc<Metrics>, counts: Arc<Counts>) -> Self {
        let streams = MAX_CALLS + config.limits.max_watches_per_connection;
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(config.http.request_timeout)
            .max_buf_size(config.http.max_header_bytes.max(LEAST_BUFFER));
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
            counts,
        }
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
        let WebStream { stream, counted } = tokio::select! {
            stream = streams.recv() => match stream {
                Some(stream) => stream,
                None => break,
            },
            _ = stopping.changed() => break,
        };
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let (http, grpc) = (web.http.clone(), web.grpc.clone());
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let request = request.map(Body::new);
            if is_grpc(&request) { grpc.clone().oneshot(request) } else { http.clone().oneshot(request) }
        });
        let io = TokioIo::new(Timed::new(stream, web.write_timeout));
        let connection = web.builder.serve_connection(io, TowerToHyperService::new(service));
        let connection = graceful.watch(connection.into_owned());
        let counts = Counted::new(&web.counts, |counts| &counts.http);
        tokio::spawn(async move {
            // What a client does wrong ends its connection and nothing else.
            let _ = connection.await;
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

fn is_grpc(request: &Request<Body>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
