//! Rot: every byte flipped, every block zeroed, blocks of another history put in.

use crate::checker::Verdict;
use crate::model::{IDENTITY, Model, Step, entry, run, short, small, states, vote};
use leasehold_wal::mem::MemDisk;
use leasehold_wal::{Disk, OpenError, Options, Wal, salvage, verify};

/// A log of two segments and a snapshot, what it must say, and the blocks of its last batch.
fn sample() -> (MemDisk, Model, String, std::ops::Range<usize>) {
    let steps = short();
    let mut disk = MemDisk::new();
    assert_eq!(run(&mut disk, small(), &steps).error, None);
    let report = verify(&mut disk);
    assert!(report.problem.is_none() && report.segments.len() >= 2, "{report:?}");
    let last = report.segments.last().expect("there are two");
    let end = usize::try_from(last.used_bytes).expect("a small log") / 512;
    // The last step is a batch of three blocks.
    let range = end - 3..end;
    (disk, states(&steps).pop().expect("the first state is there"), last.file.clone(), range)
}

fn names(disk: &MemDisk) -> Vec<String> {
    disk.clone().list().expect("listing memory does not fail")
}

fn content<'a>(disk: &'a MemDisk, name: &str) -> &'a [u8] {
    disk.content(name).expect("the name was listed")
}

/// Opened with everything answered, or refused by naming the file and a place in or before the change.
fn judge(disk: &mut MemDisk, options: Options, expected: &Model, file: &str, at: usize) -> Verdict {
    match Wal::open(disk, IDENTITY, options) {
        Ok((_, recovered)) if Model::of(&recovered) == *expected => Ok(()),
        Ok(_) => Err(format!("{file} changed at {at}: opened with something else")),
        Err(OpenError::Damage(damage)) if damage.file == file && damage.offset <= at as u64 => Ok(()),
        Err(error) => Err(format!("{file} changed at {at}: {error}")),
    }
}

fn flip_every_byte(options: Options) -> Verdict {
    let (whole, expected, ..) = sample();
    for file in names(&whole) {
        for at in 0..content(&whole, &file).len() {
            let mut disk = whole.clone();
            disk.edit(&file, |bytes| bytes[at] ^= 0x40);
            judge(&mut disk, options, &expected, &file, at)?;
        }
    }
    Ok(())
}

/// The last batch is where a cut is tempting: every byte of it, by itself.
pub(crate) fn flip_in_last_batch(options: Options) -> Verdict {
    let (whole, expected, file, blocks) = sample();
    for at in blocks.start * 512..blocks.end * 512 {
        let mut disk = whole.clone();
        disk.edit(&file, |bytes| bytes[at] ^= 0x40);
        judge(&mut disk, options, &expected, &file, at)?;
    }
    Ok(())
}

#[test]
fn a_flipped_byte_anywhere_is_refused_with_its_place() {
    flip_every_byte(small()).unwrap();
}

#[test]
fn every_flipped_byte_in_the_written_part_is_in_fact_refused() {
    let (whole, ..) = sample();
    let mut opened = 0;
    for segment in verify(&mut whole.clone()).segments {
        for at in 0..usize::try_from(segment.bytes).unwrap() {
            let mut disk = whole.clone();
            disk.edit(&segment.file, |bytes| bytes[at] ^= 1);
            opened += usize::from(Wal::open(&mut disk, IDENTITY, small()).is_ok());
        }
    }
    assert_eq!(opened, 0);
}

/// A zeroed block of the last batch is what a crash before its sync leaves: it is cut, and nothing else is lost with it.
#[test]
fn a_zeroed_block_is_refused_unless_it_is_of_the_last_batch() {
    let (whole, expected, last_file, last_batch) = sample();
    let steps = short();
    let without_last = &states(&steps)[steps.len() - 1];
    let mut cut = 0;
    for file in names(&whole) {
        for block in 0..content(&whole, &file).len().div_ceil(512) {
            let mut disk = whole.clone();
            disk.edit(&file, |bytes| {
                let end = bytes.len().min(block * 512 + 512);
                bytes[block * 512..end].fill(0);
            });
            let of_last_batch = file == last_file && last_batch.contains(&block);
            let expected = if of_last_batch { without_last } else { &expected };
            judge(&mut disk, small(), expected, &file, block * 512).unwrap();
            cut += usize::from(of_last_batch);
        }
    }
    assert_eq!(cut, 3);
}

#[test]
fn a_file_of_another_length_is_refused() {
    let (whole, expected, ..) = sample();
    for file in names(&whole) {
        for len in [0, 100, 512, 1024, 3000, 4096] {
            let mut disk = whole.clone();
            let old = content(&disk, &file).len();
            for new in [old.saturating_sub(len), old + len] {
                disk.edit(&file, |bytes| bytes.resize(new, 0));
                judge(&mut disk, small(), &expected, &file, old.max(new)).unwrap();
            }
        }
    }
}

/// A disk that lost a write kept the block of an older history: good in itself, and not what was answered.
pub(crate) fn transplant(options: Options) -> Verdict {
    let mut histories = [MemDisk::new(), MemDisk::new()];
    let mut files = Vec::new();
    for (disk, vote_for) in histories.iter_mut().zip([1, 2]) {
        let steps = [
            Step::Append(vec![vote(1, vote_for, 0)]),
            Step::Append(vec![entry(1, 1, 20)]),
            Step::Append(vec![entry(2, 1, 20)]),
        ];
        run(disk, options, &steps);
        files = names(disk);
    }
    let [mut disk, other] = histories;
    let block = content(&other, &files[0])[512..1024].to_vec();
    disk.edit(&files[0], |bytes| bytes[512..1024].copy_from_slice(&block));
    match Wal::open(&mut disk, IDENTITY, options) {
        Ok(_) => Err("a vote of another history was taken".to_owned()),
        Err(OpenError::Damage(damage)) if damage.offset == 1024 => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_good_block_of_another_history_is_noticed() {
    transplant(small()).unwrap();
}

#[test]
fn blocks_that_changed_places_are_noticed() {
    let (whole, expected, file, _) = sample();
    let blocks = content(&whole, &file).len() / 512;
    for a in 0..blocks {
        for b in a + 1..blocks {
            let mut disk = whole.clone();
            disk.edit(&file, |bytes| {
                let (low, high) = bytes.split_at_mut(b * 512);
                low[a * 512..][..512].swap_with_slice(&mut high[..512]);
            });
            judge(&mut disk, small(), &expected, &file, b * 512).unwrap();
        }
    }
}

#[test]
fn salvage_gives_what_is_good_before_the_damage() {
    let (mut disk, _, file, last_batch) = sample();
    disk.edit(&file, |bytes| bytes[last_batch.start * 512 + 100] ^= 1);
    let (recovered, problem) = salvage(&mut disk);
    let steps = short();
    assert_eq!(Model::of(&recovered), states(&steps)[steps.len() - 1]);
    assert!(matches!(problem, Some(OpenError::Damage(damage)) if damage.file == file));
}
