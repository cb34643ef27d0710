//! Loss of power and kills at every operation.

use crate::checker::Checker;
use crate::model::{drawn, everything, short, small};
use leasehold_wal::Options;

#[test]
fn nothing_answered_is_lost_and_nothing_stale_returns_wherever_the_run_stops() {
    let steps = everything();
    let mut checker = Checker::new(small(), &steps);
    checker.every_crash().unwrap();
    println!("{:?}", checker.tally);
    assert!(checker.tally.crash_points > 100, "the run has become too short: {:?}", checker.tally);
}

#[test]
fn segments_of_another_size_change_nothing() {
    let steps = short();
    for blocks in [8, 9, 13, 40] {
        let options =
            Options { first_segment_bytes: blocks * 512, segment_bytes: blocks * 512, ..Options::default() };
        let mut checker = Checker::new(options, &steps);
        checker.every_crash().unwrap();
    }
}

#[test]
fn drawn_runs_survive_too() {
    for seed in 1..=4 {
        let steps = drawn(seed, 14);
        let mut checker = Checker::new(small(), &steps);
        checker.every_crash().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        println!("seed {seed}: {:?}", checker.tally);
    }
}
