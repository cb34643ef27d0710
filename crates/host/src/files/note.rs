//! The greatest epochs that were handed out, noted beside what they were handed out for.
//!
//! Tokens of a new life are greater than all before only if its epoch is. A backup does not know how often it, or another backup of its
//! store, was restored, so this is written and synced before a state with the epoch exists: in a note about the file or directory itself,
//! and in one for all files and directories beside it, since yesterday's backup lies beside today's. Lives of other stores count in
//! the second one too; that costs an epoch now and then. Nothing elsewhere is known here: whoever begins a life says what they know.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use leasehold_core::{Epoch, Token};
use rustix::fs::{FlockOperation, flock};

use super::life::Contradiction;
use super::whole::{open_line, parent, sealed_line, write_whole};
use super::{FilesError, failed};

const WORD: &str = "leasehold-restores";
/// The version of the note.
const VERSION: u32 = 1;

/// The note for everything in a directory.
const FOR_ALL: &str = "leasehold.restores";

/// The notes that a new life must be above of. Their directories are locked as long as this lives: two lives that begin at once must not
/// read the same.
#[derive(Debug)]
pub(super) struct Notes {
    notes: Vec<Note>,
    _locked: Vec<File>,
}

/// A note that may not exist yet.
#[derive(Debug)]
struct Note {
    path: PathBuf,
    highest: Option<u16>,
    /// One that is not needed is kept where the system allows it.
    is_needed: bool,
}

/// The note for everything that is in the same directory as this.
pub(super) fn for_all_beside(path: &Path) -> PathBuf {
    path.with_file_name(FOR_ALL)
}

impl Notes {
    /// Reads notes. Those that are only welcome may lie where this process may not write.
    pub(super) fn read(needed: &[PathBuf], welcome: &[PathBuf]) -> Result<Self, FilesError> {
        let all = needed.iter().map(|path| (path, true)).chain(welcome.iter().map(|path| (path, false)));
        let mut places: Vec<(PathBuf, bool)> = Vec::new();
        let mut notes: Vec<(PathBuf, bool)> = Vec::new();
        for (path, is_needed) in all {
            let place = match std::fs::canonicalize(parent(path)) {
                Ok(place) => place,
                Err(error) if is_needed => return Err(failed("open", parent(path))(error)),
                Err(_) => continue,
            };
            let path = place.join(path.file_name().unwrap_or_default());
            if !notes.iter().any(|(known, _)| *known == path) {
                notes.push((path, is_needed));
            }
            places.push((place, is_needed));
        }
        // In one order for all, so that two processes never wait for each other.
        places.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        places.dedup_by(|a, b| a.0 == b.0);
        let mut locked = Vec::new();
        for (place, is_needed) in places {
            let held = File::open(&place).and_then(|held| {
                flock(&held, FlockOperation::LockExclusive).map(|()| held).map_err(Into::into)
            });
            match held {
                Ok(held) => locked.push(held),
                Err(error) if is_needed => return Err(failed("lock", &place)(error)),
                Err(_) => {}
            }
        }
        let notes: Result<Vec<Note>, FilesError> =
            notes.into_iter().map(|(path, is_needed)| Note::read(path, is_needed)).collect();
        Ok(Self { notes: notes?, _locked: locked })
    }

    /// The note with the greatest epoch, if that is above the state's own: a life began after the state was written down.
    pub(super) fn above(&self, own: Epoch) -> Option<Contradiction> {
        let noted = self.notes.iter().filter_map(|note| Some((note.highest?, &note.path)));
        // Of equals the first counts: it is about the file or directory itself.
        let (epoch, note) = noted.rev().max_by_key(|(epoch, _)| *epoch)?;
        (epoch > own.get()).then(|| Contradiction { note: note.clone(), epoch })
    }

    /// Hands out the epoch above the highest of: the state's own, the noted ones, and that of a token somebody knows. When this returns,
    /// the next call that reads one of these notes gives a greater one.
    pub(super) fn hand_out(
        &mut self,
        of: &Path,
        own: Epoch,
        above: Option<Token>,
    ) -> Result<Epoch, FilesError> {
        let known = [Some(u64::from(own.get())), above.map(Token::epoch)];
        let noted = self.notes.iter().map(|note| note.highest.map(u64::from));
        let highest = known.into_iter().chain(noted).flatten().max().expect("the first is always there");
        let next = u16::try_from(highest + 1).ok().and_then(Epoch::new);
        let next = next.ok_or_else(|| FilesError::LastEpoch { path: of.to_owned(), epoch: highest })?;
        for note in &mut self.notes {
            note.write(next)?;
        }
        Ok(next)
    }
}

impl Note {
    fn read(path: PathBuf, is_needed: bool) -> Result<Self, FilesError> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound || (!is_needed && is_forbidden(&error)) => {
                return Ok(Self { path, highest: None, is_needed });
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(damaged(&path)),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let words = open_line(&text).unwrap_or_default();
        let version = words.get(1).and_then(|version| version.parse::<u32>().ok());
        match (words.as_slice(), version) {
            ([WORD, ..], Some(found)) if found > VERSION => {
                Err(FilesError::Newer { path, what: "the note".to_owned(), found, known: VERSION })
            }
            ([WORD, _, epoch], Some(_)) => {
                let highest = epoch.parse().map_err(|_| damaged(&path))?;
                Ok(Self { path, highest: Some(highest), is_needed })
            }
            _ => Err(damaged(&path)),
        }
    }

    fn write(&mut self, epoch: Epoch) -> Result<(), FilesError> {
        let line = sealed_line(&format!("{WORD} {VERSION} {}", epoch.get()));
        match write_whole(&self.path, line.as_bytes()) {
            Err(FilesError::Io { source, .. }) if !self.is_needed && is_forbidden(&source) => {}
            other => other?,
        }
        self.highest = Some(epoch.get());
        Ok(())
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn damaged(path: &Path) -> FilesError {
    let what = "the note of earlier restores does not fit its checksum; if you remove it, say --above with the greatest token that is known";
    FilesError::Damaged { path: path.to_owned(), offset: 0, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> Result<Notes, FilesError> {
        Notes::read(&[path.to_owned()], &[])
    }

    fn epoch(number: u16) -> Epoch {
        Epoch::new(number).unwrap()
    }

    #[test]
    fn every_epoch_is_above_all_that_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        assert_eq!(read(&path).unwrap().hand_out(&path, epoch(0), None).unwrap(), epoch(1));
        let mut notes = read(&path).unwrap();
        assert_eq!(notes.hand_out(&path, epoch(0), None).unwrap(), epoch(2));
        let token = Token::new(epoch(7), 3).unwrap();
        assert_eq!(notes.hand_out(&path, epoch(4), Some(token)).unwrap(), epoch(8));
        assert_eq!(notes.hand_out(&path, epoch(20), Some(token)).unwrap(), epoch(21));
    }

    #[test]
    fn the_highest_of_several_notes_counts_and_all_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for _ in 0..3 {
            read(&path("b")).unwrap().hand_out(&path("b"), epoch(0), None).unwrap();
        }
        let mut both = Notes::read(&[path("a")], &[path("b"), path("a")]).unwrap();
        assert_eq!(both.hand_out(&path("a"), epoch(0), None).unwrap(), epoch(4));
        drop(both);
        for name in ["a", "b"] {
            let next = read(&path(name)).unwrap().hand_out(&path(name), epoch(0), None).unwrap();
            assert_eq!(next, epoch(5), "{name}");
        }
    }

    #[test]
    fn behind_the_last_epoch_there_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        let mut notes = read(&path).unwrap();
        let token = Token::from_u64(32_766 << 48);
        assert_eq!(notes.hand_out(&path, Epoch::default(), Some(token)).unwrap(), Epoch::MAX);
        let refused = notes.hand_out(&path, Epoch::default(), None).unwrap_err();
        assert!(matches!(refused, FilesError::LastEpoch { epoch: 32_767, .. }), "{refused}");
    }

    #[test]
    fn a_damaged_note_is_not_taken_for_a_missing_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        read(&path).unwrap().hand_out(&path, Epoch::default(), None).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(read(&path).is_err(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(read(&path).is_err(), "{at} bytes");
        }
    }
}
