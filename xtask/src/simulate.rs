//! Simulated worlds: nodes, clients and receivers under faults, as many as fit into some minutes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// Builds the simulator as fast as it gets and runs it with these words. Says whether every promise was kept.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let mut campaign = Command::new(program()?);
    step("simulated worlds", campaign.args(words)).map(|()| true)
}

fn program() -> Result<PathBuf> {
    let mut build = cargo();
    step("simulator", build.args(["build", "--release", "-p", "leasehold-sim", "--bin", "simulate"]))?;
    Ok(target_directory().join("release/simulate"))
}
