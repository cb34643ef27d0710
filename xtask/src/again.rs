//! A second try, alone, for tests that are known to race the clock of the machine.
//!
//! A test with real processes and real deadlines can fail because the machine was busy with everything else. Such a test stands in a list until
//! it is mended, and is run once more when nothing else runs. If it passes then, it counts as passed and is named above the result. Other
//! tests have no second try, and neither have many failures at once.

use std::process::Command;

use anyhow::Result;

use crate::programs::Program;
use crate::report::{Outcome, judge};
use crate::side_by_side::captured;

/// Programs and tests, each with the reason. The list only shrinks.
const KNOWN: [(&str, &str); 0] = [];
/// More failures than this are no accident.
const MOST: usize = 3;
const SECONDS: u64 = 300;

/// Runs what may have a second try, and moves what passes to the passed. Gives back its names.
pub(crate) fn run_alone(
    programs: &[Program],
    prepare: impl Fn(&mut Command),
    outcome: &mut Outcome,
) -> Result<Vec<String>> {
    let mut passed = Vec::new();
    if !may_try(&KNOWN, outcome) {
        return Ok(passed);
    }
    for failure in &outcome.failures {
        let Some((name, test)) = &failure.test else { continue };
        let Some(program) = programs.iter().find(|program| program.name == *name) else { continue };
        println!("==> alone: {}", failure.words);
        let mut alone = program.command();
        prepare(alone.args(["--exact", test]));
        let (output, ended) = captured(&alone, SECONDS)?;
        print!("{output}");
        // A name that fits no test would succeed as well.
        if ended.is_none() && judge(name, &output, None).passed == 1 {
            passed.push(failure.words.clone());
        }
    }
    outcome.failures.retain(|failure| !passed.contains(&failure.words));
    outcome.passed += passed.len() as u64;
    Ok(passed)
}

fn may_try(known: &[(&str, &str)], outcome: &Outcome) -> bool {
    let is_known = |test: &Option<(String, String)>| {
        test.as_ref().is_some_and(|(program, test)| known.contains(&(program.as_str(), test.as_str())))
    };
    let failures = &outcome.failures;
    !failures.is_empty() && failures.len() <= MOST && failures.iter().all(|failure| is_known(&failure.test))
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::report::Failure;

    const LIST: [(&str, &str); 2] = [("a.rs", "one"), ("a.rs", "two")];

    fn failed(tests: &[&str]) -> Outcome {
        let failure =
            |test: &&str| Failure { words: (*test).into(), test: Some(("a.rs".into(), (*test).into())) };
        Outcome { passed: 0, failures: tests.iter().map(failure).collect() }
    }

    #[test]
    fn only_tests_of_the_list_are_tried_again() {
        assert!(may_try(&LIST, &failed(&["one", "two"])));
        assert!(!may_try(&LIST, &failed(&["one", "three"])));
        let without_result =
            Outcome { passed: 0, failures: vec![Failure::new("a.rs ended without a result")] };
        assert!(!may_try(&LIST, &without_result) && !may_try(&LIST, &failed(&[])));
    }

    #[test]
    fn many_failures_are_no_accident() {
        assert!(may_try(&LIST, &failed(&["one"; MOST])));
        assert!(!may_try(&LIST, &failed(&["one"; MOST + 1])));
    }
}
