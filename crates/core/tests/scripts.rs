//! Golden scripts of the lease table: `tests/scripts/*.txt`, one situation each, for people to read and to review as a diff.
//!
//! A script begins with a sentence and its tags. Each step is a few lines, carried out as one entry of the log, and below them,
//! behind `> `, what came out. After every step the invariants are checked, and a twin of the table that goes through a
//! snapshot each time must say and be the same.
//!
//! `UPDATE=1 cargo test -p leasehold-core --test all scripts` writes what came out into the scripts and into the table of scripts
//! in the documentation. It proves nothing by itself: the diff must be read.

#[path = "script/command.rs"]
mod command;
#[path = "script/file.rs"]
mod file;
#[path = "script/look.rs"]
mod look;
#[path = "script/render.rs"]
mod render;
#[path = "script/tags.rs"]
mod tags;
#[path = "script/words.rs"]
mod words;
#[path = "script/world.rs"]
mod world;

use std::io::Write;
use std::path::Path;

use file::{Block, Script, settle};
use tags::{complaints, with_table};
use world::World;

/// Fewer than this means that files were lost.
const FEWEST_SCRIPTS: usize = 60;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All scripts, in order of their names.
fn scripts() -> Result<Vec<Script>, String> {
    let directory = here().join("tests/scripts");
    let entries =
        std::fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths.iter().map(|path| Script::read(path)).collect()
}

/// Runs a script and gives back what came out of each step.
fn run(script: &Script) -> Result<Vec<Vec<String>>, String> {
    let mut world = World::new();
    let steps = script.blocks.iter().filter_map(|block| match block {
        Block::Step(lines) => Some(lines),
        Block::Text(_) => None,
    });
    steps.map(|lines| world.step(lines).map_err(|error| in_step(lines, &error))).collect()
}

fn in_step(lines: &[(usize, String)], error: &str) -> String {
    let first = lines.first().map_or(0, |(number, _)| *number);
    format!("step at line {first}: {error}")
}

#[test]
fn every_script_gives_what_stands_in_it() {
    let update = std::env::var_os("UPDATE").is_some();
    let scripts = scripts().unwrap();
    let mut wrong = Vec::new();
    // Written past the capture of the test runner: the list of situations is the summary.
    let mut summary = std::io::stderr().lock();
    for script in &scripts {
        let ran =
            std::panic::catch_unwind(|| run(script)).unwrap_or_else(|_| Err("the table panicked".to_owned()));
        let result = ran.and_then(|outputs| script.settle(&script.with_output(&outputs), update));
        let word = if result.is_ok() { "ok" } else { "WRONG" };
        writeln!(summary, "script {} ... {word}", script.name).unwrap();
        wrong.extend(result.err().map(|error| format!("{}: {error}", script.name)));
    }
    writeln!(summary, "{} scripts, {} wrong", scripts.len(), wrong.len()).unwrap();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(scripts.len() >= FEWEST_SCRIPTS, "{} scripts; {FEWEST_SCRIPTS} are wanted", scripts.len());
}

#[test]
fn every_promise_policy_mode_and_ending_is_shown_twice() {
    let complaints = complaints(&scripts().unwrap());
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_documentation_lists_every_script() {
    let path = here().join("../../docs/internals/lease-table.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let renewed = with_table(&page, &scripts().unwrap()).unwrap();
    if let Err(error) = settle(&path, &page, &renewed, std::env::var_os("UPDATE").is_some()) {
        panic!("\n{error}");
    }
}

#[test]
fn a_script_with_another_outcome_is_found() {
    let mut world = World::new();
    let step = |line: &str| vec![(1, line.to_owned())];
    assert_eq!(world.step(&step("A open ttl 10s")).unwrap(), ["A opened, session 1, ttl 10000 ms"]);
    assert_eq!(world.step(&step("A acquire db")).unwrap(), ["A.1 answer to 1: granted db t2"]);
}

#[test]
fn unknown_words_are_refused_with_their_line() {
    let mut world = World::new();
    let error = world.step(&[(7, "at 0".to_owned()), (8, "A open tll 10s".to_owned())]).unwrap_err();
    assert_eq!(error, "line 8: \"tll\" is not understood here");
    let error = world.step(&[(9, "B acquire db".to_owned())]).unwrap_err();
    assert_eq!(error, "line 9: B was not opened before");
    let error = world.step(&[(10, "frobnicate db".to_owned())]).unwrap_err();
    assert_eq!(error, "line 10: \"frobnicate\" is not a command");
}
