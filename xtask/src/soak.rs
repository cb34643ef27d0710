//! Mixed load on a service for a long time. Not part of the tests: it takes an hour.

use anyhow::{Result, bail};

use crate::run::{cargo, step, target_directory};

/// Builds the service and the load as they are shipped, and runs them. Says whether memory and descriptors stayed flat.
pub(crate) fn run(minutes: &str) -> Result<bool> {
    if !minutes.parse().is_ok_and(|minutes: f64| minutes > 0.0) {
        bail!("{minutes:?} is no number of minutes above 0");
    }
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-bench"]);
    step("service and load", build.args(["--bin", "leasehold", "--bin", "soak"]))?;
    let release = target_directory().join("release");
    let mut soak = std::process::Command::new(release.join("soak"));
    soak.arg("--program").arg(release.join("leasehold")).args(["--minutes", minutes]);
    step("mixed load", soak.arg("--out").arg(target_directory().join("soak"))).map(|()| true)
}
