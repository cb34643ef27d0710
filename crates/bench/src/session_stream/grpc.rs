//! The contender with gRPC: tonic on HTTP/2, written by hand where generated code would stand.
//!
//! Set up in favour of gRPC: windows so large that flow control never holds a frame back, no timeouts, no
//! router, no TLS, no compression. tonic sends whatever waits in a stream's queue as one chunk, so
//! batching is the same as with our own frames.

use std::convert::Infallible;

use tokio::sync::mpsc;
use tokio_stream::wrappers::{TcpListenerStream, UnboundedReceiverStream, UnixListenerStream};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http};
use tonic::server::{NamedService, StreamingService};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::endpoint::Listener;
use super::load::{Answers, Session};
use super::messages::{AnswerFrame, OpFrame, answer};
use super::plan::{Sharing, Transport};

/// Larger than everything in flight at the measured rates.
const WINDOW: u32 = 8 << 20;

/// Where the stream is found.
const PATH: &str = "/leasehold.bench.SessionStream/Attach";

/// Accepts and serves until the process is ended.
pub(crate) async fn serve(listener: Listener) -> anyhow::Result<()> {
    let server = Server::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(1024);
    match listener {
        Listener::Unix(l) => {
            l.set_nonblocking(true)?;
            let incoming = UnixListenerStream::new(tokio::net::UnixListener::from_std(l)?);
            server.serve_with_incoming(StreamServer, incoming).await?;
        }
        Listener::Tcp(l) => {
            l.set_nonblocking(true)?;
            let incoming = TcpListenerStream::new(tokio::net::TcpListener::from_std(l)?);
            let incoming = tokio_stream::StreamExt::map(incoming, |stream| {
                let stream = stream?;
                stream.set_nodelay(true)?;
                Ok::<_, std::io::Error>(stream)
            });
            server.serve_with_incoming(StreamServer, incoming).await?;
        }
    }
    Ok(())
}

/// Opens `sessions` sessions.
pub(crate) async fn open(
    transport: Transport,
    address: &str,
    sharing: Sharing,
    sessions: u32,
) -> anyhow::Result<Vec<Session>> {
    let shared = connect(transport, address).await?;
    let mut open = Vec::new();
    for id in 0..sessions {
        let channel = match sharing {
            Sharing::One => shared.clone(),
            Sharing::Each => connect(transport, address).await?,
        };
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await?;
        let (ops, queue) = mpsc::unbounded_channel();
        let codec = ProstCodec::<OpFrame, AnswerFrame>::default();
        let request = Request::new(UnboundedReceiverStream::new(queue));
        let path = http::uri::PathAndQuery::from_static(PATH);
        let response = client.streaming(request, path, codec).await?;
        open.push(Session { id, ops, answers: Answers::Stream(Box::new(response.into_inner())) });
    }
    Ok(open)
}

async fn connect(transport: Transport, address: &str) -> anyhow::Result<Channel> {
    let uri = match transport {
        Transport::Unix => format!("unix:{address}"),
        Transport::Tcp => format!("http://{address}"),
    };
    let endpoint = Endpoint::from_shared(uri)?
        .tcp_nodelay(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    Ok(endpoint.connect().await?)
}

/// The service as HTTP/2 sees it.
#[derive(Clone)]
struct StreamServer;

impl NamedService for StreamServer {
    const NAME: &'static str = "leasehold.bench.SessionStream";
}

impl Service<http::Request<Body>> for StreamServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let codec = ProstCodec::<AnswerFrame, OpFrame>::default();
            Ok(tonic::server::Grpc::new(codec).streaming(Attach, request).await)
        })
    }
}

/// The one method: answers each frame through a queue, as a server that also pushes events would.
struct Attach;

impl StreamingService<OpFrame> for Attach {
    type Response = AnswerFrame;
    type ResponseStream = UnboundedReceiverStream<Result<AnswerFrame, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<OpFrame>>) -> Self::Future {
        let mut frames = request.into_inner();
        let (queue, answers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(frame)) = frames.message().await {
                if queue.send(Ok(answer(frame))).is_err() {
                    break;
                }
            }
        });
        Box::pin(async move { Ok(Response::new(UnboundedReceiverStream::new(answers))) })
    }
}
