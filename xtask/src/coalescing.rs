//! What one session for many leases saves. Not part of the tests: it takes minutes.

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// What many leases cost while nothing happens: in one session, and with a session for each.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many leases
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=30_000))]
    leases: u32,
    /// For how many seconds each is measured
    #[arg(long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Builds the service and the client as they are shipped, and measures.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-bench"]);
    step("service and client", build.args(["--bin", "leasehold", "--bin", "coalescing"]))?;
    let release = target_directory().join("release");
    let mut coalescing = std::process::Command::new(release.join("coalescing"));
    coalescing.arg("--program").arg(release.join("leasehold"));
    coalescing.args(["--leases", &args.leases.to_string(), "--seconds", &args.seconds.to_string()]);
    step("leases at rest", coalescing.args(args.json.then_some("--json"))).map(|()| true)
}
