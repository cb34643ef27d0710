//! What a caller relies on besides survival: number of operations, refusals, identity, versions, new directories.

use crate::model::{IDENTITY, Model, entry, everything, run, short, small, states, vote};
use leasehold_wal::mem::{MemDisk, Op};
use leasehold_wal::{Disk, Identity, Index, OpenError, Options, SnapshotKind, Term, Wal, WriteError, verify};

const FIRST: &str = "segment-00000000000000000001.log";

#[test]
fn a_small_batch_is_one_write_and_one_sync() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, Options::default()).unwrap();
    wal.disk_mut().record();
    wal.append(&[vote(1, 1, 0), entry(1, 1, 100)]).unwrap();
    assert_eq!(wal.disk().journal(), [Op::Write(FIRST.to_owned(), 512, 512), Op::SyncData(FIRST.to_owned())]);
}

#[test]
fn a_whole_run_reads_back() {
    let steps = everything();
    let mut disk = MemDisk::new();
    assert_eq!(run(&mut disk, small(), &steps).error, None);
    let (mut wal, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    assert_eq!(Model::of(&recovered), *states(&steps).last().unwrap());
    let (meta, bytes) = recovered.snapshot.unwrap();
    assert_eq!(wal.load_snapshot().unwrap(), Some((meta, bytes)));
    assert!(wal.segments() <= 2, "old segments went");
}

#[test]
fn old_files_are_removed() {
    let mut disk = MemDisk::new();
    run(&mut disk, small(), &everything());
    let names = disk.list().unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("snapshot")).count(), 1, "{names:?}");
    assert!(!names.contains(&FIRST.to_owned()), "{names:?}");
}

#[test]
fn the_lock_file_and_other_files_are_left_alone() {
    let mut disk = MemDisk::new();
    disk.create("lock").unwrap();
    disk.create("note.tmp").unwrap();
    run(&mut disk, small(), &everything());
    Wal::open(&mut disk, IDENTITY, small()).unwrap();
    let names = disk.list().unwrap();
    assert!(names.contains(&"lock".to_owned()) && names.contains(&"note.tmp".to_owned()));
}

#[test]
fn a_gap_is_refused_without_effect() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    wal.append(&[entry(1, 1, 5)]).unwrap();
    let gap = wal.append(&[entry(2, 1, 5), entry(4, 1, 5)]).unwrap_err();
    assert_eq!(gap.to_string(), "index 4 is outside 1 to 3");
    assert!(matches!(
        wal.save_snapshot(SnapshotKind::Taken, Index(2), Term(1), &[], &[]),
        Err(WriteError::OutOfOrder { .. })
    ));
    wal.append(&[entry(2, 1, 5)]).unwrap();
    drop(wal);
    let (_, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    assert_eq!(recovered.entries.len(), 2);
}

#[test]
fn a_copied_directory_is_refused() {
    let mut disk = MemDisk::new();
    run(&mut disk, small(), &short());
    let error = Wal::open(&mut disk, Identity { lock_inode: 1 }, small()).unwrap_err();
    assert!(matches!(error, OpenError::CopiedDirectory { recorded: 4711, found: 1, .. }), "{error}");
}

#[test]
fn a_log_is_made_only_where_none_is_and_opened_only_where_it_must_be() {
    let must_exist = Options { must_exist: true, ..small() };
    let mut disk = MemDisk::new();
    assert!(matches!(Wal::open(&mut disk, IDENTITY, must_exist), Err(OpenError::Missing)));
    Wal::create(&mut disk, IDENTITY, small()).unwrap();
    assert!(matches!(Wal::create(&mut disk, IDENTITY, small()), Err(OpenError::Exists { .. })));
    let (_, recovered) = Wal::open(&mut disk, IDENTITY, must_exist).unwrap();
    assert!(!recovered.is_new);
}

#[test]
fn a_half_made_first_segment_is_a_new_directory_but_a_later_one_is_not() {
    for len in [0, 1, 511, 512, 4096] {
        let mut disk = MemDisk::new();
        disk.create(FIRST).unwrap();
        disk.write_at(FIRST, 0, &vec![0; len]).unwrap();
        let (_, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
        assert!(recovered.is_new, "{len} bytes");

        let mut disk = MemDisk::new();
        let second = "segment-00000000000000000002.log";
        disk.create(second).unwrap();
        disk.write_at(second, 0, &vec![0; len]).unwrap();
        let error = Wal::open(&mut disk, IDENTITY, small()).unwrap_err();
        assert!(error.to_string().starts_with(FIRST), "{error}");
    }
}

#[test]
fn a_snapshot_without_a_log_is_not_a_new_directory() {
    let mut disk = MemDisk::new();
    disk.create("snapshot-00000000000000000005.snap").unwrap();
    assert!(matches!(Wal::open(&mut disk, IDENTITY, small()), Err(OpenError::Damage(_))));
}

#[test]
fn every_missing_file_is_named() {
    let mut whole = MemDisk::new();
    run(&mut whole, small(), &short());
    let counted = whole.list().unwrap();
    assert!(counted.len() >= 3, "{counted:?}");
    for name in counted {
        let mut disk = whole.clone();
        disk.remove(&name).unwrap();
        match Wal::open(&mut disk, IDENTITY, small()) {
            Err(OpenError::Damage(damage)) => assert_eq!(damage.file, name),
            Err(error) => panic!("{name}: {error}"),
            Ok(_) => panic!("{name} is not missed"),
        }
    }
}

#[test]
fn verify_changes_nothing_and_tells_what_opening_would_do() {
    let steps = everything();
    let mut disk = MemDisk::new();
    disk.stop_after(60);
    run(&mut disk, small(), &steps);
    disk.restart();
    let before = disk.operations();
    let report = verify(&mut disk);
    assert_eq!(disk.operations(), before);
    assert!(report.problem.is_none() && report.lock_inode == Some(4711));
    let (_, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    assert_eq!(report.cut, recovered.cut);
    let ends = recovered.entries.first().zip(recovered.entries.last());
    assert_eq!(report.entries, ends.map(|(first, last)| (first.index, last.index)));
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    let mut disk = MemDisk::new();
    let (mut wal, _) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    wal.append(&[entry(1, 1, 100_000)]).unwrap();
    wal.append(&[entry(2, 1, 10)]).unwrap();
    drop(wal);
    let (_, recovered) = Wal::open(&mut disk, IDENTITY, small()).unwrap();
    assert_eq!(recovered.entries.iter().map(|entry| entry.payload.len()).collect::<Vec<_>>(), [100_000, 10]);
}
