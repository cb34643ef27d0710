//! Rolling deploys of real processes, measured. Not part of the tests, which run a small form of it: it takes a few minutes.

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// Deploys three replicas again and again against a service of its own; nobody may lead only for moments, and no work may be lost.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A few short deploys, with loose bounds on time
    #[arg(long)]
    quick: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Builds the service and the replicas as they are shipped, and deploys them. Fails unless all is as it must be.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-examples"]);
    build.args(["--bin", "leasehold", "--bin", "replica", "--bin", "deploys"]);
    step("service and replicas", &mut build)?;
    let release = target_directory().join("release");
    let mut deploys = std::process::Command::new(release.join("deploys"));
    deploys.arg("--program").arg(release.join("leasehold"));
    deploys.args(args.quick.then_some("--quick")).args(args.json.then_some("--json"));
    step("rolling deploys", &mut deploys).map(|()| true)
}
