//! How many instructions a node spends on an operation, counted by callgrind: the same on a busy machine as on a quiet one.
//!
//! What is counted is in `crates/sim/src/bin/work.rs`. Each work is run with a number of rounds and with twice as many; the difference is what
//! the rounds cost, without anything that comes before them.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::run::target_directory;
use crate::simulate;
use crate::steps::timed;

/// A work, and how many instructions one of its operations may take.
struct Work {
    name: &'static str,
    rounds: u64,
    /// Operations in a round.
    operations: u64,
    /// A change that needs more says so here, and why in its commit. One that needs far fewer lowers it, so that nobody loses that again.
    most: u64,
}

const WORKS: [Work; 3] = [
    Work { name: "cycles", rounds: 20, operations: 128, most: 8_000 },
    Work { name: "alone", rounds: 300, operations: 2, most: 23_700 },
    Work { name: "renewals", rounds: 5, operations: 1_000, most: 1_500 },
];
/// Compilers and C libraries differ by so many per cent.
const TOLERANCE: u64 = 10;

/// Counts all works and prints them. Says whether each stays below its limit.
pub(crate) fn run() -> Result<bool> {
    // Builds what is counted too.
    simulate::program("release")?;
    timed("instructions", counted)
}

fn counted() -> Result<bool> {
    let mut kept = true;
    for work in &WORKS {
        let once = count(work.name, work.rounds)?;
        let twice = count(work.name, 2 * work.rounds)?;
        let each = twice.saturating_sub(once) / (work.rounds * work.operations);
        let verdict = judge(each, work.most);
        println!("{}: {each} instructions for an operation, {}", work.name, verdict.words(work.most));
        kept &= verdict == Verdict::Kept;
    }
    Ok(kept)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Kept,
    Above,
    FarBelow,
}

impl Verdict {
    fn words(self, most: u64) -> String {
        match self {
            Self::Kept => format!("within {TOLERANCE} % of the {most} that are allowed, or less"),
            Self::Above => format!("more than {TOLERANCE} % above the {most} that are allowed"),
            Self::FarBelow => {
                format!(
                    "less than half of the {most} that are allowed: lower that limit, or find out what was not done"
                )
            }
        }
    }
}

fn judge(each: u64, most: u64) -> Verdict {
    if 100 * each > (100 + TOLERANCE) * most {
        Verdict::Above
    } else if 2 * each < most {
        Verdict::FarBelow
    } else {
        Verdict::Kept
    }
}

/// Instructions of the whole program with so many rounds.
fn count(work: &str, rounds: u64) -> Result<u64> {
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    callgrind.arg(target_directory().join("release/work")).arg(work).arg(rounds.to_string());
    let output = callgrind.output().context("valgrind does not start; install the package valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{work} failed under valgrind: {said}");
    match collected(&said) {
        Some(instructions) => Ok(instructions),
        None => bail!("valgrind did not say how many instructions {work} took: {said}"),
    }
}

/// The number behind `Collected :`.
fn collected(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn more_than_the_limit_and_its_tolerance_is_too_many_and_less_than_half_is_suspicious() {
        assert_eq!(judge(1_100, 1_000), Verdict::Kept);
        assert_eq!(judge(1_101, 1_000), Verdict::Above);
        assert_eq!(judge(500, 1_000), Verdict::Kept);
        assert_eq!(judge(499, 1_000), Verdict::FarBelow);
    }

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        assert_eq!(collected("==1== \n==1== Collected : 230303338\n==1== \n"), Some(230_303_338));
        assert_eq!(collected("==1== Collected : many"), None);
    }
}
