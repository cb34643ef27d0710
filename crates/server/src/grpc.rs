//! The gRPC door: unary calls for plain sessions, watches, and the session stream as a call of its own.
//!
//! Calls mean what they mean over HTTP; both go through [`Plain`]. What is asked for is checked here, field by field, and what
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
use leasehold_host::{Door, Served};
use leasehold_wire::MAX_FRAME_BYTES;
use leasehold_wire::messages as pb;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};
use tonic_health::pb::health_server::HealthServer;

use crate::config::{Config, LimitsConfig};
use crate::metrics::Metrics;
use crate::plain::{ApiError, Plain};
use crate::running::Counts;

/// Everything that answers gRPC calls.
pub(crate) fn router(
    config: &Config,
    served: &Served,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
) -> axum::Router {
    let plain = Plain::new(served.caller().clone());
    let health = HealthServer::new(health::Health::new(plain.clone()));
    let (door, limits) = (served.door().clone(), config.limits.clone());
    let grpc = Grpc { plain, door, limits, metrics, counts };
    let server = LeaseholdServer::new(grpc)
        .max_decoding_message_size(MAX_FRAME_BYTES)
        .max_encoding_message_size(MAX_FRAME_BYTES);
    Routes::new(server).add_service(health).prepare().into_axum_router()
}

/// What the calls need.
#[derive(Debug)]
struct Grpc {
    plain: Plain,
    door: Door,
    limits: LimitsConfig,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
}

/// What a call is answered with.
type Answered<T> = Result<Response<T>, Status>;
/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Leasehold for Grpc {
    type SessionStream = Answers<pb::SessionOut>;
    type WatchStream = Answers<pb::WatchResponse>;

    async fn session(&self, request: Request<Streaming<pb::SessionIn>>) -> Answered<Self::SessionStream> {
        Ok(Response::new(session::begin(request.into_inner(), self.door.clone(), self.limits.write_timeout)))
    }

    async fn open_session(
        &self,
        request: Request<pb::OpenSessionRequest>,
    ) -> Answered<pb::OpenSessionResponse> {
        calls::unary(&self.metrics, "open", request, |m| calls::open_session(&self.plain, m)).await
    }

    async fn renew_session(
        &self,
        request: Request<pb::RenewSessionRequest>,
    ) -> Answered<pb::RenewSessionResponse> {
        calls::unary(&self.metrics, "renew", request, |m| calls::renew_session(&self.plain, m)).await
    }

    async fn close_session(
        &self,
        request: Request<pb::CloseSessionRequest>,
    ) -> Answered<pb::CloseSessionResponse> {
        calls::unary(&self.metrics, "close", request, |m| calls::close_session(&self.plain, m)).await
    }

    async fn list_sessions(
        &self,
        request: Request<pb::ListSessionsRequest>,
    ) -> Answered<pb::ListSessionsResponse> {
        calls::unary(&self.metrics, "sessions", request, |m| calls::list_sessions(&self.plain, m)).await
    }

    async fn acquire(&self, request: Request<pb::AcquireRequest>) -> Answered<pb::AcquireResponse> {
        calls::unary(&self.metrics, "acquire", request, |m| calls::acquire(&self.plain, m)).await
    }

    async fn release(&self, request: Request<pb::ReleaseRequest>) -> Answered<pb::ReleaseResponse> {
        calls::unary(&self.metrics, "release", request, |m| calls::release(&self.plain, m)).await
    }

    async fn set_value(&self, request: Request<pb::SetValueRequest>) -> Answered<pb::SetValueResponse> {
        calls::unary(&self.metrics, "set-value", request, |m| calls::set_value(&self.plain, m)).await
    }

    async fn drain(&self, request: Request<pb::DrainRequest>) -> Answered<pb::DrainResponse> {
        calls::unary(&self.metrics, "drain", request, |m| calls::drain(&self.plain, m)).await
    }

    async fn ready(&self, request: Request<pb::ReadyRequest>) -> Answered<pb::ReadyResponse> {
        calls::unary(&self.metrics, "set-ready", request, |m| calls::ready(&self.plain, m)).await
    }

    async fn cancel(&self, request: Request<pb::CancelRequest>) -> Answered<pb::CancelResponse> {
        calls::unary(&self.metrics, "cancel", request, |m| calls::cancel(&self.plain, m)).await
    }

    async fn get_lease(&self, request: Request<pb::GetLeaseRequest>) -> Answered<pb::GetLeaseResponse> {
        calls::unary(&self.metrics, "get", request, |m| calls::get_lease(&self.plain, m)).await
    }

    async fn list_leases(&self, request: Request<pb::ListLeasesRequest>) -> Answered<pb::ListLeasesResponse> {
        calls::unary(&self.metrics, "list", request, |m| calls::list_leases(&self.plain, m)).await
    }

    async fn check_token(&self, request: Request<pb::CheckTokenRequest>) -> Answered<pb::CheckTokenResponse> {
        calls::unary(&self.metrics, "check", request, |m| calls::check_token(&self.plain, m)).await
    }

    async fn history(&self, request: Request<pb::HistoryRequest>) -> Answered<pb::HistoryResponse> {
        calls::unary(&self.metrics, "history", request, |m| calls::history(&self.plain, m)).await
    }

    async fn gaps(&self, request: Request<pb::GapsRequest>) -> Answered<pb::GapsResponse> {
        calls::unary(&self.metrics, "gaps", request, |m| calls::gaps(&self.plain, m)).await
    }

    async fn revoke(&self, request: Request<pb::RevokeRequest>) -> Answered<pb::RevokeResponse> {
        calls::unary(&self.metrics, "revoke", request, |m| calls::revoke(&self.plain, m)).await
    }

    async fn list_alarms(&self, request: Request<pb::ListAlarmsRequest>) -> Answered<pb::ListAlarmsResponse> {
        calls::unary(&self.metrics, "alarms", request, |m| calls::list_alarms(&self.plain, m)).await
    }

    async fn clear_alarm(&self, request: Request<pb::ClearAlarmRequest>) -> Answered<pb::ClearAlarmResponse> {
        calls::unary(&self.metrics, "clear-alarm", request, |m| calls::clear_alarm(&self.plain, m)).await
    }

    async fn ask_release(&self, request: Request<pb::AskReleaseRequest>) -> Answered<pb::AskReleaseResponse> {
        calls::unary(&self.metrics, "ask-release", request, |m| calls::ask_release(&self.plain, m)).await
    }

    async fn write_register(
        &self,
        request: Request<pb::WriteRegisterRequest>,
    ) -> Answered<pb::WriteRegisterResponse> {
        calls::unary(&self.metrics, "write-register", request, |m| calls::write_register(&self.plain, m))
            .await
    }

    async fn read_register(
        &self,
        request: Request<pb::ReadRegisterRequest>,
    ) -> Answered<pb::ReadRegisterResponse> {
        calls::unary(&self.metrics, "read-register", request, |m| calls::read_register(&self.plain, m)).await
    }

    async fn get_status(&self, request: Request<pb::GetStatusRequest>) -> Answered<pb::GetStatusResponse> {
        calls::unary(&self.metrics, "status", request, |m| calls::get_status(&self.plain, m)).await
    }

    async fn watch(&self, request: Request<pb::WatchRequest>) -> Answered<Self::WatchStream> {
        let (_, extensions, message) = request.into_parts();
        let limit = self.limits.max_watches;
        let begun = watch::begin(message, &self.plain, &self.counts, limit, extensions.get());
        let code = begun.as_ref().map_or_else(ApiError::code, |_| "ok");
        self.metrics.count("grpc", "watch", code, Duration::ZERO);
        begun.map(Response::new).map_err(|fault| status::of("watch", &fault))
    }
}
