//! Known bugs are put back one after the other, and the general campaign of the simulator has to find each. What it cannot reach, the
//! tests of a crate find; they run with the bug put back.
//!
//! What comes out is a table in docs/internals/track-record.md, between two markers. It is written row by row: a run can be
//! interrupted and continued, and a part of the bugs changes their rows only.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;

use crate::report::passed;
use crate::run::{cargo, minutes, root, say_compiler, step, target_directory};
use crate::simulate::CAMPAIGN;

/// Bugs that are hunted at the same time.
const AT_ONCE: usize = 2;
const BEGIN: &str = "<!-- planted bugs: written by `cargo xtask planted-bugs` -->";
const END: &str = "<!-- end of planted bugs -->";
const HEAD: &str = "| bug | what it is | found by | seeds | seconds |\n|---|---|---|---:|---:|\n";

/// Where the bugs stand that the simulator has to find. Others are found by the tests of the crate that their part is named after.
const BY_CAMPAIGN: &str = "campaign";
const NOT_FOUND: &str = "not found";
/// Signals of somebody who ends the run: interrupt, kill, terminate. A bug sends others.
const FROM_OUTSIDE: [i32; 3] = [2, 9, 15];

/// Where the bugs stand. Read as text: their names are known before anything is built.
const SOURCE: &str = include_str!("../../crates/core/src/planted.rs");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bug {
    word: &'static str,
    sentence: &'static str,
    found_by: &'static str,
}

/// Every known bug is put back, one after the other, and the general campaign of the simulator has to find it, or the tests of a crate.
/// What comes out is written into the table of docs/internals/track-record.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this bug; may be given several times
    #[arg(long = "bug", value_name = "NAME", value_parser = PossibleValuesParser::new(words()), hide_possible_values = true)]
    only: Vec<String>,
    /// Each for so many minutes of one core at most
    #[arg(long, value_name = "N", default_value = "5", value_parser = minutes, allow_hyphen_values = true)]
    minutes_each: f64,
    /// Only bugs that have no row in the table yet
    #[arg(long = "continue")]
    goes_on: bool,
    /// List the bugs, and hunt none
    #[arg(long, conflicts_with_all = ["only", "minutes_each", "goes_on"])]
    list: bool,
}

impl Args {
    /// Whether this bug is to be hunted: one that is named always, else all that have no row to keep.
    fn has(&self, bug: &Bug, rows: &Rows) -> bool {
        if self.only.is_empty() {
            !(self.goes_on && rows.contains_key(bug.word))
        } else {
            self.only.iter().any(|word| word == bug.word)
        }
    }
}

fn words() -> Vec<&'static str> {
    known().iter().map(|bug| bug.word).collect()
}

/// The bugs, as their source has them: a line each, `Name = "word": "sentence",`, in parts `found_by { ... }`.
fn known() -> Vec<Bug> {
    let mut found_by = "";
    let bugs = SOURCE.lines().filter_map(|line| {
        found_by = line.trim().strip_suffix(" {").unwrap_or(found_by);
        let (_, rest) = line.split_once(" = \"")?;
        let (word, rest) = rest.split_once("\": \"")?;
        Some(Bug { word, sentence: rest.strip_suffix("\",")?, found_by })
    });
    bugs.collect()
}

/// Rows of the table, by the names of the bugs.
type Rows = BTreeMap<String, String>;

/// Hunts the bugs named, or all, each for so many minutes of one core. Says whether all that were asked for are found.
pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.list {
        known().iter().for_each(|bug| println!("{:<32} {}", bug.word, bug.sentence));
        return Ok(true);
    }
    let mut build = cargo();
    build.args([
        "build",
        "--profile",
        CAMPAIGN,
        "-p",
        "leasehold-sim",
        "--features",
        "planted",
        "--bin",
        "planted",
    ]);
    step("simulator with known bugs", &mut build)?;
    say_compiler()?;
    let program = target_directory().join(CAMPAIGN).join("planted");
    let all = known();
    let listed =
        Command::new(&program).output().with_context(|| format!("{} does not start", program.display()))?;
    let line = |bug: &Bug| format!("{}\t{}\t{}\n", bug.word, bug.sentence, bug.found_by);
    if String::from_utf8(listed.stdout)? != all.iter().map(line).collect::<String>() {
        bail!("the simulator has other bugs than crates/core/src/planted.rs: build both from the same files");
    }
    let mut rows = rows_of(&Page::read()?.table);
    if args.only.is_empty() && !args.goes_on {
        // Else a run that was interrupted could not be told from one that was not.
        rows.clear();
    }
    let chosen = all.iter().filter(|bug| args.has(bug, &rows));
    let (chosen, by_tests): (Vec<&Bug>, Vec<&Bug>) = chosen.partition(|bug| bug.found_by == BY_CAMPAIGN);
    rows.extend(found_by_tests(&by_tests)?);
    let rows = hunt_all(&program, &all, &chosen, rows, &args.minutes_each.to_string())?;
    let asked = |bug: &&Bug| args.only.is_empty() || args.only.iter().any(|word| word == bug.word);
    let asked: Vec<&Bug> = all.iter().filter(asked).collect();
    let is_found = |bug: &&&Bug| rows.get(bug.word).is_some_and(|row| !row.contains(NOT_FOUND));
    let found = asked.iter().filter(is_found).count();
    println!("{found} of {} bugs found", asked.len());
    Ok(found == asked.len())
}

/// Rows of bugs that tests put back and find: those whose names have the word `planted`, once for each crate. That they put back every bug
/// which their crate has to find is one of these tests.
fn found_by_tests(bugs: &[&Bug]) -> Result<Rows> {
    let mut crates: BTreeMap<&str, bool> = BTreeMap::new();
    let mut rows = Rows::new();
    for bug in bugs {
        let found = match crates.get(bug.found_by) {
            Some(found) => *found,
            None => {
                let mut tests = cargo();
                tests.args(["test", "-p", &format!("leasehold-{}", bug.found_by), "--tests", "planted"]);
                // All of the crate's bugs are put back, whichever was asked for.
                let output = tests.env_remove("LEASEHOLD_BUG").stderr(Stdio::inherit()).output();
                let output = output.context("cargo does not start")?;
                let said = String::from_utf8_lossy(&output.stdout);
                print!("{said}");
                // A name that fits no test succeeds as well.
                let found = output.status.success() && passed(&said) > 0;
                *crates.entry(bug.found_by).or_insert(found)
            }
        };
        let by = if found { format!("tests of {}", bug.found_by) } else { NOT_FOUND.to_owned() };
        rows.insert(bug.word.to_owned(), format!("| {} | {} | {by} | | |", bug.word, bug.sentence));
    }
    Ok(rows)
}

/// Hunts these bugs. The table is written after each, so that a run can be interrupted and continued.
fn hunt_all(program: &Path, all: &[Bug], chosen: &[&Bug], rows: Rows, minutes: &str) -> Result<Rows> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new((0, rows));
    let hunter = || -> Result<()> {
        while let Some(bug) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = hunt(program, bug, minutes)?;
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (count, rows) = &mut *done;
            *count += 1;
            println!("{count:>3}/{} {row}", chosen.len());
            let _ = std::io::stdout().flush();
            rows.insert(bug.word.to_owned(), row);
            // Read anew each time: the text around the table may be edited meanwhile.
            Page::read()?.write(&table(all, rows))?;
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
    Ok(done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1)
}

/// One row of the table.
fn hunt(program: &Path, bug: &Bug, minutes: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["--bug", bug.word, "--minutes", minutes]).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("{} does not start", program.display()))?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().last().unwrap_or_default();
    let (found, seeds, seconds) = match line.split('\t').collect::<Vec<_>>()[..] {
        ["found", checkers, seeds, seconds, ..] => (checkers.to_owned(), seeds, seconds),
        ["missed", _, seeds, seconds, ..] => (NOT_FOUND.to_owned(), seeds, seconds),
        _ if output.status.signal().is_some_and(|signal| FROM_OUTSIDE.contains(&signal)) => {
            bail!("the hunt for {} was ended from outside: {}", bug.word, output.status)
        }
        // The process itself did not survive. Whether it does without the bug is not known, so that it counts for nothing.
        _ => (format!("{NOT_FOUND}: the process ended ({})", output.status), "", ""),
    };
    Ok(format!("| {} | {} | {found} | {seeds} | {seconds} |", bug.word, bug.sentence))
}

/// The page with the table, in three parts.
struct Page {
    before: String,
    table: String,
    after: String,
}

impl Page {
    fn path() -> PathBuf {
        root().join("docs/internals/track-record.md")
    }

    fn read() -> Result<Self> {
        let path = Self::path();
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?)));
        let Some((before, (table, after))) = parts else {
            bail!("{} has no lines {BEGIN} and {END} for the table to stand between", path.display())
        };
        Ok(Self { before: before.to_owned(), table: table.to_owned(), after: after.to_owned() })
    }

    /// Writes it with another table.
    fn write(&self, table: &str) -> Result<()> {
        let path = Self::path();
        std::fs::write(&path, format!("{}{BEGIN}\n{table}{END}{}", self.before, self.after))
            .with_context(|| format!("writing {}", path.display()))
    }
}

fn rows_of(table: &str) -> Rows {
    let row = |line: &str| Some((line.strip_prefix("| ")?.split_once(" |")?.0.to_owned(), line.to_owned()));
    table.lines().skip_while(|line| !line.starts_with("|---")).filter_map(row).collect()
}

/// In the order of the bugs; a row of a bug that is there no more goes.
fn table(all: &[Bug], rows: &Rows) -> String {
    let row = |bug: &Bug| rows.get(bug.word).map(|row| format!("{row}\n"));
    HEAD.to_owned() + &all.iter().filter_map(row).collect::<String>()
}

#[cfg(test)]
mod unit {
    use super::*;

    fn bug(word: &'static str) -> Bug {
        Bug { word, sentence: "", found_by: BY_CAMPAIGN }
    }

    fn old() -> String {
        format!("\n{HEAD}| one | a | I1 | 1 | 2 |\n| two | b | not found | 9 | 300 |\n| gone | | | | |\n")
    }

    #[test]
    fn rows_that_were_not_hunted_stay_and_keep_their_order() {
        let mut rows = rows_of(&old());
        rows.insert("two".to_owned(), "| two | b | I2 | 3 | 4 |".to_owned());
        let new = table(&[bug("one"), bug("two"), bug("three")], &rows);
        assert_eq!(new, format!("{HEAD}| one | a | I1 | 1 | 2 |\n| two | b | I2 | 3 | 4 |\n"));
    }

    #[test]
    fn going_on_hunts_what_has_no_row_and_a_name_is_hunted_always() {
        let rows = rows_of(&old());
        let hunted = |goes_on, only: &[&str]| {
            let only = only.iter().map(|name| (*name).to_owned()).collect();
            let args = Args { only, minutes_each: 5.0, goes_on, list: false };
            [bug("one"), bug("two"), bug("three")].map(|bug| args.has(&bug, &rows))
        };
        assert_eq!(hunted(false, &[]), [true, true, true]);
        assert_eq!(hunted(true, &[]), [false, false, true]);
        assert_eq!(hunted(true, &["two"]), [false, true, false]);
    }

    #[test]
    fn the_bugs_are_read_from_their_source() {
        let bugs = known();
        let first = Bug {
            word: "no-drift-factor",
            sentence: "The service waits for a ttl without the drift factor.",
            found_by: BY_CAMPAIGN,
        };
        assert_eq!(bugs.first(), Some(&first));
        // Each is a line of its own between the braces of the macro.
        let (_, listed) = SOURCE.split_once("\nbugs! {\n").unwrap();
        let (listed, _) = listed.split_once("\n}\n").unwrap();
        assert_eq!(bugs.len(), listed.lines().filter(|line| line.starts_with("        ")).count());
        // What is not found by the simulator is found by the tests of a crate that there is.
        let crates = bugs.iter().map(|bug| bug.found_by).filter(|by| *by != BY_CAMPAIGN);
        assert!(
            crates.clone().all(|name| root().join("crates").join(name).is_dir()),
            "{:?}",
            crates.collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_unknown_bug_is_refused_with_a_name_near_it() {
        #[derive(Debug, clap::Parser)]
        struct Words {
            #[command(flatten)]
            _args: Args,
        }
        let refused = |name| {
            let words = ["planted-bugs", "--bug", name];
            <Words as clap::Parser>::try_parse_from(words).expect_err("there is no such bug").to_string()
        };
        assert!(refused("no-drift-facto").contains("a similar value exists: 'no-drift-factor'"));
        assert!(refused("nonsense").contains("token-from-time"), "{}", refused("nonsense"));
    }
}
