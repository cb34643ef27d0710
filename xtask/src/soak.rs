//! Mixed load on a service for a long time. Not part of the tests: it takes an hour.

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// Mixed load on a service of its own; memory and descriptors must stay flat.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how many minutes
    #[arg(default_value = "60", value_parser = crate::run::minutes, allow_hyphen_values = true)]
    minutes: f64,
}

/// Builds the service and the load as they are shipped, and runs them. Says whether memory and descriptors stayed flat.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-bench"]);
    step("service and load", build.args(["--bin", "leasehold", "--bin", "soak"]))?;
    let release = target_directory().join("release");
    let mut soak = std::process::Command::new(release.join("soak"));
    soak.arg("--program").arg(release.join("leasehold")).args(["--minutes", &args.minutes.to_string()]);
    step("mixed load", soak.arg("--out").arg(target_directory().join("soak"))).map(|()| true)
}
