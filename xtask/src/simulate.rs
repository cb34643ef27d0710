//! Simulated worlds: nodes, clients and receivers under faults, as many as fit into some minutes.

use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, step, target_directory};

/// Builds the simulator as fast as it gets and runs it with these words. Says whether every promise was kept.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let mut campaign = program()?;
    step("simulated worlds", campaign.args(words)).map(|()| true)
}

/// How long fresh worlds are run among all tests.
const SHORT: [&str; 4] = ["--minutes", "2", "--threads", "2"];

/// The campaign that is one of all tests: its name, and how it went. It prints its first seed, so that it can be run again.
pub(crate) fn short() -> (String, Result<()>) {
    let name = format!("simulated worlds with fresh seeds ({})", SHORT.join(" "));
    (name, program().and_then(|mut campaign| step("simulated worlds", campaign.args(SHORT))))
}

fn program() -> Result<Command> {
    let mut build = cargo();
    step("simulator", build.args(["build", "--release", "-p", "leasehold-sim", "--bin", "simulate"]))?;
    Ok(Command::new(target_directory().join("release/simulate")))
}
