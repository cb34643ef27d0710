//! Runs every check of the project: `cargo xtask ci` is everything that must pass before a change is taken, `cargo xtask test` the
//! tests of it, and `cargo xtask test --everything` all that there is.
//!
//! Promises: nothing is skipped in silence (an ignored test counts as a failure, and what was not run is named). Every step says what it took. Where
//! the tests were reached, the last line is `N passed, N failed`; the exit code agrees with it. `--help` of every command answers,
//! and a command line that makes no sense is refused, before anything is built.
//!
//! What it deliberately does not do: it has no settings, and it changes nothing outside the target directory, except that it
//! installs a Debian package for a program that the tests need and that is missing, if it may.

mod again;
mod bench;
mod checks;
mod clock;
mod deny;
mod fuzz;
mod go;
mod hashes;
mod instructions;
mod maven;
mod nemesis;
mod packages;
mod planted;
mod programs;
mod prometheus;
mod python;
mod receivers;
mod report;
mod room;
mod run;
mod schemathesis;
mod scope;
mod side_by_side;
mod simulate;
mod size;
mod soak;
mod staged;
mod steps;
mod tests;
mod unpack;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use scope::Scope;

/// Runs every check of the project
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", max_term_width = 120, arg_required_else_help = true)]
struct Words {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Install what the tests need and run them; ends with `N passed, N failed`
    Test(tests::Args),
    /// Formatting, lints and documentation, then the tests
    Ci,
    /// Lines per crate, words of documentation, packages, size of the binary
    Size(size::Args),
    /// Only install the servers that the fence is tested with, so that single tests can be run by hand
    Receivers,
    /// Simulated worlds under faults, with fresh seeds or one: `simulate --minutes N`, `simulate --seed N --trace`
    Simulate(Box<simulate::Args>),
    /// The same seeds in several profiles: optimising must not change a simulated world
    Hashes(hashes::Args),
    /// Put every known bug back; the simulator has to find it
    PlantedBugs(planted::Args),
    /// Bytes that nobody meant to send, for every decoder
    Fuzz(fuzz::Args),
    /// A cluster of real processes under faults: `nemesis NAME`
    Nemesis(nemesis::Args),
    /// Count the instructions of a node's operations; none may take many more than it did
    Instructions,
    /// Mixed load on a service; memory and descriptors must stay flat
    Soak(soak::Args),
    /// Leasehold and its peers under the same load, in one run: `bench --peers etcd,redis --workloads A,B`
    Bench(bench::Args),
    /// Rolling deploys of real processes, measured, or an incident that `leasehold gaps` must explain: `staged deploys`, `staged gap`
    Staged(staged::Args),
}

fn main() -> ExitCode {
    let words = Words::parse();
    let done = match words.task {
        Task::Test(args) => tests::run(args.scope()),
        Task::Ci => room::check().and_then(|()| checks::run()).and_then(|()| tests::run(Scope::Short)),
        Task::Hashes(args) => hashes::run(&args),
        Task::Size(args) => size::run(&args),
        Task::Receivers => receivers::install(Scope::Everything).map(|place| {
            println!("==> {}={}", receivers::VARIABLE, place.display());
            true
        }),
        Task::Simulate(args) => simulate::run(&args, &rest()),
        Task::PlantedBugs(args) => planted::run(&args),
        Task::Fuzz(args) => fuzz::run(&args),
        Task::Nemesis(args) => nemesis::run(&args, &rest()),
        Task::Instructions => instructions::run(),
        Task::Soak(args) => soak::run(&args),
        Task::Bench(args) => bench::run(&args),
        Task::Staged(args) => staged::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The words behind the name of the task, for a program that understands the same ones.
fn rest() -> Vec<String> {
    std::env::args().skip(2).collect()
}

#[cfg(test)]
mod unit {
    use super::*;
    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    fn refused(words: &[&str]) -> clap::Error {
        let words = std::iter::once("xtask").chain(words.iter().copied());
        Words::try_parse_from(words).expect_err("it is no task")
    }

    #[test]
    fn the_command_line_is_sound() {
        Words::command().debug_assert();
    }

    #[test]
    fn every_task_has_help_by_itself() {
        for task in [
            "test",
            "ci",
            "receivers",
            "size",
            "hashes",
            "simulate",
            "planted-bugs",
            "fuzz",
            "nemesis",
            "instructions",
            "soak",
            "bench",
            "staged",
        ] {
            for words in [[task, "--help"], ["help", task]] {
                let help = refused(&words);
                assert_eq!(help.kind(), ErrorKind::DisplayHelp, "{words:?}");
                assert!(help.to_string().contains(&format!("cargo xtask {task}")), "{help}");
            }
        }
    }

    #[test]
    fn an_unknown_task_is_named() {
        let said = refused(&["simulat"]).to_string();
        assert!(said.contains("'simulat'") && said.contains("'simulate'"), "{said}");
    }
}
