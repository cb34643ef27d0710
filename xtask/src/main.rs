//! Runs every check of the project: `cargo xtask test` is every test, `cargo xtask ci` is everything that must pass before a
//! change is taken.
//!
//! Promises: nothing is skipped in silence (an ignored test counts as a failure, and a check that could not run is named). Where
//! the tests were reached, the last line is `N passed, N failed`; the exit code agrees with it.
//!
//! What it deliberately does not do: it has no settings, and it changes nothing outside the target directory, except that it
//! installs a Debian package for a program that the tests need and that is missing, if it may.

mod again;
mod checks;
mod deny;
mod fuzz;
mod nemesis;
mod packages;
mod planted;
mod report;
mod run;
mod schemathesis;
mod simulate;
mod soak;
mod tests;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test    installs what the tests need and runs every test; ends with `N passed, N failed`
  soak    mixed load on a service for an hour, or `soak MINUTES`; memory and descriptors must stay flat
  nemesis a cluster of real processes under faults: `nemesis NAME [--seed N] [--quick]`, `nemesis --help` lists the names
  simulate simulated worlds with fresh seeds: `simulate --minutes N [--threads T]`, or one: `simulate --seed N --trace`
  planted-bugs   every known bug is put back, and the simulator has to find it: `planted-bugs [--bug NAME] [--minutes-each M]`;
          all without names, with `--continue` only those that have no row in the table yet
  fuzz    bytes that nobody meant to send, for every decoder: `fuzz [TARGET] [--seconds N]`, `fuzz TARGET --input FILE` tries one again
  ci      formatting, lints, documentation and dependencies, then `test`";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["test"] => tests::run(),
        ["soak"] => soak::run("60"),
        ["soak", minutes] => soak::run(minutes),
        ["nemesis", ref words @ ..] if !words.is_empty() => nemesis::run(words),
        ["simulate", ref words @ ..] if !words.is_empty() => simulate::run(words),
        ["planted-bugs", ref words @ ..] => planted::run(words),
        ["fuzz", ref words @ ..] => fuzz::run(words),
        ["ci"] => checks::run().and_then(|()| tests::run()),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
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
