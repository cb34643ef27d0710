//! Real processes on a stage. Not part of the tests, which run a small form of it: deploys take a few minutes.

use std::process::Command;

use anyhow::Result;

use crate::run::{release, step};

/// Stages real processes: rolling deploys, in which nobody leads for moments at most and no work is lost; or an incident, which `leasehold gaps`
/// must split into its causes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is staged
    #[arg(value_parser = ["deploys", "gap"])]
    what: String,
    /// In a few seconds; deploys with loose bounds on time
    #[arg(long)]
    quick: bool,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

/// Builds the service and the replicas as they are shipped, and stages it. Fails unless all is as it must be.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let place = release("service and replicas", "leasehold-examples", &["replica", "staged"])?;
    let mut staged = Command::new(place.join("staged"));
    staged.arg(&args.what).arg("--program").arg(place.join("leasehold"));
    staged.args(args.quick.then_some("--quick")).args(args.json.then_some("--json"));
    step(&args.what, &mut staged).map(|()| true)
}
