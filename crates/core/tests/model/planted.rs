//! Bugs of the table, put back one at a time: a property must find each within some histories, always the same ones.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_core::planted::{Bug, plant};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::steps::{Script, script};
use crate::{LONGEST, contradicts_no_belief, does_what_the_naive_one_does, replays};

/// Histories in which a bug must show. Most show in the first twenty.
const HISTORIES: usize = 400;

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
    (1..=std::env::var("LEASEHOLD_CASES").map_or(HISTORIES, |n| n.parse().unwrap())).find_map(|nth| {
        let (script, points) = histories.new_tree(&mut runner).expect("any history will do").current();
        // A panic is a finding too.
        let passes =
            |check: Check| matches!(catch_unwind(AssertUnwindSafe(|| check(&script, &points))), Ok(Ok(())));
        CHECKS.into_iter().find(|(_, check)| !passes(*check)).map(|(by, _)| (by, nth))
    })
}

#[test]
fn every_bug_of_the_table_is_found() {
    let mut missed = Vec::new();
    for bug in Bug::hunted().filter(|bug| (*bug as u32) < Bug::DeadlineFromReceipt as u32) {
        match found(bug) {
            Some((by, histories)) => println!("{}\t{by}\t{histories}", bug.word()),
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, []);
}
