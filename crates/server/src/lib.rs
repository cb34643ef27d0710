//! The service: one node for many machines, over TCP, gRPC and HTTP on one port.
//!
//! The node decides and the server crate drives it; this crate lets others speak with it: who may connect, what a request looks
//! like, how much of anything there may be. It decides nothing about leases.

pub mod config;
mod grpc;
mod http;
mod metrics;
mod ops;
mod paced;
mod running;
mod tcp;
mod timed;
mod web;

pub use running::{Found, Service, StartError, start};
