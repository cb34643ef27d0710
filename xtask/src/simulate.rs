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

/// A world that never ends must not hang whoever waits for all tests; a violation is made smaller first.
const LIMIT: &str = "8m";
/// What is run among all tests: always the same worlds, as many as fit.
const SHORT: [&str; 6] = ["--minutes", "1", "--threads", "2", "--first-seed", "1"];

/// The campaign that is one of all tests: its name, and how it went.
pub(crate) fn short() -> (String, Result<()>) {
    let name = format!("simulated worlds ({})", SHORT.join(" "));
    let run = |program: PathBuf| {
        let mut campaign = Command::new("timeout");
        campaign.args(["--kill-after=10s", LIMIT]).arg(program).args(SHORT);
        step("simulated worlds", &mut campaign)
    };
    (name, program().and_then(run))
}

fn program() -> Result<PathBuf> {
    let mut build = cargo();
    step("simulator", build.args(["build", "--release", "-p", "leasehold-sim", "--bin", "simulate"]))?;
    Ok(target_directory().join("release/simulate"))
}
