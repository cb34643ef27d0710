//! Generates the client of etcd from the part of its API that the measurements use.

use std::error::Error;

const PROTO: &str = "proto/etcd.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let files = protox::compile([PROTO], ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(files)?;
    Ok(())
}
