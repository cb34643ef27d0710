//! Simulated worlds: nodes, clients and receivers under faults, as many as fit into some minutes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

pub(crate) use leasehold_args::simulate::Args;

use crate::run::{cargo, refuse, root, say_compiler, step, target_directory, wrapped};
use crate::steps::timed;

/// The profile of campaigns: the whole program is optimised at once.
pub(crate) const CAMPAIGN: &str = "simulator";

/// Builds the simulator as fast as it gets and runs it with these words. Says whether every promise was kept; the simulator has said
/// the same in its last line.
pub(crate) fn run(args: &Args, words: &[String]) -> Result<bool> {
    if let Err(why) = args.check() {
        refuse("simulate", &why);
    }
    let mut campaign = Command::new(program(CAMPAIGN)?);
    Ok(campaign.args(words).status().context("the simulator does not start")?.success())
}

/// Worlds that nobody has seen before, so many: some minutes on two cores.
const FRESH_SEEDS: &str = "400";
/// A violation is made smaller, which takes a while; its seed is told before.
const FRESH_TIME_LIMIT: &str = "12m";

/// Fresh worlds among the tests, on both cores. Says whether every promise was kept; the seeds are printed.
///
/// They follow from the commit: each one sees worlds that none before it has seen, and who runs its tests again sees the same ones, so that
/// a verdict is about the commit and not about the day.
pub(crate) fn fresh() -> Result<bool> {
    let mut words =
        vec!["--seeds".to_owned(), FRESH_SEEDS.to_owned(), "--threads".to_owned(), "2".to_owned()];
    if let Some(seed) = seed_of_commit() {
        words.extend(["--first-seed".to_owned(), seed.to_string()]);
    }
    let mut campaign = Command::new("timeout");
    campaign.args(["--kill-after=10s", FRESH_TIME_LIMIT]).arg(program("release")?).args(&words);
    println!("==> fresh worlds: simulate {}", words.join(" "));
    Ok(timed("fresh worlds", || campaign.status()).context("the simulator does not start")?.success())
}

/// Ten minutes of worlds, as much as has to reach every situation. Says whether every promise was kept.
pub(crate) fn campaign() -> Result<bool> {
    let mut campaign = Command::new(program(CAMPAIGN)?);
    campaign.args(["--minutes", "10", "--threads", "2"]);
    let ended = timed("ten minutes of simulated worlds", || campaign.status());
    Ok(ended.context("the simulator does not start")?.success())
}

/// The first 48 bits of the commit's name. Nothing where this is no checkout: the simulator then draws a seed.
fn seed_of_commit() -> Option<u64> {
    let output = Command::new("git").current_dir(root()).args(["rev-parse", "HEAD"]).output().ok()?;
    u64::from_str_radix(str::from_utf8(&output.stdout).ok()?.get(..12)?, 16).ok()
}

/// Builds what follows the tests while they run: with one job and less right to the processor, so that the tests notice little of it.
pub(crate) fn build_ahead() -> Result<()> {
    let mut build = build("release");
    build.args(["--jobs", "1", "--quiet"]);
    step("building the simulator (release), beside the tests", &mut wrapped(&["nice", "-n", "5"], &build))
}

fn build(profile: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--profile", profile, "-p", "leasehold-sim", "--bin", "simulate"]);
    if profile == "release" {
        // Together with what is counted: apart, each would have the node built for itself. It is no example of the node, whose tests put
        // bugs back: the places of those bugs would be compiled in and counted.
        build.args(["--bin", "work"]);
    }
    build
}

/// Builds the simulator, and says with which compiler. Tests take the profile release; a campaign takes the one that is built more slowly and
/// runs faster.
pub(crate) fn program(profile: &str) -> Result<PathBuf> {
    let mut build = build(profile);
    step(&format!("building the simulator ({profile})"), &mut build)?;
    say_compiler()?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(target_directory().join(directory).join("simulate"))
}
