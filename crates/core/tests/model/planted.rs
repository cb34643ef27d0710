//! Bugs of the table, put back one at a time: a property must find each within some histories, always the same ones.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_core::planted::{Bug, plant};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::steps::{Script, script};
use super::{LONGEST, contradicts_no_belief, does_what_the_naive_one_does, replays};

/// Histories in which a bug must show. Most show in the first ten.
const HISTORIES: usize = 120;
/// Rare bugs, and how many histories are passed over because they show nothing of them. Another order of histories needs other numbers: try
/// with none and with more histories.
const RARE: [(Bug, usize); 4] = [
    (Bug::TidyingDropsHint, 100),
    (Bug::UnitFirstInOneQueue, 350),
    (Bug::ReviveForgetsTakers, 900),
    (Bug::RestoreWaitShort, 2_550),
];
/// The simulator alone finds it: it takes a client that opens again while others depend on the end of its session.
const ELSEWHERE: Bug = Bug::RepeatedOpenRenews;

type Check = fn(&Script, &[bool]) -> Result<(), TestCaseError>;

const CHECKS: [(&str, Check); 3] = [
    ("naive", |script, _| does_what_the_naive_one_does(script)),
    ("beliefs", |script, _| contradicts_no_belief(script)),
    ("replay", replays),
];

/// The first check that finds a bug, and in which history.
fn found(bug: Bug) -> Option<(&'static str, usize)> {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let histories = (script(LONGEST), prop::collection::vec(any::<bool>(), LONGEST));
    let _planted = plant(bug);
    let skipped = RARE.iter().find(|(rare, _)| *rare == bug).map_or(0, |(_, skipped)| *skipped);
    (1..=skipped + HISTORIES).find_map(|nth| {
        let history = histories.new_tree(&mut runner).expect("any history will do");
        if nth <= skipped {
            return None;
        }
        let (script, points) = history.current();
        // A panic is a finding too.
        let passes =
            |check: Check| matches!(catch_unwind(AssertUnwindSafe(|| check(&script, &points))), Ok(Ok(())));
        CHECKS.into_iter().find(|(_, check)| !passes(*check)).map(|(by, _)| (by, nth))
    })
}

#[test]
fn every_bug_of_the_table_is_found() {
    let mut missed = Vec::new();
    let of_core = |bug: &Bug| bug.found_by() == "core" && !bug.word().starts_with("gap-");
    let of_table = |bug: &Bug| of_core(bug) || (*bug as u32) < Bug::DeadlineFromReceipt as u32;
    for bug in Bug::hunted().filter(|bug| of_table(bug) && *bug != ELSEWHERE) {
        match found(bug) {
            Some((by, histories)) => println!("{}\t{by}\t{histories}", bug.word()),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, []);
}
