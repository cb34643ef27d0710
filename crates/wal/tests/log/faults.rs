//! Writes and syncs that fail, and a disk that is full.

use crate::checker::Checker;
use crate::model::{IDENTITY, Model, Step, entry, everything, run, short, small, states, take_step, vote};
use leasehold_wal::mem::{Fault, MemDisk, Op};
use leasehold_wal::{Wal, WriteError};

#[test]
fn after_any_failed_operation_a_new_process_goes_on_with_nothing_lost() {
    let steps = everything();
    let mut checker = Checker::new(small(), &steps);
    checker.every_fault(Fault::Io).unwrap();
    println!("{:?}", checker.tally);
}

#[test]
fn a_full_disk_at_any_operation_loses_nothing() {
    let steps = short();
    Checker::new(small(), &steps).every_fault(Fault::NoSpace).unwrap();
}

#[test]
fn a_failed_sync_stops_the_log() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    wal.disk_mut().fail_after(1, Fault::Io);
    assert!(matches!(wal.append(&[vote(1, 1, 0)]), Err(WriteError::Failed { action: "syncing", .. })));
    let again = wal.append(&[vote(2, 1, 0)]).unwrap_err();
    assert!(matches!(again, WriteError::Stopped { .. }));
    assert!(again.to_string().contains("syncing segment-00000000000000000001.log"), "{again}");
    assert!(matches!(wal.prepare(), Err(WriteError::Stopped { .. })));
    assert!(matches!(take_step(&mut wal, &everything()[8]), Err(WriteError::Stopped { .. })));
}

/// Each operation in turn, and all after it up to a point, finds the disk full. What is refused is taken again later.
#[test]
fn without_space_a_step_is_refused_and_the_log_stays_usable() {
    let steps = everything();
    let states = states(&steps);
    let mut whole = MemDisk::new();
    run(&mut whole, small(), &steps);
    let opening = {
        let mut disk = MemDisk::new();
        run(&mut disk, small(), &[]);
        disk.operations()
    };
    let (mut refused, mut stopped) = (0, 0);
    for at in opening..whole.operations() {
        for how_long in [1, 2, 5] {
            let mut disk = MemDisk::new();
            let (mut wal, _) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
            (at..at + how_long).for_each(|at| wal.disk_mut().fail_after(at - opening, Fault::NoSpace));
            let mut expected = &states[0];
            'steps: for (step, after) in steps.iter().zip(&states[1..]) {
                loop {
                    match take_step(&mut wal, step) {
                        Ok(()) => break,
                        Err(WriteError::NoSpace { .. }) => refused += 1,
                        Err(_) => {
                            stopped += 1;
                            break 'steps;
                        }
                    }
                }
                expected = after;
            }
            let at_least = states.iter().position(|state| state == expected).expect("it is one of them");
            drop(wal);
            disk.restart();
            let (_, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
            let found = Model::of(&recovered);
            assert!(
                states[at_least..].iter().take(3).any(|state| *state == found),
                "full at {at}, {how_long}"
            );
        }
    }
    assert!(refused > 20 && stopped > 20, "{refused} refused, {stopped} stopped");
}

#[test]
fn a_full_disk_does_not_prevent_the_record_of_a_snapshot() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    wal.disk_mut().set_full(true);
    let mut index = 0;
    let refused = loop {
        match wal.append(&[entry(index + 1, 1, 30)]) {
            Ok(()) => index += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, WriteError::NoSpace { .. }), "{refused}");
    assert_eq!(index, 5, "eight blocks: head, five batches, two kept free");
    wal.disk_mut().set_full(false);
    let taken = Step::Snapshot {
        kind: leasehold_wal::SnapshotKind::Taken,
        index,
        bytes: vec![1; 10],
        with: Vec::new(),
    };
    wal.disk_mut().record();
    take_step(&mut wal, &taken).unwrap();
    let made_segment = |op: &Op| matches!(op, Op::Create(name) if name.starts_with("segment"));
    assert!(!wal.disk().journal().iter().any(made_segment));
    wal.append(&[entry(index + 1, 1, 30)]).unwrap();
}
