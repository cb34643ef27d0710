//! Reads what `cargo test` prints: counts, names of failed tests, and what must not be overlooked.
//!
//! A failure is anything that is not a test that ran and passed: a failed test, an ignored one, one that was filtered out, a test
//! program that ended without a result, and cargo itself failing without a failed test (a build that broke).

/// The tests so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u64,
    failures: Vec<Failure>,
    programs: u64,
    /// The test program that runs, if any, and what it has printed.
    running: Option<Running>,
}

/// All tests.
#[derive(Debug, PartialEq, Eq)]
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
        let target = program.split(' ').next().unwrap_or(program).to_owned();
        Self { words: format!("{program}: {test}"), test: Some((target, test.to_owned())) }
    }
}

#[derive(Debug)]
struct Running {
    name: String,
    failed: Vec<String>,
    ignored: Vec<String>,
    /// From the heading of the failures on: what is shown if there are any.
    details: Vec<String>,
}

impl Report {
    /// Takes in a line and gives back what to show of it.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let words = line.trim_start();
        if let Some(name) = program_name(line) {
            self.end_program();
            self.programs += 1;
            let (failed, ignored, details) = (Vec::new(), Vec::new(), Vec::new());
            self.running = Some(Running { name, failed, ignored, details });
            return None;
        }
        let Some(running) = &mut self.running else {
            return (!words.is_empty()).then(|| line.to_owned());
        };
        if let Some(result) = words.strip_prefix("test result: ") {
            return self.result(result);
        }
        match words.strip_prefix("test ").and_then(|test| test.rsplit_once(" ... ")) {
            Some((test, "FAILED")) => running.failed.push(test.to_owned()),
            Some((test, how)) if how.starts_with("ignored") => running.ignored.push(test.to_owned()),
            _ => {}
        }
        if words == "failures:" || !running.details.is_empty() || is_error(line) {
            running.details.push(line.to_owned());
        }
        None
    }

    /// The end of the output. Says what all of it comes to.
    pub(crate) fn finish(mut self, cargo_succeeded: bool) -> Outcome {
        self.end_program();
        if self.programs == 0 {
            self.failures.push(Failure::new("no test program ran"));
        } else if !cargo_succeeded && self.failures.is_empty() {
            self.failures.push(Failure::new("cargo test itself failed"));
        }
        Outcome { passed: self.passed, failures: self.failures }
    }

    /// The line with the counts: the program has told all it has to tell.
    fn result(&mut self, result: &str) -> Option<String> {
        let running = self.running.take().expect("a result is read only while a program runs");
        let [passed, failed, ignored, filtered] =
            ["passed", "failed", "ignored", "filtered out"].map(|what| count(result, what));
        self.passed += passed;
        let name = &running.name;
        self.failures.extend(running.failed.iter().map(|test| Failure::of_test(name, test)));
        let mut more: Vec<String> = Vec::new();
        // The counts decide: a test whose line was torn by the output of another is still counted.
        let unnamed = failed.saturating_sub(running.failed.len() as u64);
        more.extend((0..unnamed).map(|_| format!("{name}: a test whose name is above")));
        more.extend(running.ignored.iter().map(|test| format!("{name}: {test} is ignored")));
        let unnamed = ignored.saturating_sub(running.ignored.len() as u64);
        more.extend((0..unnamed).map(|_| format!("{name}: a test is ignored")));
        more.extend((0..filtered).map(|_| format!("{name}: a test was filtered out")));
        self.failures.extend(more.into_iter().map(Failure::new));
        let time = result.rsplit_once("finished in ").map_or("", |(_, time)| time);
        let summary = format!("{name}: {passed} passed, {failed} failed, {time}");
        if failed == 0 {
            return (passed + ignored + filtered > 0).then_some(summary);
        }
        let mut shown = running.details.join("\n");
        shown.push('\n');
        shown.push_str(&summary);
        Some(shown)
    }

    fn end_program(&mut self) {
        if let Some(running) = self.running.take() {
            for line in &running.details {
                println!("{line}");
            }
            self.failures.push(Failure::new(format!("{} ended without a result", running.name)));
        }
    }
}

/// The name of the test program that a line announces, if it does.
fn program_name(line: &str) -> Option<String> {
    let words = line.trim_start();
    // Cargo indents its words; a test that prints the same words does not.
    if words.len() == line.len() {
        return None;
    }
    if let Some(library) = words.strip_prefix("Doc-tests ") {
        return Some(format!("{library} (documentation)"));
    }
    let (source, program) = words.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let file = program.rsplit('/').next().unwrap_or(program);
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    Some(format!("{name} ({})", source.strip_prefix("unittests ").unwrap_or(source)))
}

/// Whether cargo says that something went wrong, as opposed to a test.
fn is_error(line: &str) -> bool {
    line.starts_with("error: ") || line.starts_with("Caused by:")
}

/// The number before a word in `3 passed; 1 failed; ...`.
fn count(result: &str, what: &str) -> u64 {
    let part = result.split(['.', ';']).map(str::trim).find_map(|part| part.strip_suffix(what));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod unit {
    use super::*;

    fn read(text: &str, cargo_succeeded: bool) -> Outcome {
        let mut report = Report::default();
        for line in text.lines() {
            report.line(line);
        }
        report.finish(cargo_succeeded)
    }

    fn words(outcome: &Outcome) -> Vec<&str> {
        outcome.failures.iter().map(|failure| failure.words.as_str()).collect()
    }

    const GOOD: &str = "   Compiling a v0.1.0
     Running unittests src/lib.rs (target/debug/deps/a-0123456789abcdef)

running 2 tests
test one ... ok
test two ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests a

running 1 test
test src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s
";

    #[test]
    fn tests_of_all_programs_are_added_up() {
        assert_eq!(read(GOOD, true), Outcome { passed: 3, failures: Vec::new() });
    }

    #[test]
    fn a_failed_test_is_named() {
        let bad = GOOD.replace("test two ... ok", "test two ... FAILED");
        let bad = bad.replace("ok. 2 passed; 0 failed", "FAILED. 1 passed; 1 failed");
        let outcome = read(&bad, false);
        assert_eq!((outcome.passed, words(&outcome)), (2, vec!["a (src/lib.rs): two"]));
        assert_eq!(outcome.failures[0].test, Some(("a".into(), "two".into())));
    }

    #[test]
    fn a_failed_test_whose_line_was_torn_is_counted() {
        let bad = GOOD.replace("ok. 2 passed; 0 failed", "FAILED. 1 passed; 1 failed");
        assert_eq!(read(&bad, false).failures.len(), 1);
    }

    #[test]
    fn an_ignored_test_is_a_failure() {
        let bad = GOOD.replace("test two ... ok", "test two ... ignored, slow");
        let bad = bad.replace("2 passed; 0 failed; 0 ignored", "1 passed; 0 failed; 1 ignored");
        assert_eq!(words(&read(&bad, true)), ["a (src/lib.rs): two is ignored"]);
    }

    #[test]
    fn a_test_that_was_filtered_out_is_a_failure() {
        let bad = GOOD.replacen("0 filtered out", "1 filtered out", 1);
        assert_eq!(words(&read(&bad, true)), ["a (src/lib.rs): a test was filtered out"]);
    }

    #[test]
    fn a_program_that_ended_without_a_result_is_a_failure() {
        let bad = GOOD.replacen("test result: ok. 2 passed", "error: test failed", 1);
        let outcome = read(&bad, false);
        assert_eq!((outcome.passed, words(&outcome)), (1, vec!["a (src/lib.rs) ended without a result"]));
    }

    #[test]
    fn a_build_that_broke_is_a_failure() {
        assert_eq!(words(&read("error: could not compile `a`\n", false)), ["no test program ran"]);
        assert_eq!(words(&read(GOOD, false)), ["cargo test itself failed"]);
    }

    #[test]
    fn what_cargo_prints_before_the_tests_is_shown() {
        assert_eq!(Report::default().line("   Compiling a v0.1.0").as_deref(), Some("   Compiling a v0.1.0"));
    }

    #[test]
    fn the_progress_of_a_program_is_one_line() {
        let mut report = Report::default();
        let shown: Vec<String> = GOOD.lines().filter_map(|line| report.line(line)).collect();
        assert_eq!(shown[1], "a (src/lib.rs): 2 passed, 0 failed, 0.01s");
        assert_eq!(shown.last().unwrap(), "a (documentation): 1 passed, 0 failed, 0.20s");
    }

    #[test]
    fn a_failed_test_is_shown_with_what_it_printed() {
        let mut report = Report::default();
        let text = "     Running tests/x.rs (target/debug/deps/x-01)
test bad ... FAILED

failures:

---- bad stdout ----
left is not right
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let shown: Vec<String> = text.lines().filter_map(|line| report.line(line)).collect();
        assert!(shown[0].contains("left is not right"), "{shown:?}");
    }
}
