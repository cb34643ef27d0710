//! Generates the two ends of the gRPC service. The messages are those of the wire crate; here are only the calls. The client's end
//! is for tests.

use std::error::Error;
use std::path::PathBuf;

/// The calls.
const SERVICE_PROTO: &str = "leasehold/v1/service.proto";
/// Where it lies.
const INCLUDES: &str = "../wire/proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={INCLUDES}");
    let files = protox::compile([SERVICE_PROTO], [INCLUDES])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    for (end, server) in [("server", true), ("client", false)] {
        let folder = out.join(end);
        std::fs::create_dir_all(&folder)?;
        tonic_prost_build::configure()
            .build_server(server)
            .build_client(!server)
            .build_transport(false)
            .extern_path(".leasehold.v1", "::leasehold_wire::messages")
            .out_dir(folder)
            .compile_fds(files.clone())?;
    }
    Ok(())
}
