//! A disk without space: the log goes on with what it kept aside, and makes it again afterwards.

use crate::checker::Checker;
use crate::model::{IDENTITY, Model, Step, entry, run, small, states};
use leasehold_wal::mem::{Fault, MemDisk};
use leasehold_wal::{Disk, Index, Options, SnapshotKind, Space, Term, Wal, WriteError};

fn reserving() -> Options {
    Options { reserve_segments: 2, ..small() }
}

/// A reserve is made, used up by segments while the disk is full, and made again.
fn steps() -> Vec<Step> {
    use Step::{Append, Fill, Prepare, Restock};
    let mut steps = vec![Restock, Append(vec![entry(1, 1, 30)]), Fill(true)];
    steps.extend((2..18).map(|index| Append(vec![entry(index, 1, 30)])));
    steps.extend([Restock, Prepare, Fill(false), Restock]);
    let kind = SnapshotKind::Taken;
    steps.push(Step::Snapshot { kind, index: 10, bytes: vec![7; 600], with: Vec::new() });
    steps.extend((18..30).map(|index| Append(vec![entry(index, 1, 300)])));
    steps
}

#[test]
fn a_crash_at_any_point_of_a_time_without_space_loses_nothing() {
    let steps = steps();
    Checker::new(reserving(), &steps).every_crash().unwrap();
}

#[test]
fn a_failed_operation_in_a_time_without_space_loses_nothing() {
    let steps = steps();
    let states = states(&steps);
    let mut whole = MemDisk::new();
    run(&mut whole, reserving(), &steps);
    for fault in [Fault::Io, Fault::NoSpace] {
        for at in 0..whole.operations() {
            let mut disk = MemDisk::new();
            disk.fail_after(at, fault);
            let answered = run(&mut disk, reserving(), &steps).answered;
            disk.restart();
            let (mut wal, recovered) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
            let found = Model::of(&recovered);
            assert!(states[answered..].iter().take(2).any(|state| *state == found), "{fault:?} at {at}");
            assert_eq!(wal.restock().unwrap(), Space::Enough);
            wal.append(&[entry(found.next_index(), 9, 300)]).unwrap();
        }
    }
}

/// Other files have taken everything but the reserve: the log lives on, snapshot after snapshot, as long as it likes.
#[test]
fn renewals_go_on_for_ever_on_a_full_disk() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    assert_eq!(wal.restock().unwrap(), Space::Enough);
    let used = wal.disk().used();
    wal.disk_mut().set_capacity(Some(used));
    let (mut short, mut snapshots) = (0, 0);
    for index in 1..=2_000 {
        wal.append(&[entry(index, 1, 30)]).unwrap();
        wal.prepare().unwrap();
        short += u32::from(wal.space() == Space::Reserved);
        if index % 10 == 0 {
            let saved = wal.save_snapshot(SnapshotKind::Taken, Index(index), Term(1), &[1; 5_000], &[]);
            snapshots += u32::from(saved.is_ok());
            assert!(matches!(saved, Ok(_) | Err(WriteError::NoSpace { .. })));
            // Not before the log has freed something.
            wal.restock().unwrap();
        }
    }
    assert!(snapshots > 150, "{snapshots} snapshots");
    assert!(short > 100, "it was told {short} times that there is no space");
}

#[test]
fn a_full_disk_is_told_and_so_is_its_end() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    wal.restock().unwrap();
    wal.disk_mut().set_full(true);
    let mut index = 0;
    let refused = loop {
        match wal.append(&[entry(index + 1, 1, 30)]) {
            Ok(()) => index += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, WriteError::NoSpace { .. }), "{refused}");
    assert_eq!(index, 5 + 2 * 7, "what is left of the first segment, and two of the reserve");
    assert_eq!((wal.space(), wal.restock().unwrap()), (Space::Reserved, Space::Reserved));
    wal.disk_mut().set_full(false);
    assert_eq!(wal.restock().unwrap(), Space::Enough);
    wal.append(&[entry(index + 1, 1, 30)]).unwrap();
}

#[test]
fn a_reserve_of_an_earlier_process_is_found_again() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    wal.restock().unwrap();
    let names = wal.disk_mut().list().unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("reserve-")).count(), 3, "{names:?}");
    drop(wal);
    disk.set_full(true);
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    for index in 1..=19 {
        wal.append(&[entry(index, 1, 30)]).unwrap();
    }
}

/// Whatever is in a file of the reserve: only zeros become a segment.
#[test]
fn a_reserve_with_something_in_it_is_written_over() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    wal.restock().unwrap();
    drop(wal);
    for name in ["reserve-0.zero", "reserve-1.zero"] {
        disk.edit(name, |bytes| bytes.fill(0xAA));
    }
    disk.set_full(true);
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    (1..=19).for_each(|index| wal.append(&[entry(index, 1, 30)]).unwrap());
    drop(wal);
    let (_, recovered) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    assert_eq!(recovered.entries.len(), 19);
}

fn reserved_for_snapshot(disk: &MemDisk) -> usize {
    disk.content("reserve-snapshot.zero").map_or(0, <[u8]>::len)
}

/// A table that has grown needs more for its next snapshot than was kept at the start.
#[test]
fn the_reserve_for_a_snapshot_grows_with_the_snapshots_and_survives_if_it_cannot() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    wal.restock().unwrap();
    let small = reserved_for_snapshot(wal.disk());
    wal.append(&[entry(1, 1, 30), entry(2, 1, 30), entry(3, 1, 30)]).unwrap();
    let save = |wal: &mut Wal<&mut MemDisk>, index| {
        wal.save_snapshot(SnapshotKind::Taken, Index(index), Term(1), &vec![1; 1 << 20], &[]).unwrap();
    };
    save(&mut wal, 1);
    // There is room for a part of the larger one, and the smaller one stays until it is whole.
    let used = wal.disk().used();
    wal.disk_mut().set_capacity(Some(used + (1 << 19)));
    assert_eq!(wal.restock().unwrap(), Space::Reserved);
    assert_eq!(reserved_for_snapshot(wal.disk()), small);
    assert_eq!(wal.disk().used(), used);
    wal.disk_mut().set_capacity(None);
    assert_eq!(wal.restock().unwrap(), Space::Enough);
    assert!(reserved_for_snapshot(wal.disk()) > 5 << 18, "{}", reserved_for_snapshot(wal.disk()));
    // From now on it can be saved on a full disk.
    let used = wal.disk().used();
    wal.disk_mut().set_capacity(Some(used));
    save(&mut wal, 2);
}

#[test]
fn a_larger_reserve_that_was_not_finished_is_removed() {
    let mut disk = MemDisk::new();
    drop(Wal::open(&mut disk, IDENTITY, reserving()).unwrap());
    disk.create("reserve-snapshot-larger.zero").unwrap();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, reserving()).unwrap();
    wal.append(&[entry(1, 1, 30)]).unwrap();
    wal.save_snapshot(SnapshotKind::Taken, Index(1), Term(1), &[1; 600], &[]).unwrap();
    assert!(wal.disk().content("reserve-snapshot-larger.zero").is_none());
}
