//! Golden transcripts: `tests/scripts/*.txt`, one situation each, for people to read and to review as a diff.
//!
//! A script begins with a sentence. Blocks of lines are carried out, and below each, behind `> `, stands what the node handed
//! out, in order. `UPDATE=1 cargo test -p leasehold-node --test machine scripts` writes what came out into the files; it
//! proves nothing by itself: the diff must be read.

mod render;
mod stage;

use std::path::{Path, PathBuf};

use stage::Stage;

/// Fewer than this means that files were lost.
const FEWEST: usize = 10;

fn paths() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("the scripts are there")
        .map(|entry| entry.expect("the directory can be read").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    paths
}

/// The script with what came out in the place of what stood there.
fn played(text: &str) -> String {
    let mut stage = Stage::new();
    let mut out = String::new();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('>')).collect();
    for block in lines.split(|line| line.is_empty()).filter(|block| !block.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        for line in block {
            out.push_str(line);
            out.push('\n');
            if !line.starts_with('#') {
                stage.carry_out(line);
            }
        }
        for line in stage.happened() {
            out.push_str("> ");
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

#[test]
fn every_script_gives_what_stands_in_it() {
    let update = std::env::var_os("UPDATE").is_some();
    let paths = paths();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("# "), "{} does not say what it shows", path.display());
        let played = played(&text);
        if update && played != text {
            std::fs::write(path, played).unwrap();
        } else {
            assert!(played == text, "{} now reads:\n{played}", path.display());
        }
    }
    assert!(paths.len() >= FEWEST, "{} scripts; {FEWEST} are wanted", paths.len());
}

#[test]
fn a_script_with_another_outcome_is_found() {
    let text = "# x\nstart served\nrest\nA open 10000\nturn\n> A < opened, session 2\n";
    assert!(played(text) != text);
}
