//! What a scenario comes to: figures, verdicts, and one word at the end.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::check::Verdict;

/// Violations shown of each checker; all are counted.
const SHOWN: usize = 5;

/// A figure, and the bound that it must keep, if there is one.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// What was measured. One that belongs to the one before is set in.
    #[serde(serialize_with = "trimmed")]
    pub name: String,
    /// What came of it.
    pub value: String,
    /// Whether the scenario is there to measure it.
    pub matters: bool,
    /// What is wrong with it.
    pub beyond: Option<String>,
}

fn trimmed<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name.trim())
}

impl Figure {
    /// A figure without a bound.
    pub fn told(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into(), beyond: None, matters: false }
    }

    /// A figure without a bound that the scenario is there to measure.
    pub fn main(name: &str, value: impl Into<String>) -> Self {
        Self { matters: true, ..Self::told(name, value) }
    }

    /// A length of time that may not exceed a bound.
    pub fn bounded(name: &str, length: Duration, bound: Duration) -> Self {
        let beyond = (length > bound).then(|| format!("{length:?} is above {bound:?}"));
        Self { beyond, ..Self::main(name, format!("{length:?}")) }
    }
}

/// What a scenario found.
#[derive(Debug, Clone)]
pub struct Report {
    /// Where the history is.
    pub history: PathBuf,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// What the checkers found.
    pub verdicts: Vec<Verdict>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.figures.iter().all(|figure| figure.beyond.is_none())
            && self.verdicts.iter().all(Verdict::is_good)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  history {}", self.history.display())?;
        let width = self.figures.iter().map(|figure| figure.name.len()).max().unwrap_or(0);
        for figure in &self.figures {
            writeln!(f, "  {:width$}  {}", figure.name, figure.value)?;
            if let Some(beyond) = &figure.beyond {
                writeln!(f, "  {:width$}  TOO MUCH: {beyond}", "")?;
            }
        }
        for verdict in &self.verdicts {
            let word = if verdict.is_good() { "good" } else { "VIOLATED" };
            writeln!(f, "  {word:8}  {} ({} compared)", verdict.name, verdict.compared)?;
            for violation in verdict.violations.iter().take(SHOWN) {
                writeln!(f, "            {violation}")?;
            }
            if let Some(more @ 1..) = verdict.violations.len().checked_sub(SHOWN) {
                writeln!(f, "            and {more} more")?;
            }
        }
        write!(f, "  {}", if self.is_good() { "passed" } else { "FAILED" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_its_bound_or_a_violation_fails_a_report() {
        let second = Duration::from_secs(1);
        let verdict = |violations| Verdict { name: "v", compared: 1, violations };
        let report = |length, violations| Report {
            history: PathBuf::new(),
            figures: vec![Figure::bounded("f", length, second)],
            verdicts: vec![verdict(violations)],
        };
        assert!(report(second, vec![]).is_good());
        assert!(!report(second * 2, vec![]).is_good());
        let bad = report(second, vec!["wrong".into()]);
        assert!(!bad.is_good());
        assert!(bad.to_string().ends_with("FAILED"), "{bad}");
    }
}
