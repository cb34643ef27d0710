//! Bytes that nobody meant to send, for every decoder: by libFuzzer where there is a nightly toolchain, by the stable fuzzer else.
//!
//! `fuzz` is a workspace of its own. Nothing but libFuzzer itself needs a nightly toolchain, and no test does: `cargo xtask test
//! --everything` runs the stable fuzzer for a few seconds a target.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser};
use leasehold_args::fuzz::NAMES;

use crate::run::{cargo, exists, refuse, root, step, target_directory};

/// How long each target is tried unless it is said.
const SECONDS: u64 = 60;
/// Longest input, as for the stable fuzzer.
const MAX_INPUT: &str = "-max_len=65536";
/// Most memory at once, in megabytes. The sanitizer takes a part of it.
const MAX_MEMORY: &str = "-rss_limit_mb=2048";
/// Longest single piece of memory, in megabytes: as much as the stable fuzzer allows in all.
const MAX_PIECE: &str = "-malloc_limit_mb=32";
/// Longest time for one input, in seconds.
const MAX_TIME: &str = "-timeout=20";

/// Bytes that nobody meant to send, for every decoder: by libFuzzer where there is a nightly toolchain, by the stable fuzzer else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The decoder to try; all if it is not given
    #[arg(value_parser = PossibleValuesParser::new(targets()))]
    target: Option<String>,
    /// For so many seconds each
    #[arg(long, value_name = "N", default_value_t = SECONDS, value_parser = seconds, allow_hyphen_values = true)]
    seconds: u64,
    /// By the stable fuzzer, with the inputs of this seed
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Try this one input again
    #[arg(long, value_name = "FILE", requires = "target", conflicts_with_all = ["seconds", "seed", "stable"])]
    input: Option<PathBuf>,
    /// By the stable fuzzer, whatever else there is
    #[arg(long)]
    stable: bool,
}

/// More than a week is a slip of the hand.
const MAX_SECONDS: u64 = 7 * 24 * 60 * 60;

fn seconds(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    number.ok_or_else(|| format!("give a whole number of seconds from 1 to {MAX_SECONDS}"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

fn targets() -> Vec<PossibleValue> {
    NAMES.iter().map(|(name, what)| PossibleValue::new(*name).help(*what)).collect()
}

/// Tries one target or all of them. Says whether nothing was found.
pub(crate) fn run(args: &Args) -> Result<bool> {
    // Seen from where the command was given.
    let input = args.input.as_ref().map(|input| std::env::current_dir().unwrap_or_default().join(input));
    if let Some(missing) = input.as_ref().filter(|input| !input.is_file()) {
        refuse("fuzz", &format!("there is no file {}", missing.display()));
    }
    let stable = build()?;
    if let (Some(name), Some(input)) = (&args.target, input) {
        return tried(Command::new(stable).args([name, "--input"]).arg(input));
    }
    let targets: Vec<&str> = match &args.target {
        Some(name) => vec![name],
        None => NAMES.iter().map(|(name, _)| *name).collect(),
    };
    let nightly =
        if args.stable || args.seed.is_some() { Err("it was asked for".to_owned()) } else { Nightly::find() };
    let mut fine = true;
    match nightly {
        Ok(nightly) => {
            println!("==> libFuzzer on the nightly toolchain, {} s a target", args.seconds);
            nightly.build()?;
            step("seeds", Command::new(&stable).arg("--write-seeds").arg(corpora()))?;
            for name in targets {
                fine &= nightly.run(name, args.seconds)?;
            }
        }
        Err(why) => {
            println!("==> the stable fuzzer, {} s a target: {why}", args.seconds);
            let found = target_directory().join("fuzz");
            for name in targets {
                let mut fuzzer = Command::new(&stable);
                fuzzer.args([name, "--seconds", &args.seconds.to_string()]);
                fuzzer.env("LEASEHOLD_FUZZ_DIRECTORY", &found);
                if let Some(seed) = args.seed {
                    fuzzer.args(["--seed", &seed.to_string()]);
                }
                fine &= tried(&mut fuzzer)?;
            }
        }
    }
    Ok(fine)
}

/// Builds the stable fuzzer, which also knows the targets and their seeds.
fn build() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--manifest-path", "fuzz/Cargo.toml", "--bin", "stable", "--target-dir"]);
    step("targets", build.arg(target_directory()))?;
    Ok(target_directory().join("debug/stable"))
}

/// Whether a fuzzer found nothing. What it found it has printed.
fn tried(fuzzer: &mut Command) -> Result<bool> {
    Ok(fuzzer.status().context("a fuzzer does not start")?.success())
}

/// Inputs that libFuzzer found worth keeping, by target. They stay for the next time.
fn corpora() -> PathBuf {
    target_directory().join("fuzz/corpus")
}

/// cargo-fuzz on a nightly toolchain.
struct Nightly {
    /// A path on which cargo finds cargo-fuzz.
    path: std::ffi::OsString,
}

impl Nightly {
    /// What is missing is installed, if it can be; else it is said why there is none.
    fn find() -> Result<Self, String> {
        if !exists("rustup") {
            return Err("there is no rustup, and so no nightly toolchain".to_owned());
        }
        let has_nightly = || {
            let mut rustc = Command::new("rustup");
            rustc.args(["run", "nightly", "rustc", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
            rustc.status().is_ok_and(|status| status.success())
        };
        if !has_nightly() {
            let mut install = Command::new("rustup");
            install.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
            step("nightly toolchain", &mut install).map_err(|error| format!("{error:#}"))?;
        }
        let tools = target_directory().join("tools");
        if !exists("cargo-fuzz") && !tools.join("bin/cargo-fuzz").is_file() {
            let mut install = cargo();
            install.args(["install", "--locked", "--quiet", "--debug", "cargo-fuzz", "--root"]).arg(&tools);
            let built = step("cargo-fuzz is missing and is built once", &mut install);
            built.map_err(|error| format!("{error:#}"))?;
        }
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&before));
        Ok(Self { path: std::env::join_paths(path).map_err(|error| error.to_string())? })
    }

    fn cargo_fuzz(&self, what: &str) -> Command {
        let mut command = Command::new("rustup");
        command.current_dir(root()).env("PATH", &self.path);
        command.args(["run", "nightly", "cargo", "fuzz", what, "--fuzz-dir", "fuzz"]);
        command.args(["--features", "libfuzzer", "--target-dir"]).arg(target_directory().join("fuzz/build"));
        command.arg("libfuzzer");
        command
    }

    fn build(&self) -> Result<()> {
        step("libFuzzer", &mut self.cargo_fuzz("build"))
    }

    fn run(&self, name: &str, seconds: u64) -> Result<bool> {
        let found = target_directory().join(format!("fuzz/{name}-"));
        println!("==> {name}: what fails is written to {}*", found.display());
        let mut fuzzer = self.cargo_fuzz("run");
        fuzzer.env("LEASEHOLD_FUZZ_TARGET", name).arg(corpora().join(name));
        fuzzer.args([
            "--",
            MAX_INPUT,
            MAX_MEMORY,
            MAX_PIECE,
            MAX_TIME,
            "-print_final_stats=1",
            "-verbosity=0",
        ]);
        fuzzer.arg(format!("-max_total_time={seconds}"));
        fuzzer.arg(format!("-artifact_prefix={}", found.display()));
        tried(&mut fuzzer)
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Result<Args, String> {
        let words = std::iter::once("fuzz").chain(words.iter().copied());
        Words::try_parse_from(words).map(|words| words.args).map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_and_its_time_are_read() {
        let args = parsed(&["config", "--seconds", "5", "--stable"]).unwrap();
        assert_eq!((args.target.as_deref(), args.seconds, args.stable), (Some("config"), 5, true));
        assert_eq!(parsed(&[]).unwrap().seconds, SECONDS);
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_be() {
        for (words, expected) in [
            (&["nonsense"][..], "store-url"),
            (&["config", "table"], "'table'"),
            (&["--seconds"], "a value is required"),
            (&["--seconds", "0"], "'0' for '--seconds <N>': give a whole number of seconds from 1 to 604800"),
            (&["--seed", "abc"], "'abc' for '--seed <N>': a seed is a whole number"),
            (&["--input", "file"], "TARGET"),
            (&["config", "--input", "file", "--seed", "1"], "cannot be used with"),
            (&["--fast"], "'--fast'"),
        ] {
            let said = parsed(words).expect_err("it makes no sense");
            assert!(said.contains(expected), "{words:?}: {said}");
        }
    }
}
