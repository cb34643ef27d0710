//! Known mistakes put back: the checks above must find each.

use crate::checker::Checker;
use crate::damage::{flip_in_last_batch, transplant};
use crate::model::{Step, entry, everything, small};
use leasehold_core::planted::{Bug, plant};
use leasehold_wal::mem::Fault;
use leasehold_wal::{Options, SnapshotKind};

fn crash_finds(options: Options) -> Result<(), String> {
    Checker::new(options, &everything()).every_crash()
}

fn fault_finds(options: Options) -> Result<(), String> {
    Checker::new(options, &everything()).every_fault(Fault::Io)
}

/// The checks stop at what they find, so a mistake that shows only late in the long run gets one of its own.
fn install_finds(options: Options) -> Result<(), String> {
    let entries = Step::Append(vec![entry(1, 1, 10), entry(2, 1, 10), entry(3, 1, 10)]);
    let install =
        Step::Snapshot { kind: SnapshotKind::Installed, index: 2, bytes: vec![2; 9], with: Vec::new() };
    Checker::new(options, &[entries, install]).every_crash()
}

#[test]
fn every_planted_bug_is_found() {
    type Check = fn(Options) -> Result<(), String>;
    let table: [(Bug, &str, Check); 15] = [
        (Bug::AckBeforeSync, "crash", crash_finds),
        (Bug::SegmentBeforeDirSync, "crash", crash_finds),
        (Bug::HeadForgetsVote, "crash", crash_finds),
        (Bug::NoDirSyncAfterRename, "crash", crash_finds),
        (Bug::RemoveBeforeRecord, "crash", crash_finds),
        (Bug::TornTailIsDamage, "crash", crash_finds),
        (Bug::CutOnDamage, "flipped byte", flip_in_last_batch),
        (Bug::CutLeavesRest, "crash", crash_finds),
        (Bug::ClosedSuccessorRemoved, "crash", crash_finds),
        (Bug::SpareKept, "fault", fault_finds),
        (Bug::CutNotSynced, "crash", crash_finds),
        (Bug::LastBatchNotRewritten, "fault", fault_finds),
        (Bug::TidyBeforeSync, "crash", crash_finds),
        (Bug::InstalledKeepsEntries, "crash", install_finds),
        (Bug::ChainUnchecked, "transplant", transplant),
    ];
    // Those that the tests of this crate have to find, and those of the campaign that lie in the log: its last ones.
    let of_log = |bug: &&Bug| match bug.found_by() {
        "campaign" => **bug as u32 >= Bug::AckBeforeSync as u32,
        found_by => found_by == "wal",
    };
    assert_eq!(Bug::ALL.iter().filter(of_log).collect::<Vec<_>>(), table.each_ref().map(|(bug, ..)| bug));
    let mut missed = Vec::new();
    for (bug, by, check) in table {
        let _planted = plant(bug);
        match check(small()) {
            Err(why) => println!("{bug:?} found by {by}: {}", why.lines().next().unwrap_or_default()),
            Ok(()) => missed.push(bug),
        }
    }
    assert_eq!(missed, []);
}
