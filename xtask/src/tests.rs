//! Every test of the workspace, and of the decoders beside it, with one line of progress for each test program.

use std::io::{BufRead, BufReader};
use std::process::Command;

use anyhow::{Context, Result};

use crate::again;
use crate::fuzz;
use crate::instructions;
use crate::packages;
use crate::prometheus;
use crate::receivers;
use crate::report::{Failure, Report};
use crate::room;
use crate::run::{cargo, root};
use crate::schemathesis;
use crate::simulate;

/// Building and running everything takes half an hour on two cores. A test that hangs must not hang whoever waits for all.
const TIME_LIMIT: &str = "60m";
/// Every decoder for a few seconds, and building what is tried.
const FUZZ_TIME_LIMIT: &str = "12m";
/// What `timeout` leaves then.
const TIMED_OUT: i32 = 124;

/// Runs every test and prints the outcome. Says whether all passed.
pub(crate) fn run() -> Result<bool> {
    room::check()?;
    packages::install_missing()?;
    let schemathesis = schemathesis::install()?;
    let prometheus = prometheus::install()?;
    let receivers = receivers::install()?;
    let mut report = Report::default();
    let mut workspace = cargo();
    workspace.args(["test", "--workspace", "--no-fail-fast"]).env(schemathesis::VARIABLE, schemathesis);
    workspace.env(prometheus::VARIABLE, prometheus).env(receivers::VARIABLE, receivers);
    let mut succeeded = take_in(&workspace, TIME_LIMIT, &mut report)?;
    // A workspace of its own, and no less a part of the tests.
    succeeded &= take_in(&fuzz::tests(), FUZZ_TIME_LIMIT, &mut report)?;
    let mut outcome = report.finish(succeeded);
    let passed_alone = again::run_alone(&workspace, &mut outcome)?;
    if instructions::run()? {
        outcome.passed += 1;
    } else {
        outcome.failures.push(Failure::new("instructions: an operation takes too many; the count is above"));
    }
    if simulate::fresh()? {
        outcome.passed += 1;
    } else {
        outcome.failures.push(Failure::new("fresh worlds: a promise was not kept; the seed is above"));
    }
    println!();
    for test in passed_alone {
        println!("failed among the others, passed alone: {test}");
    }
    for failure in &outcome.failures {
        println!("failed: {}", failure.words);
    }
    println!("{} passed, {} failed", outcome.passed, outcome.failures.len());
    Ok(outcome.failures.is_empty())
}

/// Runs a command of cargo and gives its output to the report, with a line of progress for each test program. Says whether it succeeded.
fn take_in(tests: &Command, limit: &str, report: &mut Report) -> Result<bool> {
    println!("==> tests: cargo {}", in_words(tests));
    // Cargo names each test program on one stream and the program reports on the other: together they keep their order.
    let (reader, writer) = std::io::pipe().context("no pipe for the output of the tests")?;
    let mut command = Command::new("timeout");
    command
        .current_dir(root())
        .args(["--kill-after=10s", limit])
        .arg(tests.get_program())
        .args(tests.get_args());
    command.envs(tests.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(writer.try_clone().context("no second end of the pipe")?).stderr(writer);
    let mut child = command.spawn().context("cargo test does not start")?;
    // Without this the pipe never ends: the command keeps its ends of it.
    drop(command);
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("the output of the tests cannot be read")?;
        if let Some(shown) = report.line(&String::from_utf8_lossy(&line)) {
            println!("{shown}");
        }
    }
    let status = child.wait().context("cargo test was lost")?;
    if status.code() == Some(TIMED_OUT) {
        println!("the tests were ended after {limit}");
    }
    Ok(status.success())
}

fn in_words(command: &Command) -> String {
    command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
