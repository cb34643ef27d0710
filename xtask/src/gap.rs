//! A staged incident and what `leasehold gaps` says of it. Not part of the tests, which run a small form of it.

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// Stages an incident with real processes; `leasehold gaps` must split it into its causes, and the same deploy done right must have no gap.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The same in a few seconds
    #[arg(long)]
    quick: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Builds the service and the replicas as they are shipped, and stages it. Fails unless all is as it must be.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-examples"]);
    build.args(["--bin", "leasehold", "--bin", "replica", "--bin", "gap"]);
    step("service and replicas", &mut build)?;
    let release = target_directory().join("release");
    let mut gap = std::process::Command::new(release.join("gap"));
    gap.arg("--program").arg(release.join("leasehold"));
    gap.args(args.quick.then_some("--quick")).args(args.json.then_some("--json"));
    step("the staged incident", &mut gap).map(|()| true)
}
