//! Simulated worlds: nodes, clients and receivers under faults, as many as fit into some minutes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{cargo, step, target_directory};

/// Builds the simulator as fast as it gets and runs it with these words. Says whether every promise was kept.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let mut campaign = Command::new(program()?);
    step("simulated worlds", campaign.args(words)).map(|()| true)
}

/// Worlds that nobody has seen before, for so long.
const FRESH_MINUTES: &str = "1.5";
/// A violation is made smaller, which takes a while; its seed is told before.
const FRESH_TIME_LIMIT: &str = "10m";

/// Fresh worlds among the tests, on both cores. Says whether every promise was kept; the seeds are printed.
pub(crate) fn fresh() -> Result<bool> {
    let mut campaign = Command::new("timeout");
    campaign.args(["--kill-after=10s", FRESH_TIME_LIMIT]).arg(program()?);
    campaign.args(["--minutes", FRESH_MINUTES, "--threads", "2"]);
    println!("==> fresh worlds: simulate --minutes {FRESH_MINUTES} --threads 2");
    Ok(campaign.status().context("the simulator does not start")?.success())
}

fn program() -> Result<PathBuf> {
    let mut build = cargo();
    step("simulator", build.args(["build", "--release", "-p", "leasehold-sim", "--bin", "simulate"]))?;
    Ok(target_directory().join("release/simulate"))
}
