//! Generates the messages of the session stream, of the gRPC calls and of the stream between nodes. The compiler of `.proto` files is a library: nobody has to
//! install one.

use std::error::Error;

/// The messages, and the calls that use them. Whoever serves the calls generates the service itself.
const PROTOS: [&str; 2] = ["proto/leasehold/v1/session.proto", "proto/leasehold/v1/service.proto"];
/// What nodes say to each other. It carries messages of the session stream.
const PEER_PROTO: &str = "proto/leasehold/peer/v1/peer.proto";
/// Where imports are looked for.
const INCLUDES: &str = "proto";

fn main() -> Result<(), Box<dyn Error>> {
    for proto in PROTOS.into_iter().chain([PEER_PROTO]) {
        println!("cargo::rerun-if-changed={proto}");
    }
    let files = protox::compile(PROTOS, [INCLUDES])?;
    let mut config = prost_build::Config::new();
    // Frames are walked message by message, because each request is judged alone: they need no types of their own.
    for frame in [".leasehold.v1.ClientFrame", ".leasehold.v1.ServerFrame"] {
        config.extern_path(frame, "crate::frame::Messages");
    }
    // So the messages around them take them as bytes, and are written by hand.
    config.extern_path(".leasehold.v1.SessionIn", "crate::grpc::SessionIn");
    config.extern_path(".leasehold.v1.SessionOut", "crate::grpc::SessionOut");
    config.compile_fds(files)?;

    let files = protox::compile([PEER_PROTO], [INCLUDES])?;
    let mut config = prost_build::Config::new();
    config.extern_path(".leasehold.v1", "crate::proto");
    config.extern_path(".leasehold.peer.v1.PeerFrame", "crate::frame::Messages");
    // What is sent to several nodes is kept once.
    config.bytes([".leasehold.peer.v1"]);
    config.compile_fds(files)?;
    Ok(())
}
