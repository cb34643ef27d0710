//! Mixed load on a service for a long time. Not part of the tests: it takes an hour.

use anyhow::Result;

use crate::run::{release, step, target_directory};

/// Mixed load on a service of its own; memory and descriptors must stay flat.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For how many minutes
    #[arg(default_value = "60", value_parser = crate::run::minutes, allow_hyphen_values = true)]
    minutes: f64,
}

/// Builds the service and the load as they are shipped, and runs them. Says whether memory and descriptors stayed flat.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let place = release("service and load", "leasehold-bench", &["soak"])?;
    let mut soak = std::process::Command::new(place.join("soak"));
    soak.arg("--program").arg(place.join("leasehold")).args(["--minutes", &args.minutes.to_string()]);
    step("mixed load", soak.arg("--out").arg(target_directory().join("soak"))).map(|()| true)
}
