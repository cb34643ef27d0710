//! From a backup file to a directory that can be served.
//!
//! The directory is made aside and gets its name by one rename when everything in it is durable; a restore that is interrupted leaves
//! the name free, an epoch that is used up, and something aside that the next restore removes.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::backup::read_backup;
use super::identity::{draw_id, write_member_id};
use super::life::{Begun, Choices, Heir, State, heir, write_log};
use super::note::{Notes, for_all_beside};
use super::recover::in_use;
use super::whole::{beside, parent, sync_directory};
use super::{FilesError, failed};
use crate::directory::{Kind, Locked, exists};

/// Makes a directory of a backup, as a cluster of one with a greater epoch. Nothing is granted there until nobody can believe in a
/// lease from before.
///
/// # Errors
/// When the file is damaged, the directory has something in it, or it is not known whether the epoch would be greater than all before.
pub fn restore(file: &Path, directory: &Path, choices: &Choices) -> Result<Begun, FilesError> {
    let directory = &free_place(directory)?;
    // Notes lie beside the file itself, by whatever name it is reached.
    let real = std::fs::canonicalize(file).map_err(failed("open", file))?;
    let backup = read_backup(file)?;
    let state = State::of_snapshot(&backup.snapshot).map_err(|unusable| unusable.of(file))?;
    let state_error = |why| FilesError::State { path: file.to_owned(), why };
    let wait = choices.wait(state.table.config())?;
    let id = draw_id().map_err(failed("draw an id for", directory))?;
    // Which of several this place is to be, nobody but the operator knows.
    let before = match state.roster.members.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    let member = heir(choices, before, id)?;
    let address_is_guessed = choices.guesses_address(before);
    // A note cannot stand in for this word: it knows nothing of lives that were begun elsewhere.
    if choices.above.is_none() && !choices.is_only_one {
        let what = "since it was made a backup of its store was restored, this one or another, or a node of it recovered";
        let sure = "--first-restore";
        return Err(FilesError::EpochUnknown { path: file.to_owned(), what, sure });
    }
    let mut aside = lock_aside(directory)?;
    let noted = [beside(&real, ".restores"), for_all_beside(&real)];
    let mut notes = Notes::read(&noted, &[for_all_beside(directory)])?;
    let contradiction = if choices.is_only_one { notes.above(state.table.epoch()) } else { None };
    let epoch = notes.hand_out(file, state.table.epoch(), choices.above)?;
    drop(notes);
    let (snapshot, incarnation) =
        state.begin(&Heir::Served(member.clone()), epoch, wait, choices.max_ttl).map_err(state_error)?;

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
        given_up: None,
        address_is_guessed,
        contradiction,
    })
}

/// The place that a directory gets: nothing is there, or nothing is in it.
fn free_place(directory: &Path) -> Result<PathBuf, FilesError> {
    if !exists(directory) {
        return Ok(directory.to_owned());
    }
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotADirectory => FilesError::Exists { path: directory.to_owned() },
        _ => failed("look into", directory)(error),
    };
    let real = std::fs::canonicalize(directory).map_err(cannot)?;
    if std::fs::read_dir(&real).map_err(cannot)?.next().is_some() {
        return Err(FilesError::Exists { path: directory.to_owned() });
    }
    let device =
        |path: &Path| std::fs::metadata(path).map(|found| found.dev()).map_err(failed("look at", path));
    // Before an epoch is used up: a rename would be refused by the system.
    if device(&real)? != device(parent(&real))? {
        return Err(FilesError::Mounted { path: directory.to_owned() });
    }
    Ok(real)
}

/// A place of its own beside the directory, on the same file system. What an interrupted restore left there is removed.
fn lock_aside(directory: &Path) -> Result<Locked, FilesError> {
    let path = beside_hidden(directory);
    let lock = || Locked::try_lock(&path, Kind::Served, false)?.ok_or_else(|| in_use(&path));
    if exists(&path) {
        let _left = lock()?;
        std::fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
    }
    lock()
}

fn beside_hidden(directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.with_file_name(format!(".{name}.restoring"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Contradiction;
    use crate::files::backup::{backup_file, save_backup};
    use crate::files::tests::small_snapshot;
    use crate::files::verify;
    use leasehold_core::protocol::{Member, MemberId};
    use leasehold_core::{Config, Epoch, Token};
    use leasehold_node::founding_snapshot;

    fn first() -> Choices {
        Choices { is_only_one: true, ..Choices::default() }
    }

    fn stage() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("backup");
        save_backup(&file, &backup_file(small_snapshot())).unwrap();
        (root, file)
    }

    #[test]
    fn a_restored_directory_is_whole_and_each_restore_is_above_the_last() {
        let (root, file) = stage();
        let one = restore(&file, &root.path().join("one"), &first()).unwrap();
        let two = restore(&file, &root.path().join("two"), &first()).unwrap();
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
    fn the_only_member_keeps_name_and_address_and_one_of_several_is_guessed() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        let called = |id, name, address| Member::new(MemberId(id), name, address).unwrap();
        let (one, two) = (called(7, "n1", "10.0.0.1:7421"), called(8, "n2", "10.0.0.2:7421"));
        for (file, members) in [("alone", vec![one.clone()]), ("both", vec![one, two])] {
            let snapshot = founding_snapshot(&Config::default(), members);
            save_backup(&place(file), &backup_file(snapshot)).unwrap();
        }
        let begun = |file, data, choices| {
            let begun = restore(&place(file), &place(data), &choices).unwrap();
            let member = begun.member.unwrap();
            (member.name, member.address, begun.address_is_guessed)
        };
        let is = |name: &str, address: &str, guessed| (name.to_owned(), address.to_owned(), guessed);
        assert_eq!(begun("alone", "a", first()), is("n1", "10.0.0.1:7421", false));
        assert_eq!(begun("both", "b", first()), is("leasehold", "127.0.0.1:7420", true));
        let named = Choices { name: Some("n2".into()), ..first() };
        assert_eq!(begun("both", "c", named), is("n2", "127.0.0.1:7420", true));
        let placed = Choices { address: Some("10.0.0.3:1".into()), ..first() };
        assert_eq!(begun("both", "d", placed.clone()), is("leasehold", "10.0.0.3:1", false));
        assert_eq!(begun("alone", "e", placed), is("n1", "10.0.0.3:1", false));
    }

    #[test]
    fn a_note_that_speaks_against_the_first_restore_is_named() {
        let (root, file) = stage();
        let one = restore(&file, &root.path().join("one"), &first()).unwrap();
        assert_eq!(one.contradiction, None);
        let two = restore(&file, &root.path().join("two"), &first()).unwrap();
        let note = root.path().canonicalize().unwrap().join("backup.restores");
        assert_eq!(two.contradiction, Some(Contradiction { note, epoch: 1 }));
        // Who says --above has not said that it is the first.
        let above = Some(Token::new(Epoch::new(41).unwrap(), 1).unwrap());
        let three = restore(&file, &root.path().join("three"), &Choices { above, ..Choices::default() });
        assert_eq!(three.unwrap().contradiction, None);
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
    fn a_directory_with_something_in_it_is_left_alone_and_an_empty_one_is_used() {
        let (root, file) = stage();
        let there = root.path().join("there");
        std::fs::create_dir_all(there.join("lost+found")).unwrap();
        for taken in [&there, &file] {
            let refused = restore(&file, taken, &first()).unwrap_err();
            assert!(matches!(refused, FilesError::Exists { .. }), "{refused}");
        }
        assert!(!root.path().join("backup.restores").exists(), "no epoch was used up");
        std::fs::remove_dir(there.join("lost+found")).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&there, &link).unwrap();
        assert_eq!(restore(&file, &link, &first()).unwrap().epoch, 1);
        assert!(link.is_symlink() && verify(&there).unwrap().problems.is_empty());
    }

    /// Monday's and Tuesday's backup: each is restored for the first time, and by somebody who is wrong about the store.
    #[test]
    fn two_backups_of_one_store_never_get_the_same_epoch() {
        let (root, file) = stage();
        let elsewhere = root.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let (beside, away) = (root.path().join("tuesday"), elsewhere.join("wednesday"));
        let other_link = elsewhere.join("latest");
        for copy in [&beside, &away] {
            std::fs::copy(&file, copy).unwrap();
        }
        std::os::unix::fs::symlink(&file, &other_link).unwrap();
        let mut epochs = Vec::new();
        for (number, from) in [&file, &beside, &away, &other_link].into_iter().enumerate() {
            let to = root.path().join(format!("data-{number}"));
            epochs.push(restore(from, &to, &first()).unwrap().epoch);
        }
        assert_eq!(epochs, [1, 2, 3, 4]);
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
