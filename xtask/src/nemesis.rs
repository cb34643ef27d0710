//! Clusters of real processes under faults. Not part of the tests, except for the short forms of the main scenarios.

use std::process::Command;

use anyhow::Result;

use crate::packages::install_missing;
use crate::run::{cargo, step, target_directory};

/// Builds the service as it is shipped and the harness, and runs a scenario, `all`, or `quick`. Says whether all went well.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    install_missing()?;
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-cli", "-p", "leasehold-nemesis"]);
    step("service and harness", build.args(["--bin", "leasehold", "--bin", "nemesis"]))?;
    let release = target_directory().join("release");
    let mut nemesis = Command::new(release.join("nemesis"));
    nemesis.arg("--out").arg(target_directory().join("nemesis")).args(words);
    step("faults", &mut nemesis).map(|()| true)
}
