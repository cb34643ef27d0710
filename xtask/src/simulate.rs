//! Simulated worlds: nodes, clients and receivers under faults, as many as fit into some minutes.

#[expect(dead_code, reason = "the words are only looked at here; the simulator does what they say")]
#[path = "../../crates/sim/src/bin/simulate/args.rs"]
mod args;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

pub(crate) use args::Args;

use crate::run::{cargo, refuse, step, target_directory};

/// Builds the simulator as fast as it gets and runs it with these words. Says whether every promise was kept; the simulator has said
/// the same in its last line.
pub(crate) fn run(args: &Args, words: &[String]) -> Result<bool> {
    if let Err(why) = args.check() {
        refuse("simulate", &why);
    }
    let mut campaign = Command::new(program()?);
    Ok(campaign.args(words).status().context("the simulator does not start")?.success())
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
