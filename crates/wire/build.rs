//! Generates the messages of the session stream. The compiler of `.proto` files is a library: nobody has to install one.

use std::error::Error;

/// The one file that describes the stream.
const SESSION_PROTO: &str = "proto/leasehold/v1/session.proto";
/// Where imports would be looked for.
const INCLUDES: &str = "proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SESSION_PROTO}");
    let files = protox::compile([SESSION_PROTO], [INCLUDES])?;
    let mut config = prost_build::Config::new();
    // Frames are walked message by message, because each request is judged alone: they need no types of their own.
    for frame in [".leasehold.v1.ClientFrame", ".leasehold.v1.ServerFrame"] {
        config.extern_path(frame, "crate::frame::Messages");
    }
    config.compile_fds(files)?;
    Ok(())
}
