//! Known bugs are put back one after the other, and the general campaign of the simulator has to find each.
//!
//! What comes out is a table in docs/internals/track-record.md, between two markers. A part of the bugs changes their rows only.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root, step, target_directory};

/// Bugs that are hunted at the same time.
const AT_ONCE: usize = 2;
const BEGIN: &str = "<!-- planted bugs: written by `cargo xtask planted-bugs` -->";
const END: &str = "<!-- end of planted bugs -->";
const HEAD: &str = "| bug | what it is | found by | seeds | seconds |\n|---|---|---|---:|---:|\n";

struct Bug {
    word: String,
    sentence: String,
}

/// Hunts the bugs named, or all, each for so many minutes of one core. Says whether all were found.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    let (mut only, mut minutes) = (Vec::new(), "5");
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match (*word, words.next()) {
            ("--bug", Some(name)) => only.push(*name),
            ("--minutes-each", Some(number)) => minutes = number,
            _ => bail!("{word:?} is not --bug NAME or --minutes-each M"),
        }
    }
    if !minutes.parse().is_ok_and(|minutes: f64| minutes > 0.0) {
        bail!("{minutes:?} is no number of minutes above 0");
    }
    let mut build = cargo();
    build.args(["build", "--release", "-p", "leasehold-sim", "--features", "planted", "--bin", "planted"]);
    step("simulator with known bugs", &mut build)?;
    let program = target_directory().join("release/planted");
    let all = list(&program)?;
    if let Some(unknown) = only.iter().find(|name| all.iter().all(|bug| bug.word != **name)) {
        bail!("there is no bug {unknown:?}");
    }
    let chosen: Vec<&Bug> =
        all.iter().filter(|bug| only.is_empty() || only.contains(&bug.word.as_str())).collect();
    let rows = hunt_all(&program, &chosen, minutes)?;
    let missed = rows.values().filter(|row| row.contains("| not found |")).count();
    write(&all, &rows)?;
    println!("{} of {} bugs found", chosen.len() - missed, chosen.len());
    Ok(missed == 0)
}

fn list(program: &Path) -> Result<Vec<Bug>> {
    let output =
        Command::new(program).output().with_context(|| format!("{} does not start", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    let bug =
        |line: &str| line.split_once('\t').map(|(word, sentence)| (word.to_owned(), sentence.to_owned()));
    Ok(text.lines().filter_map(bug).map(|(word, sentence)| Bug { word, sentence }).collect())
}

fn hunt_all(program: &Path, bugs: &[&Bug], minutes: &str) -> Result<BTreeMap<String, String>> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    let hunter = || -> Result<()> {
        while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = hunt(program, bug, minutes)?;
            let mut rows = rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            println!("{:>3}/{} {row}", rows.len() + 1, bugs.len());
            let _ = std::io::stdout().flush();
            rows.insert(bug.word.clone(), row);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let hunters: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(hunter)).collect();
        hunters.into_iter().try_for_each(|hunter| match hunter.join() {
            Ok(done) => done,
            Err(_) => bail!("a hunt ended in a panic"),
        })
    })?;
    Ok(rows.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// One row of the table.
fn hunt(program: &Path, bug: &Bug, minutes: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["--bug", &bug.word, "--minutes", minutes]).stderr(Stdio::null());
    let output = command.output().with_context(|| format!("{} does not start", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().unwrap_or_default();
    let (found, seeds, seconds) = match line.split('\t').collect::<Vec<_>>()[..] {
        ["found", checkers, seeds, seconds, ..] => (checkers.to_owned(), seeds, seconds),
        ["missed", _, seeds, seconds, ..] => ("not found".to_owned(), seeds, seconds),
        // The process itself did not survive the bug.
        _ => (format!("process: {}", output.status), "", ""),
    };
    Ok(format!("| {} | {} | {found} | {seeds} | {seconds} |", bug.word, bug.sentence))
}

/// Writes the table; rows of bugs that were not hunted now stay.
fn write(all: &[Bug], rows: &BTreeMap<String, String>) -> Result<()> {
    let path: PathBuf = root().join("docs/internals/track-record.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
    let Some((before, (old, after))) = parts else {
        bail!("{} has no lines {BEGIN} and {END} for the table to stand between", path.display())
    };
    let table = table(all, old, rows);
    std::fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}"))
        .with_context(|| format!("writing {}", path.display()))
}

fn table(all: &[Bug], old: &str, rows: &BTreeMap<String, String>) -> String {
    let kept =
        |word: &str| old.lines().find(|line| line.starts_with(&format!("| {word} |"))).map(str::to_owned);
    let row = |bug: &Bug| rows.get(&bug.word).cloned().or_else(|| kept(&bug.word)).map(|row| row + "\n");
    HEAD.to_owned() + &all.iter().filter_map(row).collect::<String>()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_that_were_not_hunted_stay_and_keep_their_order() {
        let bug = |word: &str| Bug { word: word.into(), sentence: String::new() };
        let all = [bug("one"), bug("two"), bug("three")];
        let old = format!(
            "\n{HEAD}| one | a | I1 | 1 | 2 |\n| two | b | not found | 9 | 300 |\n| gone | | | | |\n"
        );
        let rows = BTreeMap::from([("two".to_owned(), "| two | b | I2 | 3 | 4 |".to_owned())]);
        let new = table(&all, &old, &rows);
        assert_eq!(new, format!("{HEAD}| one | a | I1 | 1 | 2 |\n| two | b | I2 | 3 | 4 |\n"));
    }
}
