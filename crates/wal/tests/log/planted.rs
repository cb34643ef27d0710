//! Known mistakes put back: the checks above must find each.

use crate::checker::Checker;
use crate::damage::{flip_in_last_batch, transplant};
use crate::model::{Step, entry, everything, small};
use leasehold_wal::mem::Fault;
use leasehold_wal::{Options, Planted, SnapshotKind};

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
    let table: [(Planted, &str, Check); 15] = [
        (Planted::AckBeforeSync, "crash", crash_finds),
        (Planted::SegmentBeforeDirSync, "crash", crash_finds),
        (Planted::HeadForgetsVote, "crash", crash_finds),
        (Planted::NoDirSyncAfterRename, "crash", crash_finds),
        (Planted::RemoveBeforeRecord, "crash", crash_finds),
        (Planted::InstalledKeepsEntries, "crash", install_finds),
        (Planted::TornTailIsDamage, "crash", crash_finds),
        (Planted::CutOnDamage, "flipped byte", flip_in_last_batch),
        (Planted::ChainUnchecked, "transplant", transplant),
        (Planted::CutLeavesRest, "crash", crash_finds),
        (Planted::ClosedSuccessorRemoved, "crash", crash_finds),
        (Planted::SpareKept, "fault", fault_finds),
        (Planted::CutNotSynced, "crash", crash_finds),
        (Planted::LastBatchNotRewritten, "fault", fault_finds),
        (Planted::TidyBeforeSync, "crash", crash_finds),
    ];
    let mut missed = Vec::new();
    for (bug, by, check) in table {
        match check(small().with_planted(bug)) {
            Err(why) => println!("{bug:?} found by {by}: {}", why.lines().next().unwrap_or_default()),
            Ok(()) => missed.push(bug),
        }
    }
    assert_eq!(missed, []);
}
