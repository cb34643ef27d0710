//! Results, kept as lines of JSON: each is written and synced before the next measurement begins.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::peers::Peer;
use crate::workloads::{Figures, Work};

/// Which measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Which system.
    pub peer: Peer,
    /// With how many nodes.
    pub nodes: usize,
    /// Which repeat, from zero.
    pub repeat: usize,
    /// What was done.
    pub work: Work,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With figures.
    Measured(Figures),
    /// Without, and why.
    Failed(String),
}

/// A measurement and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Which.
    pub key: Key,
    /// What the server called itself.
    pub version: String,
    /// What was set.
    pub settings: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The day by universal time, for people; results of older runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The commit that the run was begun in, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Line {
    /// Its figures, if it was measured.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Failed(_) => None,
        }
    }
}

/// Reads results and changes nothing: lines as they are kept, or the one array that lies beside a report.
///
/// # Errors
/// When they cannot be read, or are of something else.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).with_context(|| format!("{} has no results", path.display()));
    }
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    lines_of(whole, path)
}

fn lines_of(whole: &str, path: &Path) -> Result<Vec<Line>> {
    let lines: Result<Vec<Line>, _> = whole.lines().map(serde_json::from_str).collect();
    lines.with_context(|| format!("{} has other results; remove it or use --fresh", path.display()))
}

/// All results so far.
#[derive(Debug)]
pub struct Kept {
    file: File,
    /// In the order in which they were measured.
    pub lines: Vec<Line>,
}

impl Kept {
    /// Opens a file of results, or begins one. A last line that was torn is measured again.
    ///
    /// # Errors
    /// When it cannot be read or written, or is of something else.
    pub fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let lines = lines_of(whole, path)?;
        if let Some(place) = path.parent() {
            std::fs::create_dir_all(place).with_context(|| format!("{} cannot be made", place.display()))?;
        }
        std::fs::write(path, whole).with_context(|| format!("{} cannot be written", path.display()))?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self { file, lines })
    }

    /// Whether a measurement was made, well or badly.
    pub fn has(&self, key: &Key) -> bool {
        self.lines.iter().any(|line| line.key == *key)
    }

    /// Adds one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, line: Line) -> Result<()> {
        let text = serde_json::to_string(&line)? + "\n";
        self.file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data())
            .context("a result cannot be kept")?;
        self.lines.push(line);
        Ok(())
    }
}

#[cfg(test)]
impl Line {
    /// A result that nobody measured.
    pub(super) fn made_up(
        peer: Peer,
        nodes: usize,
        repeat: usize,
        work: Work,
        figures: &[(&str, f64)],
    ) -> Self {
        let figures =
            figures.iter().fold(Figures::default(), |figures, (name, value)| figures.with(name, *value));
        let (key, outcome) = (Key { peer, nodes, repeat, work }, Outcome::Measured(figures));
        Self { key, version: String::new(), settings: String::new(), outcome, day: None, commit: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Connections;

    fn line(repeat: usize) -> Line {
        let work = Work::Cycles { clients: 4, connections: Connections::Own };
        let key = Key { peer: Peer::Leasehold, nodes: 1, repeat, work };
        let outcome = Outcome::Measured(Figures::default().with("per_second", 7.5));
        Line { key, version: "1".into(), settings: String::new(), outcome, day: None, commit: None }
    }

    #[test]
    fn a_run_that_was_interrupted_goes_on_behind_its_last_whole_result() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.jsonl");
        let mut kept = Kept::open(&path).unwrap();
        kept.add(line(0)).unwrap();
        kept.add(line(1)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let mut again = Kept::open(&path).unwrap();
        assert_eq!(again.lines, [line(0)]);
        assert!(again.has(&line(0).key) && !again.has(&line(1).key));
        again.add(line(1)).unwrap();
        assert_eq!(Kept::open(&path).unwrap().lines, [line(0), line(1)]);
    }

    #[test]
    fn results_are_read_as_lines_and_as_an_array_also_without_day_and_commit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results");
        let dated = Line { day: Some("2026-11-18".into()), ..line(1) };
        let lines = [line(0), dated];
        let old = serde_json::to_string(&lines[0]).unwrap();
        assert!(!old.contains("day") && !old.contains("commit"), "{old}");
        std::fs::write(&path, format!("{old}\n{}\n", serde_json::to_string(&lines[1]).unwrap())).unwrap();
        assert_eq!(read(&path).unwrap(), lines);
        std::fs::write(&path, serde_json::to_string_pretty(&lines).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), lines);
    }
}
