//! What does the carrier of the session stream cost, before any lease logic is on it?
//!
//! Three contenders carry the very same protobuf messages over the very same sockets: blocking sockets without
//! a runtime (the floor), length-prefixed frames on tokio, and a gRPC stream (tonic, HTTP/2) on tokio. The
//! last two have the same number of queues and hand-overs between tasks, so their difference is the price of
//! HTTP/2 with its gRPC envelope and of nothing else.
//!
//! Client and server are processes of their own, and each reads its own processor time, so neither pays for the other.
//!
//! Deliberately not measured here: TLS (both would pay the same), disks, consensus, and the network
//! between machines.

pub(crate) mod clock;
mod codec;
mod endpoint;
mod framed;
mod grpc;
mod load;
mod messages;
mod plan;
mod process;
mod raw;
mod report;

pub use plan::{Cell, Contender, Placement, Plan, Sharing, Threads, Transport, Work};
pub use process::{client_process, run, server_process};
pub use report::{Figures, Report};
