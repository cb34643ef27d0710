//! Tests of the service that do not change their process, in one program.

#[path = "grpc/main.rs"]
mod grpc;
#[path = "http/main.rs"]
mod http;
mod metrics;
mod schemathesis;
