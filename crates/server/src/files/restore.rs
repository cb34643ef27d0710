//! From a backup file to a directory that can be served.
//!
//! The directory is made aside and gets its name by one rename when everything in it is durable; a restore that is interrupted leaves
//! the name free, an epoch that is used up, and something aside that the next restore removes.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::backup::read_backup;
use super::identity::{draw_id, write_member_id};
use super::life::{Begun, Choices, Heir, State, heir, write_log};
use super::note::Note;
use super::whole::{beside, exists, parent, sync_directory};
use super::{FilesError, failed};
use crate::directory::{Kind, Locked, lock_holder};

/// Makes a directory of a backup, as a cluster of one with a greater epoch. Nothing is granted there until nobody can believe in a
/// lease from before.
///
/// # Errors
/// When the file is damaged, the directory exists, or it is not known whether the epoch would be greater than all before.
pub fn restore(file: &Path, directory: &Path, choices: &Choices) -> Result<Begun, FilesError> {
    if exists(directory) {
        return Err(FilesError::Exists { path: directory.to_owned() });
    }
    // Two restores of one file at once must not read the same note.
    let held = File::open(file).map_err(failed("open", file))?;
    flock(&held, FlockOperation::LockExclusive).map_err(|errno| failed("lock", file)(errno.into()))?;
    let backup = read_backup(file)?;
    let state_error = |why| FilesError::State { path: file.to_owned(), why };
    let state = State::of_snapshot(&backup.snapshot).map_err(state_error)?;
    let wait = choices.wait(state.table.config())?;
    let id = draw_id().map_err(failed("draw an id for", directory))?;
    let member = heir(choices, None, id)?;
    let mut note = Note::read(beside(file, ".restores"))?;
    if !note.is_there() && choices.above.is_none() && !choices.is_only_one {
        let (what, sure) = ("restored", "--first-restore");
        return Err(FilesError::EpochUnknown { path: file.to_owned(), what, sure });
    }
    let mut aside = lock_aside(directory)?;
    let epoch = note.hand_out(file, state.table.epoch(), choices.above)?;
    drop(held);
    let (snapshot, incarnation) =
        state.begin(&Heir::Served(member.clone()), epoch, wait).map_err(state_error)?;

    let path = beside_hidden(directory);
    write_member_id(&path, id)?;
    write_log(&aside.log_directory()?, &path, aside.inode()?, &snapshot)?;
    aside.found()?;
    sync_directory(&path)?;
    // Never over a directory with anything in it: the system refuses that.
    std::fs::rename(&path, directory).map_err(failed("make", directory))?;
    sync_directory(parent(directory))?;
    Ok(Begun {
        directory: directory.to_owned(),
        member: Some(member),
        incarnation,
        epoch: epoch.get(),
        index: snapshot.index,
        wait,
        kept: None,
    })
}

/// A place of its own beside the directory, on the same file system. What an interrupted restore left there is removed.
fn lock_aside(directory: &Path) -> Result<Locked, FilesError> {
    let path = beside_hidden(directory);
    let in_use = || {
        let pid = lock_holder(&path).map_or(0, |holder| holder.pid);
        FilesError::InUse { path: path.clone(), pid }
    };
    if exists(&path) {
        let _left = Locked::try_lock(&path, Kind::Served, false)?.ok_or_else(in_use)?;
        std::fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
    }
    Locked::try_lock(&path, Kind::Served, false)?.ok_or_else(in_use)
}

fn beside_hidden(directory: &Path) -> std::path::PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.with_file_name(format!(".{name}.restoring"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::backup::{backup_file, save_backup};
    use crate::files::tests::small_snapshot;
    use crate::files::verify;
    use leasehold_core::{Epoch, Token};

    fn first() -> Choices {
        Choices { is_only_one: true, ..Choices::default() }
    }

    fn stage() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("backup");
        save_backup(&file, &backup_file(small_snapshot())).unwrap();
        (root, file)
    }

    #[test]
    fn a_restored_directory_is_whole_and_each_restore_is_above_the_last() {
        let (root, file) = stage();
        let one = restore(&file, &root.path().join("one"), &first()).unwrap();
        let two = restore(&file, &root.path().join("two"), &Choices::default()).unwrap();
        assert_eq!((one.epoch, two.epoch), (1, 2));
        assert_ne!(one.incarnation, two.incarnation);
        assert_ne!(one.member.unwrap().id, two.member.unwrap().id);
        for name in ["one", "two"] {
            let found = verify(&root.path().join(name)).unwrap();
            assert!(found.problems.is_empty(), "{:?}", found.problems);
            assert_eq!(found.members.len(), 1);
        }
        assert!(!root.path().join(".one.restoring").exists());
    }

    #[test]
    fn without_a_word_about_earlier_restores_nothing_is_made() {
        let (root, file) = stage();
        let refused = restore(&file, &root.path().join("one"), &Choices::default()).unwrap_err();
        assert!(matches!(refused, FilesError::EpochUnknown { .. }), "{refused}");
        let names: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["backup"]);
        let above = Some(Token::new(Epoch::new(41).unwrap(), 1).unwrap());
        let done = restore(&file, &root.path().join("one"), &Choices { above, ..Choices::default() });
        assert_eq!(done.unwrap().epoch, 42);
    }

    #[test]
    fn a_directory_that_exists_is_left_alone() {
        let (root, file) = stage();
        let there = root.path().join("there");
        std::fs::create_dir(&there).unwrap();
        let refused = restore(&file, &there, &first()).unwrap_err();
        assert!(matches!(refused, FilesError::Exists { .. }), "{refused}");
    }

    #[test]
    fn what_an_interrupted_restore_left_aside_does_not_matter() {
        let (root, file) = stage();
        let left = root.path().join(".one.restoring");
        std::fs::create_dir_all(left.join("log")).unwrap();
        std::fs::write(left.join("log/segment-00000000000000000001.log"), "half").unwrap();
        restore(&file, &root.path().join("one"), &first()).unwrap();
        assert!(!left.exists());
        assert!(verify(&root.path().join("one")).unwrap().problems.is_empty());
    }

    #[test]
    fn a_damaged_file_makes_nothing() {
        let (root, file) = stage();
        let mut bytes = std::fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&file, bytes).unwrap();
        assert!(restore(&file, &root.path().join("one"), &first()).is_err());
        assert!(!root.path().join("one").exists() && !root.path().join("backup.restores").exists());
    }
}
