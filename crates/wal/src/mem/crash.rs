//! What a loss of power can leave.

use super::{Change, File, FileId, MemDisk, SECTOR, apply};
use std::collections::{BTreeMap, BTreeSet};

/// The states that a crash can leave, each as a list of decisions for [`MemDisk::crash`].
#[derive(Debug, Clone)]
pub struct CrashChoices {
    /// The states.
    pub choices: Vec<Vec<usize>>,
    /// Whether these are all there are.
    pub is_exhaustive: bool,
}

/// A sector with more than one possible content.
struct Slot<'a> {
    file: FileId,
    sector: usize,
    /// What may be there; `None` is what was durable before.
    contents: Vec<Option<&'a [u8]>>,
}

impl MemDisk {
    /// Up to about `limit` states that a crash now can leave: all of them if there are no more than that, else nothing, everything,
    /// everything but one, one alone, everything up to a point, and a sample drawn from `seed`.
    pub fn crash_choices(&self, limit: usize, seed: u64) -> CrashChoices {
        let options: Vec<usize> = self
            .slots()
            .iter()
            .map(|slot| slot.contents.len())
            .chain(self.changes.iter().map(|_| 2))
            .collect();
        let total = options.iter().try_fold(1usize, |total, count| total.checked_mul(*count));
        if let Some(total) = total.filter(|total| *total <= limit) {
            let choices = (0..total).map(|number| digits(number, &options)).collect();
            return CrashChoices { choices, is_exhaustive: true };
        }
        let none = vec![0; options.len()];
        let all: Vec<usize> = options.iter().map(|count| count - 1).collect();
        let mut choices = BTreeSet::from([none.clone(), all.clone()]);
        for i in 0..options.len() {
            let (mut without, mut alone, mut up_to) = (all.clone(), none.clone(), none.clone());
            without[i] = 0;
            alone[i] = all[i];
            up_to[..i].copy_from_slice(&all[..i]);
            choices.extend([without, alone, up_to]);
        }
        let mut random = seed;
        for _ in 0..limit {
            choices.insert(options.iter().map(|count| next_random(&mut random) % count).collect());
        }
        CrashChoices { choices: choices.into_iter().collect(), is_exhaustive: false }
    }

    /// The disk after a crash: one decision for each sector with unsynced content, then one for each unsynced change of the
    /// directory, as [`MemDisk::crash_choices`] lists them.
    #[must_use]
    pub fn crash(&self, choice: &[usize]) -> Self {
        let slots = self.slots();
        assert_eq!(choice.len(), slots.len() + self.changes.len(), "one decision for each open question");
        let mut names = self.durable.clone();
        for (change, decision) in self.changes.iter().zip(&choice[slots.len()..]) {
            if *decision == 1 {
                apply(&mut names, &change.names);
            }
        }
        let mut contents: BTreeMap<FileId, Vec<u8>> =
            names.values().map(|id| (*id, self.file(*id).durable.clone())).collect();
        for (slot, decision) in slots.iter().zip(choice) {
            if let (Some(content), Some(bytes)) = (contents.get_mut(&slot.file), slot.contents[*decision]) {
                let from = slot.sector * SECTOR;
                if content.len() < from + bytes.len() {
                    content.resize(from + bytes.len(), 0);
                }
                content[from..from + bytes.len()].copy_from_slice(bytes);
            }
        }
        let files = contents
            .into_iter()
            .map(|(id, bytes)| (id, File { seen: bytes.clone(), durable: bytes, writes: Vec::new() }))
            .collect();
        Self { files, seen: names.clone(), durable: names, next_file: self.next_file, ..Self::default() }
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        let mut slots = Vec::new();
        for (id, file) in &self.files {
            let mut sectors: BTreeMap<usize, Vec<Option<&[u8]>>> = BTreeMap::new();
            for write in &file.writes {
                let from = write.sector * SECTOR;
                let before =
                    file.durable.get(from..file.durable.len().min(from + SECTOR)).unwrap_or_default();
                let contents = sectors.entry(write.sector).or_insert_with(|| vec![None]);
                if write.bytes != before && !contents.contains(&Some(&write.bytes)) {
                    contents.push(Some(&write.bytes));
                }
            }
            let open = sectors.into_iter().filter(|(_, contents)| contents.len() > 1);
            slots.extend(open.map(|(sector, contents)| Slot { file: *id, sector, contents }));
        }
        slots
    }

    /// Drops the content of files that no name can stand for any more.
    pub(super) fn forget_unreachable(&mut self) {
        let in_change = |change: &Change| change.names.iter().filter_map(|(_, id)| *id).collect::<Vec<_>>();
        let mut reachable: BTreeSet<FileId> =
            self.seen.values().chain(self.durable.values()).copied().collect();
        reachable.extend(self.changes.iter().flat_map(in_change));
        self.files.retain(|id, _| reachable.contains(id));
    }
}

/// A number written with a base for each digit.
fn digits(mut number: usize, bases: &[usize]) -> Vec<usize> {
    bases
        .iter()
        .map(|base| {
            let digit = number % base;
            number /= base;
            digit
        })
        .collect()
}

/// SplitMix64: small, and the same on every machine.
fn next_random(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((z ^ (z >> 31)) >> 33).expect("31 bits fit")
}

#[cfg(test)]
mod tests {
    use super::super::{Fault, MemDisk};
    use crate::disk::Disk;

    fn outcomes(disk: &MemDisk, name: &str) -> Vec<Option<Vec<u8>>> {
        let states = disk.crash_choices(1 << 10, 1);
        assert!(states.is_exhaustive);
        let mut found: Vec<_> = states
            .choices
            .iter()
            .map(|choice| disk.crash(choice).content(name).map(<[u8]>::to_vec))
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn disk_with_durable_file() -> MemDisk {
        let mut disk = MemDisk::new();
        disk.create("a").unwrap();
        disk.write_at("a", 0, &[1; 1024]).unwrap();
        disk.sync_all("a").unwrap();
        disk.sync_dir().unwrap();
        disk
    }

    #[test]
    fn a_synced_file_in_a_synced_directory_has_one_outcome() {
        assert_eq!(outcomes(&disk_with_durable_file(), "a"), [Some(vec![1; 1024])]);
    }

    #[test]
    fn unsynced_sectors_may_be_lost_one_by_one() {
        let mut disk = disk_with_durable_file();
        disk.write_at("a", 0, &[2; 1024]).unwrap();
        assert_eq!(outcomes(&disk, "a").len(), 4);
        disk.write_at("a", 0, &[3; 512]).unwrap();
        assert_eq!(outcomes(&disk, "a").len(), 6);
        disk.sync_data("a").unwrap();
        assert_eq!(outcomes(&disk, "a").len(), 1);
    }

    #[test]
    fn a_synced_file_without_a_synced_directory_may_be_gone() {
        let mut disk = MemDisk::new();
        disk.create("a").unwrap();
        disk.write_at("a", 0, &[1; 512]).unwrap();
        disk.sync_all("a").unwrap();
        assert_eq!(outcomes(&disk, "a"), [None, Some(vec![1; 512])]);
    }

    #[test]
    fn removals_may_become_durable_in_any_order() {
        let mut disk = disk_with_durable_file();
        disk.create("b").unwrap();
        disk.sync_dir().unwrap();
        disk.remove("a").unwrap();
        disk.remove("b").unwrap();
        let states = disk.crash_choices(16, 1);
        let only_a = |choice: &Vec<usize>| disk.crash(choice).list().unwrap() == ["a"];
        assert!(states.choices.iter().any(only_a));
    }

    #[test]
    fn what_a_failed_sync_lost_is_not_written_by_the_next() {
        let mut disk = disk_with_durable_file();
        disk.write_at("a", 0, &[2; 512]).unwrap();
        disk.fail_after(0, Fault::Io);
        disk.sync_data("a").unwrap_err();
        disk.sync_data("a").unwrap();
        assert_eq!(disk.content("a").unwrap()[0], 2);
        assert_eq!(outcomes(&disk, "a").len(), 2);
        disk.write_at("a", 0, &[2; 512]).unwrap();
        disk.sync_data("a").unwrap();
        assert_eq!(outcomes(&disk, "a").len(), 1);
    }

    #[test]
    fn a_directory_change_lost_by_a_failed_sync_is_not_written_by_the_next() {
        let mut disk = MemDisk::new();
        disk.create("a").unwrap();
        disk.fail_after(0, Fault::Io);
        disk.sync_dir().unwrap_err();
        disk.sync_dir().unwrap();
        assert_eq!(outcomes(&disk, "a"), [None, Some(vec![])]);
        disk.remove("a").unwrap();
        disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        assert_eq!(outcomes(&disk, "a"), [Some(vec![])]);
    }
}
