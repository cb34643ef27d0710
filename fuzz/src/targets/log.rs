//! The log on disk. A directory that opens must open again to the same, and what was recovered must survive being written anew.

use std::sync::LazyLock;

use leasehold_wal::mem::MemDisk;
use leasehold_wal::{
    BLOCK_BYTES, Disk as _, Entry, HardState, Identity, Index, NodeId, Options, Record, Recovered,
    SnapshotKind, Term, Wal, salvage, verify,
};

use super::sealing;
use crate::Shape;

const IDENTITY: Identity = Identity { lock_inode: 77 };
/// Blocks of the segments that are tried: the fewest that a segment has.
const BLOCKS: usize = 8;

fn options() -> Options {
    let bytes = (BLOCKS * BLOCK_BYTES) as u64;
    Options { first_segment_bytes: bytes, segment_bytes: bytes, ..Options::default() }
}

/// Records as they stand in segments of real logs, each batch behind its length of two bytes.
pub(super) fn record_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for disk in logs() {
        for (name, _) in segments(&disk) {
            let file = disk.content(&name).expect("the log has just named it");
            let batches = sealing::records(file);
            seeds.push(batches.iter().flat_map(|batch| with_length(batch)).collect());
        }
    }
    seeds
}

fn with_length(batch: &[u8]) -> Vec<u8> {
    let length = u16::try_from(batch.len()).expect("the batches of a seed are short");
    [&length.to_le_bytes(), batch].concat()
}

/// A single segment with these records in it.
pub(super) fn check_records(input: &[u8]) -> Shape {
    let mut batches = Vec::new();
    let mut rest = input;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (batch, behind) = behind.split_at(length);
        batches.push(batch);
        rest = behind;
    }
    let first = sealing::segment(&batches, 1, 1, BLOCKS);
    let mut disk = MemDisk::new();
    put(&mut disk, &segment_name(1), &first);
    // The snapshots that the records of the seeds speak of.
    for (name, content) in SNAPSHOTS.iter() {
        put(&mut disk, name, content);
    }
    look(&disk)
}

/// Directories of real logs. A file is a kind, a number, its length, and its bytes without the zeros at the end.
pub(super) fn file_seeds() -> Vec<Vec<u8>> {
    let image = |disk: &MemDisk| {
        let mut bytes = vec![1];
        for name in names(disk) {
            let Some((kind, number)) = parse_name(&name) else { continue };
            let content = disk.content(&name).expect("the disk has just named it");
            let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.push(kind);
            bytes.extend_from_slice(&number.to_le_bytes());
            for length in [content.len(), used] {
                let length = u16::try_from(length).expect("the files of a seed are short");
                bytes.extend_from_slice(&length.to_le_bytes());
            }
            bytes.extend_from_slice(&content[..used]);
        }
        bytes
    };
    logs().iter().map(image).collect()
}

/// A directory with these files in it, as they are or with their checksums made right.
pub(super) fn check_files(input: &[u8]) -> Shape {
    let Some((&mode, mut rest)) = input.split_first() else { return Shape::of(&()) };
    let mut disk = MemDisk::new();
    while let Some((head, behind)) = rest.split_first_chunk::<13>() {
        let number = u64::from_le_bytes(head[1..9].try_into().expect("eight bytes were sliced"));
        let used = usize::from(u16::from_le_bytes([head[11], head[12]])).min(behind.len());
        let (bytes, behind) = behind.split_at(used);
        let mut file = bytes.to_vec();
        file.resize(usize::from(u16::from_le_bytes([head[9], head[10]])), 0);
        let is_segment = head[0] % 4 != 1;
        match mode % 2 {
            1 if is_segment => sealing::reseal_segment(&mut file),
            1 => sealing::reseal_snapshot(&mut file),
            _ => {}
        }
        let name = if is_segment { segment_name(number) } else { format!("snapshot-{number:020}.snap") };
        put(&mut disk, &name, &file);
        rest = behind;
    }
    look(&disk)
}

/// Opens a directory, by every way there is.
fn look(disk: &MemDisk) -> Shape {
    let report = verify(&mut disk.clone());
    let (saved, problem) = salvage(&mut disk.clone());
    assert_eq!(report.problem.is_some(), problem.is_some(), "two readers do not agree whether it is damaged");
    let said = problem.as_ref().map(ToString::to_string).unwrap_or_default();
    let shape = Shape::of(&report).and(Shape::of_words(&said));
    let identity = Identity { lock_inode: report.lock_inode.unwrap_or(IDENTITY.lock_inode) };
    let (wal, found) = match Wal::open(disk.clone(), identity, options()) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(problem.is_some(), "it does not open, but no reader sees why: {error}");
            return shape.and(Shape::of_words(&error.to_string()));
        }
    };
    assert!(problem.is_none(), "it opens, but a reader says it is damaged: {problem:?}");
    if !saved.is_new {
        assert_eq!(essence(&saved), essence(&found), "two readers find different things");
    }
    let again = Wal::open(wal.into_disk(), identity, options());
    let (_, again) = again.expect("what was opened once opens again");
    assert_eq!(essence(&found), essence(&again), "a log that was opened is another one afterwards");
    assert!(again.cut.is_none(), "what was cut is cut again");
    write_anew(&found);
    shape
}

/// Writes what was found into a log of its own, and finds it again.
fn write_anew(found: &Recovered) {
    let mut wal = Wal::create(MemDisk::new(), IDENTITY, options()).expect("an empty disk takes a log");
    let mut records = vec![Record::HardState(found.hard_state)];
    if let Some((meta, bytes)) = &found.snapshot {
        wal.save_snapshot(SnapshotKind::Installed, meta.index, meta.term, bytes, &[])
            .expect("a snapshot that was recovered can be written");
    }
    records.extend(found.entries.iter().cloned().map(Record::Entry));
    wal.append(&records).expect("what was recovered can be written");
    let (_, again) = Wal::open(wal.into_disk(), IDENTITY, options()).expect("what was written opens");
    let (before, after) = (essence(found), essence(&again));
    assert_eq!((before.0, before.1), (after.0, after.1), "what was written anew is not what was found");
    let place = |found: &Recovered| {
        found.snapshot.as_ref().map(|(meta, bytes)| (meta.index, meta.term, bytes.clone()))
    };
    assert_eq!(place(found), place(&again), "the snapshot is another one");
}

type Essence = (HardState, Vec<Entry>, Option<(leasehold_wal::SnapshotMeta, Vec<u8>)>);

fn essence(found: &Recovered) -> Essence {
    (found.hard_state, found.entries.clone(), found.snapshot.clone())
}

/// Logs in the states that a log can be in.
fn logs() -> Vec<MemDisk> {
    let entry = |index, size| {
        Record::Entry(Entry { index: Index(index), term: Term(2), kind: 0, payload: vec![7; size] })
    };
    let vote = HardState { term: Term(2), vote: Some(NodeId(3)), commit: Index(1) };
    let mut wal = Wal::create(MemDisk::new(), IDENTITY, options()).expect("an empty disk takes a log");
    let mut disks = vec![wal.disk().clone()];
    let append = |records: &[Record], disks: &mut Vec<MemDisk>, wal: &mut Wal<MemDisk>| {
        wal.append(records).expect("a disk in memory takes it");
        disks.push(wal.disk().clone());
    };
    append(&[Record::HardState(vote), entry(1, 3)], &mut disks, &mut wal);
    append(&[entry(2, 600)], &mut disks, &mut wal);
    append(&[entry(2, 1), entry(3, 1)], &mut disks, &mut wal);
    wal.save_snapshot(SnapshotKind::Taken, Index(2), Term(2), b"a snapshot of a table", &[])
        .expect("a disk in memory takes it");
    disks.push(wal.disk().clone());
    append(&[entry(4, 900)], &mut disks, &mut wal);
    append(&[entry(5, 1200)], &mut disks, &mut wal);
    wal.save_snapshot(SnapshotKind::Installed, Index(9), Term(3), b"a snapshot of a leader", &[])
        .expect("a disk in memory takes it");
    disks.push(wal.disk().clone());
    disks
}

/// The snapshot files of those logs.
static SNAPSHOTS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let of = |disk: &MemDisk| {
        let snapshots = names(disk).into_iter().filter(|name| name.ends_with(".snap"));
        let content = |name: String| disk.content(&name).map(|content| (name.clone(), content.to_vec()));
        snapshots.filter_map(content).collect::<Vec<_>>()
    };
    logs().iter().flat_map(of).collect()
});

fn put(disk: &mut MemDisk, name: &str, bytes: &[u8]) {
    if disk.create(name).is_ok() {
        disk.edit(name, |content| *content = bytes.to_vec());
        disk.sync_dir().expect("a disk in memory has no faults");
    }
}

fn names(disk: &MemDisk) -> Vec<String> {
    let mut names = disk.clone().list().expect("a disk in memory has no faults");
    names.sort();
    names
}

fn segments(disk: &MemDisk) -> Vec<(String, u64)> {
    let number =
        |name: String| parse_name(&name).filter(|(kind, _)| *kind == 0).map(|(_, number)| (name, number));
    names(disk).into_iter().filter_map(number).collect()
}

fn segment_name(number: u64) -> String {
    format!("segment-{number:020}.log")
}

fn parse_name(name: &str) -> Option<(u8, u64)> {
    let number = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok();
    let segment = number("segment-", ".log").map(|number| (0, number));
    segment.or_else(|| number("snapshot-", ".snap").map(|number| (1, number)))
}
