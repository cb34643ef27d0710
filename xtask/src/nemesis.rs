//! Clusters of real processes under faults. Not part of the tests, except for the short forms of the main scenarios.

use std::process::Command;

use anyhow::{Context, Result};

pub(crate) use leasehold_args::nemesis::Args;

use crate::packages::install_missing;
use crate::run::{refuse, release, say_compiler, target_directory};
use crate::steps::timed;

/// Builds the service as it is shipped and the harness, and runs a scenario, `all`, or `quick`. Says whether all went well.
pub(crate) fn run(args: &Args, words: &[String]) -> Result<bool> {
    if args.scenario == "check" && args.history.is_none() {
        refuse("nemesis", "check needs --history FILE");
    }
    let mut nemesis = built()?;
    if args.out.is_none() {
        nemesis.arg("--out").arg(target_directory().join("nemesis"));
    }
    Ok(nemesis.args(words).status().context("the harness does not start")?.success())
}

/// Every scenario, one after the other. Says whether all went well.
pub(crate) fn all() -> Result<bool> {
    let mut nemesis = built()?;
    nemesis.arg("--out").arg(target_directory().join("nemesis")).arg("all");
    Ok(timed("every nemesis scenario", || nemesis.status()).context("the harness does not start")?.success())
}

fn built() -> Result<Command> {
    install_missing()?;
    let place = release("service and harness", "leasehold-nemesis", &["nemesis"])?;
    say_compiler()?;
    Ok(Command::new(place.join("nemesis")))
}
