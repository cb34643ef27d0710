//! Bytes that nobody meant to send, for every decoder: by libFuzzer where there is a nightly toolchain, by the stable fuzzer else.
//!
//! `fuzz` is a workspace of its own. Nothing but libFuzzer itself needs a nightly toolchain, and no test does: `cargo xtask test` runs the
//! stable fuzzer for a few seconds a target.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::run::{cargo, exists, root, step, target_directory};

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

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    target: Option<&'a str>,
    seconds: u64,
    seed: Option<&'a str>,
    input: Option<&'a str>,
    stable: bool,
}

/// Tries one target or all of them. Says whether nothing was found.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let wanted = Wanted::parse(words)?;
    let stable = build()?;
    if let Some(input) = wanted.input {
        let name = wanted.target.context("an input needs the target that it is for")?;
        // Seen from where the command was given.
        let input = std::env::current_dir().unwrap_or_default().join(input);
        return tried(Command::new(stable).args([name, "--input"]).arg(input));
    }
    let all = names(&stable)?;
    let targets: Vec<&str> = match wanted.target {
        Some(name) if !all.iter().any(|known| known == name) => {
            bail!("there is no target {name:?}; there are {}", all.join(", "))
        }
        Some(name) => vec![name],
        None => all.iter().map(String::as_str).collect(),
    };
    let nightly = if wanted.stable || wanted.seed.is_some() {
        Err("it was asked for".to_owned())
    } else {
        Nightly::find()
    };
    let mut fine = true;
    match nightly {
        Ok(nightly) => {
            println!("==> libFuzzer on the nightly toolchain, {} s a target", wanted.seconds);
            nightly.build()?;
            step("seeds", Command::new(&stable).arg("--write-seeds").arg(corpora()))?;
            for name in targets {
                fine &= nightly.run(name, wanted.seconds)?;
            }
        }
        Err(why) => {
            println!("==> the stable fuzzer, {} s a target: {why}", wanted.seconds);
            let found = target_directory().join("fuzz");
            for name in targets {
                let mut fuzzer = Command::new(&stable);
                fuzzer.args([name, "--seconds", &wanted.seconds.to_string()]);
                fuzzer.env("LEASEHOLD_FUZZ_DIRECTORY", &found);
                if let Some(seed) = wanted.seed {
                    fuzzer.args(["--seed", seed]);
                }
                fine &= tried(&mut fuzzer)?;
            }
        }
    }
    Ok(fine)
}

/// The tests of `fuzz`, which are no part of the workspace: every decoder for a few seconds.
pub(crate) fn tests() -> Command {
    let mut command = cargo();
    command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast", "--target-dir"]);
    command.arg(target_directory());
    command
}

impl<'a> Wanted<'a> {
    fn parse(words: &[&'a str]) -> Result<Self> {
        let mut wanted = Self { target: None, seconds: SECONDS, seed: None, input: None, stable: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().copied().with_context(|| format!("{word} needs a value"));
            match *word {
                "--seconds" => {
                    let seconds = value()?;
                    let number = seconds.parse().ok().filter(|seconds| *seconds > 0);
                    wanted.seconds =
                        number.with_context(|| format!("{seconds:?} is no number of seconds"))?;
                }
                "--seed" => wanted.seed = Some(value()?),
                "--input" => wanted.input = Some(value()?),
                "--stable" => wanted.stable = true,
                name if !name.starts_with('-') && wanted.target.is_none() => wanted.target = Some(name),
                other => bail!("{other:?} is not TARGET, --seconds N, --seed N, --input FILE or --stable"),
            }
        }
        Ok(wanted)
    }
}

/// Builds the stable fuzzer, which also knows the targets and their seeds.
fn build() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--bin", "stable", "--target-dir"]);
    step("targets", build.arg(target_directory()))?;
    Ok(target_directory().join("debug/stable"))
}

fn names(stable: &Path) -> Result<Vec<String>> {
    let output = Command::new(stable).arg("--list").output().context("the stable fuzzer does not start")?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
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

    #[test]
    fn a_target_and_its_time_are_read() {
        let wanted = Wanted::parse(&["config", "--seconds", "5", "--stable"]).unwrap();
        let expected = Wanted { target: Some("config"), seconds: 5, seed: None, input: None, stable: true };
        assert_eq!(wanted, expected);
        assert_eq!(Wanted::parse(&[]).unwrap().seconds, SECONDS);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [&["a", "b"][..], &["--seconds"], &["--seconds", "0"], &["--seconds", "x"], &["--fast"]]
        {
            assert!(Wanted::parse(words).is_err(), "{words:?}");
        }
    }
}
