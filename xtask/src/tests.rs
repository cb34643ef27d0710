//! Every test of the workspace, with one line of progress for each test program.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::programs;
use crate::report::{Failure, Outcome, details, judge_documentation};
use crate::run::{cargo, in_words, target_directory};
use crate::scope::{ON_JAVA, Scope};
use crate::steps::{self, timed};
use crate::{
    again, deny, hashes, instructions, nemesis, packages, prometheus, receivers, room, schemathesis,
    side_by_side, simulate,
};

/// Tests and what else `test` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also what takes long or needs Java; the end of a run without this lists it
    #[arg(long)]
    everything: bool,
}

impl Args {
    pub(crate) fn scope(&self) -> Scope {
        if self.everything { Scope::Everything } else { Scope::Short }
    }
}

/// Tells tests of the harness where the program is that was built with them.
const PROGRAM: &str = "LEASEHOLD_PROGRAM";
/// Tells tests of the documentation where the program is that has no features.
const DEFAULT_PROGRAM: &str = "LEASEHOLD_DEFAULT_PROGRAM";
/// Examples in the documentation are compiled one after the other.
const DOCUMENTATION_SECONDS: u64 = 900;

/// Runs every test and prints the outcome. Says whether all passed.
pub(crate) fn run(scope: Scope) -> Result<bool> {
    room::check()?;
    packages::install_missing()?;
    let servers = [
        (schemathesis::VARIABLE, schemathesis::install()?),
        (prometheus::VARIABLE, prometheus::install()?),
        (receivers::VARIABLE, receivers::install(scope)?),
    ];
    let mut outcome = Outcome::default();
    let prepare = |command: &mut Command| {
        command.envs(servers.iter().map(|(name, value)| (name, value))).envs(scope.told());
    };
    let passed_alone = workspace(scope, prepare, &mut outcome)?;
    let documentation = documentation(scope, prepare)?;
    outcome.add(documentation);
    outcome.check(instructions::run()?, "instructions: an operation takes too many; the count is above");
    outcome.check(simulate::fresh()?, "fresh worlds: a promise was not kept; the seed is above");
    let not_checked = if scope == Scope::Everything { everything(prepare, &mut outcome)? } else { None };
    println!();
    for test in passed_alone {
        println!("failed among the others, passed alone: {test}");
    }
    for failure in &outcome.failures {
        println!("failed: {}", failure.words);
    }
    if let Some(what) = not_checked {
        println!("NOT CHECKED: {what}");
    }
    scope.print();
    steps::print();
    println!("{} passed, {} failed", outcome.passed, outcome.failures.len());
    Ok(outcome.failures.is_empty())
}

/// The test programs, and what needs other programs that are built with them. Gives back what passed at its second try only.
fn workspace(
    scope: Scope,
    prepare: impl Fn(&mut Command) + Sync,
    outcome: &mut Outcome,
) -> Result<Vec<String>> {
    let Some(built) = built("building the tests", &scope.tested(), outcome) else { return Ok(Vec::new()) };
    let told = told(&built, outcome);
    let prepare = |command: &mut Command| {
        prepare(command);
        command.envs(told.clone());
    };
    outcome.add(side_by_side::run(built.programs.clone(), prepare, simulate::build_ahead)?);
    let passed_alone = again::run_alone(&built.programs, prepare, outcome)?;
    match built.binaries.get("simulate") {
        Some(simulate) => {
            let same = hashes::compare(simulate, scope == Scope::Everything)?;
            outcome.check(same, "hashes: optimising changed a simulated world; its seed is above");
        }
        None => outcome.failures.push(Failure::new("hashes: the simulator was not built with the tests")),
    }
    Ok(passed_alone)
}

fn built(what: &str, words: &[String], outcome: &mut Outcome) -> Option<programs::Built> {
    judged(what, programs::build(what, words), outcome)
}

/// That test programs cannot be built, or that there are none, is a failure.
fn judged(what: &str, built: Result<programs::Built>, outcome: &mut Outcome) -> Option<programs::Built> {
    match built {
        Ok(built) if !built.programs.is_empty() => return Some(built),
        Ok(_) => outcome.failures.push(Failure::new(format!("{what}: there are none"))),
        Err(error) => outcome.failures.push(Failure::new(format!("{error:#}"))),
    }
    None
}

/// Where tests find the command: as it was built with them, and without features, which is built here.
fn told(built: &programs::Built, outcome: &mut Outcome) -> Vec<(&'static str, PathBuf)> {
    let Some(program) = built.binaries.get("leasehold") else { return Vec::new() };
    let mut told = vec![(PROGRAM, program.clone())];
    match programs::default_program() {
        Ok(program) => told.push((DEFAULT_PROGRAM, program)),
        Err(error) => outcome.failures.push(Failure::new(format!("{error:#}"))),
    }
    told
}

/// Examples in the documentation of libraries.
fn documentation(scope: Scope, prepare: impl Fn(&mut Command)) -> Result<Outcome> {
    let mut tests = cargo();
    tests.args(["test", "--doc", "--no-fail-fast"]).args(scope.tested());
    prepare(&mut tests);
    let what = "examples in the documentation";
    println!("==> {what}: {}", in_words(&tests));
    let (output, ended) = timed(what, || side_by_side::captured(&tests, DOCUMENTATION_SECONDS))?;
    let outcome = judge_documentation(&output, ended.as_deref());
    if !outcome.failures.is_empty() {
        println!("{}", details(&output));
    }
    println!("{what}: {} passed, {} failed", outcome.passed, outcome.failures.len());
    Ok(outcome)
}

/// What the short run leaves out and is no test program of it. [`Scope`] lists it for people. Gives back what could not be checked.
fn everything(prepare: impl Fn(&mut Command) + Sync, outcome: &mut Outcome) -> Result<Option<&'static str>> {
    let mut lints = cargo();
    lints.arg("clippy").args(ON_JAVA.iter().flat_map(|package| ["--package", package]));
    lints.args(["--all-targets", "--", "-D", "warnings"]);
    outcome.check(crate::run::step("lints of fences on Java", &mut lints).is_ok(), "lints of fences on Java");
    let mut programs = |what: &str, words: &[String]| -> Result<()> {
        if let Some(built) = built(what, words, outcome) {
            let told = told(&built, outcome);
            let prepare = |command: &mut Command| {
                prepare(command);
                command.envs(told.clone());
            };
            outcome.add(side_by_side::run(built.programs, prepare, || Ok(()))?);
        }
        Ok(())
    };
    let target = target_directory().display().to_string();
    programs(
        "building the fuzzers",
        &["--manifest-path", "fuzz/Cargo.toml", "--target-dir", &target].map(str::to_owned),
    )?;
    programs(
        "building the tests in release",
        &[vec!["--release".to_owned()], Scope::Everything.tested()].concat(),
    )?;
    outcome.check(simulate::campaign()?, "ten minutes of simulated worlds: the verdict is above");
    outcome.check(nemesis::all()?, "nemesis: a scenario failed; its name is above");
    match deny::run() {
        Ok(not_checked) => {
            outcome.passed += 1;
            return Ok(not_checked);
        }
        Err(error) => outcome.failures.push(Failure::new(format!("cargo-deny: {error:#}"))),
    }
    Ok(None)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_build_that_broke_and_one_without_programs_are_failures() {
        let mut outcome = Outcome::default();
        assert!(
            judged("tests", Err(anyhow::anyhow!("tests failed: exit status: 101")), &mut outcome).is_none()
        );
        assert!(judged("tests", Ok(programs::Built::default()), &mut outcome).is_none());
        let words: Vec<&str> = outcome.failures.iter().map(|failure| failure.words.as_str()).collect();
        assert_eq!(words, ["tests failed: exit status: 101", "tests: there are none"]);
    }
}
