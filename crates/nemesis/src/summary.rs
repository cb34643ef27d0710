//! Many scenarios in one table at the end, and as lines of JSON for whoever reads on.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::check::Verdict;
use crate::report::{Figure, Report};

/// What a scenario came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its name.
    pub scenario: &'static str,
    /// What decided it.
    pub seed: u64,
    /// How long it took, with everything before and after.
    pub length: Duration,
    /// Its report, or why it could not be run to its end.
    pub report: Result<Report, String>,
}

impl Outcome {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.report.as_ref().is_ok_and(Report::is_good)
    }

    /// One line of JSON, without its end.
    pub fn json(&self) -> String {
        let report = self.report.as_ref();
        let line = LineJson {
            scenario: self.scenario,
            seed: self.seed,
            seconds: (self.length.as_secs_f64() * 10.0).round() / 10.0,
            passed: self.is_good(),
            error: report.err().map(String::as_str),
            history: report.ok().map(|report| report.history.display().to_string()),
            figures: report.map_or(&[][..], |report| &report.figures),
            verdicts: report.map_or(&[][..], |report| &report.verdicts),
        };
        serde_json::to_string(&line).expect("a line has only text keys")
    }

    /// The figures that it is there for, and what is wrong.
    fn words(&self) -> Vec<String> {
        let report = match &self.report {
            Ok(report) => report,
            Err(error) => return vec![format!("could not be run to its end: {error}")],
        };
        let figures = report.figures.iter().filter(|figure| figure.matters);
        let mut words: Vec<String> = figures
            .map(|figure| {
                let beyond = figure.beyond.as_ref().map(|beyond| format!(" TOO MUCH: {beyond}"));
                format!("{}: {}{}", figure.name.trim(), figure.value, beyond.unwrap_or_default())
            })
            .collect();
        let bad = report.verdicts.iter().filter(|verdict| !verdict.is_good());
        words.extend(bad.map(|verdict| format!("VIOLATED: {}", verdict.name)));
        if words.is_empty() {
            words.push(format!("{} checks", report.verdicts.len()));
        }
        words
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  seed {}  {:.1} s", self.scenario, self.seed, self.length.as_secs_f64())?;
        match &self.report {
            Ok(report) => report.fmt(f),
            Err(error) => write!(f, "  could not be run to its end: {error}\n  FAILED"),
        }
    }
}

#[derive(Serialize)]
struct LineJson<'a> {
    scenario: &'a str,
    seed: u64,
    seconds: f64,
    passed: bool,
    error: Option<&'a str>,
    history: Option<String>,
    figures: &'a [Figure],
    verdicts: &'a [Verdict],
}

/// The table of all outcomes.
#[derive(Debug)]
pub struct Summary<'a>(pub &'a [Outcome]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|outcome| outcome.scenario.len()).max().unwrap_or(0).max(8);
        writeln!(f, "{:width$}  {:>10}  {:>8}  VERDICT  FIGURES", "SCENARIO", "SEED", "SECONDS")?;
        for outcome in self.0 {
            let word = if outcome.is_good() { "passed" } else { "FAILED" };
            let (name, seed, seconds) = (outcome.scenario, outcome.seed, outcome.length.as_secs_f64());
            for (number, words) in outcome.words().iter().enumerate() {
                match number {
                    0 => writeln!(f, "{name:width$}  {seed:>10}  {seconds:>8.1}  {word:7}  {words}")?,
                    _ => writeln!(f, "{:indent$}{words}", "", indent = width + 33)?,
                }
            }
        }
        let failed = self.0.iter().filter(|outcome| !outcome.is_good()).count();
        write!(f, "{} passed, {failed} failed", self.0.len() - failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> [Outcome; 2] {
        let report = Report {
            history: "h".into(),
            figures: vec![Figure::told("grants", "12"), Figure::main("  longest", "4 ms")],
            verdicts: vec![Verdict { name: "v", compared: 1, violations: vec![] }],
        };
        let length = Duration::from_millis(3160);
        let good = Outcome { scenario: "calm", seed: 7, length, report: Ok(report) };
        let bad = Outcome { scenario: "flap", seed: 7, length, report: Err("no leader".into()) };
        [good, bad]
    }

    #[test]
    fn the_table_has_what_matters_and_what_failed() {
        let text = Summary(&outcomes()).to_string();
        assert!(text.contains("longest: 4 ms") && !text.contains("grants"), "{text}");
        assert!(text.contains("FAILED") && text.contains("no leader"), "{text}");
        assert!(text.ends_with("1 passed, 1 failed"), "{text}");
    }

    #[test]
    fn a_line_of_json_says_all() {
        let [good, bad] = outcomes();
        let good: serde_json::Value = serde_json::from_str(&good.json()).unwrap();
        assert_eq!((&good["passed"], &good["seconds"]), (&true.into(), &3.2.into()));
        assert_eq!(good["figures"][1]["name"], "longest");
        let bad: serde_json::Value = serde_json::from_str(&bad.json()).unwrap();
        assert_eq!((&bad["passed"], &bad["error"]), (&false.into(), &"no leader".into()));
    }
}
