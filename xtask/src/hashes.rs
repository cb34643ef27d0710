//! The same seeds, played by the simulator as different profiles build it: every world must be the same.
//!
//! A world is decided by its seed, so that its hash tells whether the compiler and its optimiser kept the meaning of the program. Some
//! compilers did not: see `crates/core/compiler.rs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::run::rustc;
use crate::simulate;
use crate::steps::timed;

/// Compares the worlds of twenty seeds between the profiles dev and release.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Compare with the profile `simulator` too, which takes minutes to build
    #[arg(long)]
    everything: bool,
}

/// With 9, 16 and 31, whose worlds faulty compilers have changed before. The others are small, so that they are soon played without optimising.
const SEEDS: [u64; 20] = [1, 3, 4, 6, 9, 15, 16, 23, 27, 28, 30, 31, 37, 39, 40, 41, 43, 45, 56, 59];

/// Builds the simulator in every profile and compares.
pub(crate) fn run(args: &Args) -> Result<bool> {
    compare(&simulate::program("dev")?, args.everything)
}

/// Compares the simulator as it was built without optimising with the optimised ones. Says whether all worlds are the same.
pub(crate) fn compare(dev: &Path, everything: bool) -> Result<bool> {
    let profiles: &[&str] = if everything { &["release", simulate::CAMPAIGN] } else { &["release"] };
    let optimised: Vec<(&str, PathBuf)> =
        profiles.iter().map(|profile| Ok((*profile, simulate::program(profile)?))).collect::<Result<_>>()?;
    timed("hashes of simulated worlds", || {
        let expected = play(dev)?;
        let mut same = true;
        for (profile, program) in &optimised {
            let differing = differing(&expected, &play(program)?);
            same &= differing.is_empty();
            for line in &differing {
                println!("hashes: {line}");
            }
            let (all, differing, compiler) = (SEEDS.len(), differing.len(), rustc()?);
            println!(
                "hashes: dev against {profile}: {differing} of {all} seeds differ, built with {compiler}"
            );
        }
        Ok(same)
    })
}

fn differing(expected: &BTreeMap<u64, String>, found: &BTreeMap<u64, String>) -> Vec<String> {
    let pairs = expected.iter().map(|(seed, hash)| (seed, hash, found.get(seed)));
    let differing = pairs.filter(|(_, hash, found)| *found != Some(hash));
    let found = |found: Option<&String>| found.map_or("nothing", String::as_str).to_owned();
    differing
        .map(|(seed, hash, other)| format!("seed {seed}: {hash} in dev, {} here", found(other)))
        .collect()
}

/// The hash of every seed's world.
fn play(program: &Path) -> Result<BTreeMap<u64, String>> {
    let (one, other): (Vec<u64>, Vec<u64>) = SEEDS.iter().partition(|seed| *seed % 2 == 0);
    let play = |seeds: &[u64]| {
        seeds.iter().map(|seed| Ok((*seed, hash(program, *seed)?))).collect::<Result<Vec<_>>>()
    };
    // On both cores.
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| play(&one));
        let other = play(&other);
        (one.join(), other)
    });
    let one = one.map_err(|_| anyhow::anyhow!("playing seeds panicked"))??;
    Ok(one.into_iter().chain(other?).collect())
}

fn hash(program: &Path, seed: u64) -> Result<String> {
    let mut simulate = Command::new(program);
    simulate.args(["--seed", &seed.to_string(), "--quick", "--json"]);
    let output = simulate.output().with_context(|| format!("{} does not start", program.display()))?;
    ensure!(output.status.success(), "seed {seed} fails: {}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout).context("the simulator does not print JSON")?;
    Ok(said["hash"].as_str().context("the simulator tells no hash")?.to_owned())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn another_hash_and_a_missing_one_are_differences() {
        let worlds = |of: &[(u64, &str)]| of.iter().map(|(seed, hash)| (*seed, (*hash).to_owned())).collect();
        let expected = worlds(&[(1, "a"), (2, "b"), (3, "c")]);
        assert!(differing(&expected, &expected).is_empty());
        assert_eq!(differing(&expected, &worlds(&[(1, "a"), (2, "x")])).len(), 2);
    }
}
