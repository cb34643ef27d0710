//! Reads what a test program printed: counts, names of failed tests, and what must not be overlooked.
//!
//! A failure is anything that is not a test that ran and passed: a failed test, an ignored one, one that was filtered out, a test
//! program that ended without a result, and one that failed although its tests did not.

/// Tests, of one program or of all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// How many ran and passed.
    pub(crate) passed: u64,
    /// What else there was, by name.
    pub(crate) failures: Vec<Failure>,
}

/// Something that is not a test that ran and passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What people are shown.
    pub(crate) words: String,
    /// The test program and the test, where one test ran and failed.
    pub(crate) test: Option<(String, String)>,
}

impl Failure {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), test: None }
    }

    fn of_test(program: &str, test: &str) -> Self {
        Self { words: format!("{program}: {test}"), test: Some((program.to_owned(), test.to_owned())) }
    }
}

impl Outcome {
    /// A check that is no test program: passed, or failed with these words.
    pub(crate) fn check(&mut self, passed: bool, words: &str) {
        if passed {
            self.passed += 1;
        } else {
            self.failures.push(Failure::new(words));
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
    }
}

/// Judges a test program by what it printed and how it ended: nothing if that was well, else words.
pub(crate) fn judge(name: &str, output: &str, ended: Option<&str>) -> Outcome {
    let lines = || output.lines().map(str::trim_start);
    // The last one is its own: a test may show what another program printed.
    let Some(result) = lines().filter_map(|line| line.strip_prefix("test result: ")).next_back() else {
        let how = ended.map_or_else(String::new, |how| format!(": {how}"));
        return Outcome {
            passed: 0,
            failures: vec![Failure::new(format!("{name} ended without a result{how}"))],
        };
    };
    let tests = |how: &str| -> Vec<&str> {
        let tests = lines().filter_map(|line| line.strip_prefix("test ")?.rsplit_once(" ... "));
        tests.filter(|(_, ended)| ended.starts_with(how)).map(|(test, _)| test).collect()
    };
    let [passed, failed, ignored, filtered] =
        ["passed", "failed", "ignored", "filtered out"].map(|what| count(result, what));
    let (failed_by_name, ignored_by_name) = (tests("FAILED"), tests("ignored"));
    let mut failures: Vec<Failure> = failed_by_name.iter().map(|test| Failure::of_test(name, test)).collect();
    // The counts decide: a test whose line was torn by the output of another is still counted.
    let mut more = |number: u64, named: usize, words: &str| {
        let unnamed = number.saturating_sub(named as u64);
        failures.extend((0..unnamed).map(|_| Failure::new(format!("{name}: {words}"))));
    };
    more(failed, failed_by_name.len(), "a test whose name is above");
    more(ignored, ignored_by_name.len(), "a test is ignored");
    more(filtered, 0, "a test was filtered out");
    failures.extend(ignored_by_name.iter().map(|test| Failure::new(format!("{name}: {test} is ignored"))));
    if let (Some(how), true) = (ended, failures.is_empty()) {
        failures.push(Failure::new(format!("{name} failed although its tests did not: {how}")));
    }
    Outcome { passed, failures }
}

/// What to show of a program that failed: from the heading of the failures on, or the end of what there is.
pub(crate) fn details(output: &str) -> String {
    /// Lines of a program that has no such heading.
    const LAST: usize = 60;
    let lines: Vec<&str> = output.lines().collect();
    let heading = lines.iter().position(|line| *line == "failures:");
    lines[heading.unwrap_or(lines.len().saturating_sub(LAST))..].join("\n")
}

/// Examples in the documentation of several libraries, as `cargo test --doc` prints them: those of one library may be run in several
/// parts, each with a result of its own.
pub(crate) fn judge_documentation(output: &str, ended: Option<&str>) -> Outcome {
    let mut all = Outcome::default();
    let mut libraries: Vec<(String, String)> = Vec::new();
    for line in output.lines() {
        // Cargo indents its words; a test that prints the same words does not.
        let heading = line.trim_start().strip_prefix("Doc-tests ").filter(|_| line.starts_with(' '));
        match (heading, libraries.last_mut()) {
            (Some(library), _) => libraries.push((format!("{library} (documentation)"), String::new())),
            (None, Some((_, text))) => *text = format!("{text}{line}\n"),
            (None, None) => {}
        }
    }
    for (name, text) in &libraries {
        let results = text.match_indices("\ntest result: ").map(|(at, _)| at + 1);
        let ends: Vec<usize> =
            results.map(|at| text[at..].find('\n').map_or(text.len(), |end| at + end)).collect();
        let begins = std::iter::once(0).chain(ends.iter().copied());
        let parts: Vec<Outcome> =
            begins.zip(&ends).map(|(begin, end)| judge(name, &text[begin..*end], None)).collect();
        if parts.is_empty() {
            all.add(judge(name, text, None));
        }
        parts.into_iter().for_each(|part| all.add(part));
    }
    if libraries.is_empty() {
        all.failures.push(Failure::new("no example of the documentation ran"));
    } else if let (Some(how), true) = (ended, all.failures.is_empty()) {
        all.failures.push(Failure::new(format!("cargo test --doc itself failed: {how}")));
    }
    all
}

/// How many tests passed in all programs that `cargo test` has run.
pub(crate) fn passed(output: &str) -> u64 {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test result: "))
        .map(|result| count(result, "passed"))
        .sum()
}

/// The number before a word in `3 passed; 1 failed; ...`.
fn count(result: &str, what: &str) -> u64 {
    let part = result.split(['.', ';']).map(str::trim).find_map(|part| part.strip_suffix(what));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod unit {
    use super::*;

    const GOOD: &str = "
running 2 tests
test one ... ok
test two ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

";
    const FAILED: Option<&str> = Some("exit status: 101");

    fn words(outcome: &Outcome) -> Vec<&str> {
        outcome.failures.iter().map(|failure| failure.words.as_str()).collect()
    }

    #[test]
    fn tests_that_passed_are_counted() {
        assert_eq!(judge("a", GOOD, None), Outcome { passed: 2, failures: Vec::new() });
    }

    #[test]
    fn a_filter_that_matches_no_test_has_passed_nothing() {
        let none = GOOD.replace("2 passed", "0 passed").replace("0 filtered", "2 filtered");
        assert_eq!([passed(&none), passed(&format!("{GOOD}{none}{GOOD}"))], [0, 4]);
    }

    #[test]
    fn a_failed_test_is_named() {
        let bad = GOOD.replace("test two ... ok", "test two ... FAILED");
        let bad = bad.replace("ok. 2 passed; 0 failed", "FAILED. 1 passed; 1 failed");
        let outcome = judge("a", &bad, FAILED);
        assert_eq!((outcome.passed, words(&outcome)), (1, vec!["a: two"]));
        assert_eq!(outcome.failures[0].test, Some(("a".into(), "two".into())));
    }

    #[test]
    fn a_failed_test_whose_line_was_torn_is_counted() {
        let bad = GOOD.replace("ok. 2 passed; 0 failed", "FAILED. 1 passed; 1 failed");
        assert_eq!(words(&judge("a", &bad, FAILED)), ["a: a test whose name is above"]);
    }

    #[test]
    fn an_ignored_test_is_a_failure() {
        let bad = GOOD.replace("2 passed; 0 failed; 0 ignored", "1 passed; 0 failed; 1 ignored");
        assert_eq!(words(&judge("a", &bad, None)), ["a: a test is ignored"]);
        let named = bad.replace("test two ... ok", "test two ... ignored, slow");
        assert_eq!(words(&judge("a", &named, None)), ["a: two is ignored"]);
    }

    #[test]
    fn a_test_that_was_filtered_out_is_a_failure() {
        let bad = GOOD.replace("0 filtered out", "1 filtered out");
        assert_eq!(words(&judge("a", &bad, None)), ["a: a test was filtered out"]);
    }

    #[test]
    fn a_program_that_ended_without_a_result_is_a_failure() {
        let (bad, _) = GOOD.split_once("test result").unwrap();
        assert_eq!(words(&judge("a", bad, None)), ["a ended without a result"]);
        assert_eq!(words(&judge("a", bad, Some("signal: 9"))), ["a ended without a result: signal: 9"]);
    }

    #[test]
    fn a_program_that_fails_after_a_good_result_is_a_failure() {
        let said = judge("a", GOOD, FAILED);
        assert_eq!(words(&said), ["a failed although its tests did not: exit status: 101"]);
    }

    #[test]
    fn the_result_of_a_program_that_a_test_shows_is_not_its_own() {
        let shown = GOOD.replace("test two", "test result: FAILED. 0 passed; 7 failed\ntest two");
        assert_eq!(judge("a", &shown, None), Outcome { passed: 2, failures: Vec::new() });
    }

    #[test]
    fn a_failed_test_is_shown_with_what_it_printed_and_a_dead_program_with_its_end() {
        let text = "test bad ... FAILED\n\nfailures:\n\n---- bad stdout ----\nleft is not right\n";
        assert!(details(text).starts_with("failures:") && details(text).contains("left is not right"));
        assert_eq!(details("one\ntwo"), "one\ntwo");
    }

    #[test]
    fn examples_of_all_libraries_and_all_their_parts_are_added_up() {
        let text = format!("   Compiling a\n   Doc-tests a\n{GOOD}{GOOD}   Doc-tests b\n{GOOD}");
        assert_eq!(judge_documentation(&text, None), Outcome { passed: 6, failures: Vec::new() });
        let cut = format!("   Doc-tests a\n{GOOD}   Doc-tests b\nrunning 1 test\n");
        assert_eq!(words(&judge_documentation(&cut, FAILED)), ["b (documentation) ended without a result"]);
        assert_eq!(
            words(&judge_documentation("error: no\n", FAILED)),
            ["no example of the documentation ran"]
        );
        let text = format!("   Doc-tests a\n{GOOD}");
        assert_eq!(
            words(&judge_documentation(&text, FAILED)),
            ["cargo test --doc itself failed: exit status: 101"]
        );
    }
}
