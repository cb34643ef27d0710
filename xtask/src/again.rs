//! A second try, alone, for tests that race the clock of the machine.
//!
//! A test with real processes and real deadlines can fail because the machine was busy with everything else. Such a test is run once
//! more when nothing else runs. If it passes then, it counts as passed and is named above the result, so that whoever reads it sees
//! what fails under load. Tests that a busy machine cannot disturb have no second try, and neither have many failures at once.

use std::process::Command;

use anyhow::{Context, Result};

use crate::report::{Failure, Outcome};
use crate::run::{cargo, root};

/// Test programs with real processes, sockets and deadlines.
const AGAINST_THE_CLOCK: [&str; 18] = [
    "cli",
    "cluster",
    "embedded",
    "examples",
    "files",
    "grpc",
    "guardian",
    "holder",
    "http",
    "idle",
    "metrics",
    "promises",
    "quick",
    "reading",
    "serve",
    "served",
    "service",
    "transcripts",
];
/// More failures than this are no accident.
const MOST: usize = 3;
const TIME_LIMIT: &str = "5m";

/// Runs what may have a second try as it was run among the others, and moves what passes to the passed. Gives back its names.
pub(crate) fn run_alone(among_others: &Command, outcome: &mut Outcome) -> Result<Vec<String>> {
    if !may_try(&outcome.failures) {
        return Ok(Vec::new());
    }
    let mut passed = Vec::new();
    for (failure, program, test) in outcome.failures.iter().filter_map(racing) {
        println!("==> alone: {}", failure.words);
        let mut alone = Command::new("timeout");
        alone.current_dir(root()).args(["--kill-after=10s", TIME_LIMIT]).arg(cargo().get_program());
        alone.args(["test", "--workspace", "--test", program, "--", "--exact", test]);
        // What tells it where its servers are.
        alone.envs(among_others.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = alone.output().context("cargo test does not start")?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        // A name that fits no test would succeed as well.
        if output.status.success() && text.contains("test result: ok. 1 passed") {
            passed.push(failure.words.clone());
        }
    }
    outcome.failures.retain(|failure| !passed.contains(&failure.words));
    outcome.passed += passed.len() as u64;
    Ok(passed)
}

fn may_try(failures: &[Failure]) -> bool {
    failures.len() <= MOST && failures.iter().all(|failure| racing(failure).is_some())
}

/// The failure with its program and its test, if that test races the clock.
fn racing(failure: &Failure) -> Option<(&Failure, &str, &str)> {
    let (program, test) = failure.test.as_ref()?;
    AGAINST_THE_CLOCK.contains(&program.as_str()).then_some((failure, program, test))
}

#[cfg(test)]
mod unit {
    use super::*;

    fn failed(program: &str) -> Failure {
        Failure { words: program.into(), test: Some((program.into(), "a::test".into())) }
    }

    #[test]
    fn only_tests_that_race_the_clock_are_tried_again() {
        assert!(may_try(&[failed("promises"), failed("grpc")]));
        assert!(!may_try(&[failed("promises"), failed("worlds")]));
        assert!(!may_try(&[Failure { words: "promises ended without a result".into(), test: None }]));
    }

    #[test]
    fn many_failures_are_no_accident() {
        assert!(may_try(&vec![failed("cluster"); MOST]));
        assert!(!may_try(&vec![failed("cluster"); MOST + 1]));
    }
}
