//! Backup files, as they are and with their checksums made right. One that is good must be restored to a directory that is good.

use std::path::PathBuf;
use std::sync::LazyLock;

use leasehold_core::Config;
use leasehold_host::{Choices, backup_file, read_backup, restore, verify};
use leasehold_node::{SavedSnapshot, founding_snapshot};
use tempfile::TempDir;

use super::values::member;
use super::{sealing, snapshot};
use crate::Shape;

/// In memory, where there is a file system of that kind: an input costs some writes.
static PLACE: LazyLock<TempDir> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a directory for files of this run")
});

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![backup_file(founding_snapshot(&Config::default(), vec![member(7)]))];
    let saved = |bytes| SavedSnapshot { index: 17, term: 3, bytes };
    seeds.extend(snapshot::snapshot_seeds().into_iter().map(saved).map(backup_file));
    seeds
}

pub(super) fn check(input: &[u8]) -> Shape {
    let raw = look(input);
    let mut resealed = input.to_vec();
    sealing::reseal_backup(&mut resealed);
    raw.and(look(&resealed))
}

fn look(bytes: &[u8]) -> Shape {
    let file = PLACE.path().join("backup");
    std::fs::write(&file, bytes).expect("there is room for a small file");
    let read = read_backup(&file);
    let shape = Shape::of(&read.as_ref().map(|backup| backup.epoch));
    let verified = match verify(&file) {
        Ok(verified) => verified,
        Err(error) => return shape.and(Shape::of_words(&error.to_string())),
    };
    assert!(read.is_ok() || !verified.problems.is_empty(), "one reader takes it, another does not");
    let words = |what: &leasehold_host::Problem| what.what.clone();
    let problems = Shape::of_words(&verified.problems.iter().map(words).collect::<String>());
    let Ok(backup) = read else { return shape.and(problems) };
    if verified.problems.is_empty() {
        let written = backup_file(backup.snapshot.clone());
        std::fs::write(&file, written).expect("there is room for a small file");
        let again = read_backup(&file).expect("what was written is read");
        assert_eq!(again.snapshot, backup.snapshot, "a snapshot comes out as another");
        return shape.and(bring_back(&file));
    }
    shape.and(problems)
}

/// Restores the backup, which is good.
fn bring_back(file: &std::path::Path) -> Shape {
    let directory = PLACE.path().join("restored");
    let _ = std::fs::remove_dir_all(&directory);
    for note in ["backup.restores", "leasehold.restores"] {
        let _ = std::fs::remove_file(PLACE.path().join(note));
    }
    let choices = Choices {
        is_only_one: true,
        name: Some("n1".to_owned()),
        address: Some("127.0.0.1:7420".to_owned()),
        ..Choices::default()
    };
    match restore(file, &directory, &choices) {
        Ok(begun) => {
            let found = verify(&directory).expect("what was restored can be looked at");
            assert!(found.problems.is_empty(), "what was restored is not good: {:?}", found.problems);
            assert_eq!((found.epoch, found.index), (Some(begun.epoch), Some(begun.index)));
            Shape::of(&found.members)
        }
        Err(error) => Shape::of_words(&error.to_string()),
    }
}
