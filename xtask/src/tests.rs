//! Every test of the workspace, with one line of progress for each test program.

use std::io::{BufRead, BufReader};

use std::process::Command;

use anyhow::{Context, Result};

use crate::packages;
use crate::report::Report;
use crate::run::{cargo, root};
use crate::schemathesis;
use crate::simulate;

/// Building and running everything takes a quarter of an hour on two cores. A test that hangs must not hang whoever waits for all.
const TIME_LIMIT: &str = "32m";
/// What `timeout` leaves then.
const TIMED_OUT: i32 = 124;

/// Runs every test and prints the outcome. Says whether all passed.
pub(crate) fn run() -> Result<bool> {
    packages::install_missing()?;
    let schemathesis = schemathesis::install()?;
    println!("==> tests: cargo test --workspace --no-fail-fast");
    // Cargo names each test program on one stream and the program reports on the other: together they keep their order.
    let (reader, writer) = std::io::pipe().context("no pipe for the output of the tests")?;
    let mut command = Command::new("timeout");
    command.current_dir(root()).args(["--kill-after=10s", TIME_LIMIT]).arg(cargo().get_program());
    command.args(["test", "--workspace", "--no-fail-fast"]).env(schemathesis::VARIABLE, schemathesis);
    command.stdout(writer.try_clone().context("no second end of the pipe")?).stderr(writer);
    let mut child = command.spawn().context("cargo test does not start")?;
    // Without this the pipe never ends: the command keeps its ends of it.
    drop(command);
    let mut report = Report::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("the output of the tests cannot be read")?;
        if let Some(shown) = report.line(&String::from_utf8_lossy(&line)) {
            println!("{shown}");
        }
    }
    let status = child.wait().context("cargo test was lost")?;
    if status.code() == Some(TIMED_OUT) {
        println!("the tests were ended after {TIME_LIMIT}");
    }
    let mut outcome = report.finish(status.success());
    let (campaign, kept) = simulate::short();
    match kept {
        Ok(()) => outcome.passed += 1,
        Err(why) => outcome.failures.push(format!("{campaign}: {why:#}")),
    }
    println!();
    for failure in &outcome.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed", outcome.passed, outcome.failures.len());
    Ok(outcome.failures.is_empty())
}
