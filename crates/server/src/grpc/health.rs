//! `grpc.health.v1`, for load balancers and probes. The service is well when the node answers; it is asked anew each time.

use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::Answers;
use crate::ops::Operations;

/// The names that are known: the whole process, and the one service in it.
const NAMES: [&str; 2] = ["", "leasehold.v1.Leasehold"];

/// Answers probes.
#[derive(Debug)]
pub(super) struct Health {
    ops: Operations,
}

impl Health {
    pub(super) const fn new(ops: Operations) -> Self {
        Self { ops }
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = Answers<HealthCheckResponse>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = request.into_inner().service;
        if !NAMES.contains(&name.as_str()) {
            return Err(Status::not_found(format!("no service {name:?} is here; there is {:?}", NAMES[1])));
        }
        let well = self.ops.caller().inspect().await.is_some_and(|inspection| inspection.ready);
        let status = if well { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("ask with Check; watching is not offered"))
    }
}
