//! The gRPC door: unary calls for plain sessions, watches, and the session stream as a call of its own.
//!
//! Calls mean what they mean over HTTP; both go through [`Operations`]. What is asked for is checked here, field by field, and what
//! comes back instead of an answer is a status with the machine's words in its metadata. The session stream is one connection of
//! the node, as over TCP.
//!
//! What it does not do: it knows nothing of connections and their limits, and it enforces no deadline for streams; their clients
//! end them.

mod calls;
mod deadline;
mod fields;
mod health;
mod session;
mod status;
mod watch;

/// As the generator writes it.
#[expect(unreachable_pub, unused_qualifications, clippy::allow_attributes, reason = "written by a generator")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/server/leasehold.v1.rs"));
}

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use generated::leasehold_server::{Leasehold, LeaseholdServer};
use leasehold_api::ApiError;
use leasehold_host::{Door, Served};
use leasehold_wire::MAX_FRAME_BYTES;
use leasehold_wire::messages as pb;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tonic_health::pb::health_server::HealthServer;

use crate::config::{Config, LimitsConfig};
use crate::metrics::Metrics;
use crate::ops::Operations;
use crate::running::Counts;

/// Everything that answers gRPC calls.
pub(crate) fn router(
    config: &Config,
    served: &Served,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
) -> axum::Router {
    let ops = Operations::new(served.caller().clone(), served.peers().asking(), "grpc", None);
    let health = HealthServer::new(health::Health::new(ops.clone()));
    let (door, limits) = (served.door().clone(), config.limits.clone());
    let grpc = Grpc { ops, door, limits, metrics, counts };
    let server = LeaseholdServer::new(grpc)
        .max_decoding_message_size(MAX_FRAME_BYTES)
        .max_encoding_message_size(MAX_FRAME_BYTES);
    Routes::new(server).add_service(health).prepare().into_axum_router()
}

/// What the calls need.
#[derive(Debug)]
struct Grpc {
    ops: Operations,
    door: Door,
    limits: LimitsConfig,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
}

/// What a call is answered with.
type Answered<T> = Result<Response<T>, Status>;
/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The calls with one answer: how each is called here, what it takes and gives, and what it is counted as.
macro_rules! leasehold {
    ($($call:ident($asked:ident) -> $answer:ident, $operation:literal;)+) => {
        #[tonic::async_trait]
        impl Leasehold for Grpc {
            type SessionStream = Answers<pb::SessionOut>;
            type WatchStream = Answers<pb::WatchResponse>;

            async fn session(&self, request: Request<Streaming<pb::SessionIn>>) -> Answered<Self::SessionStream> {
                Ok(Response::new(session::begin(request.into_inner(), self.door.clone(), self.limits.write_timeout)))
            }

            async fn watch(&self, request: Request<pb::WatchRequest>) -> Answered<Self::WatchStream> {
                let (_, extensions, message) = request.into_parts();
                let limit = self.limits.max_watches;
                let begun = watch::begin(message, &self.ops, &self.counts, limit, extensions.get());
                let code = begun.as_ref().map_or_else(ApiError::code, |_| "ok");
                self.metrics.count("grpc", "watch", code, Duration::ZERO);
                begun.map(Response::new).map_err(|fault| status::of("watch", &fault))
            }

            $(async fn $call(&self, request: Request<pb::$asked>) -> Answered<pb::$answer> {
                calls::unary(&self.metrics, $operation, request, |m| calls::$call(&self.ops, m)).await
            })+
        }
    };
}

leasehold! {
    open_session(OpenSessionRequest) -> OpenSessionResponse, "open";
    renew_session(RenewSessionRequest) -> RenewSessionResponse, "renew";
    close_session(CloseSessionRequest) -> CloseSessionResponse, "close";
    list_sessions(ListSessionsRequest) -> ListSessionsResponse, "sessions";
    acquire(AcquireRequest) -> AcquireResponse, "acquire";
    release(ReleaseRequest) -> ReleaseResponse, "release";
    set_value(SetValueRequest) -> SetValueResponse, "set-value";
    drain(DrainRequest) -> DrainResponse, "drain";
    ready(ReadyRequest) -> ReadyResponse, "set-ready";
    cancel(CancelRequest) -> CancelResponse, "cancel";
    get_lease(GetLeaseRequest) -> GetLeaseResponse, "get";
    list_leases(ListLeasesRequest) -> ListLeasesResponse, "list";
    check_token(CheckTokenRequest) -> CheckTokenResponse, "check";
    history(HistoryRequest) -> HistoryResponse, "history";
    gaps(GapsRequest) -> GapsResponse, "gaps";
    revoke(RevokeRequest) -> RevokeResponse, "revoke";
    list_alarms(ListAlarmsRequest) -> ListAlarmsResponse, "alarms";
    clear_alarm(ClearAlarmRequest) -> ClearAlarmResponse, "clear-alarm";
    ask_release(AskReleaseRequest) -> AskReleaseResponse, "ask-release";
    write_register(WriteRegisterRequest) -> WriteRegisterResponse, "write-register";
    read_register(ReadRegisterRequest) -> ReadRegisterResponse, "read-register";
    get_status(GetStatusRequest) -> GetStatusResponse, "status";
}
