//! The greatest epoch that was handed out for a file or directory, noted beside it.
//!
//! Tokens of a new life are greater than all before only if its epoch is. The file itself does not know how often it was restored, so
//! this is written and synced before a state with the epoch exists. A copy of the file elsewhere has no note: whoever restores that one
//! says what they know.

use std::io;
use std::path::{Path, PathBuf};

use leasehold_core::{Epoch, Token};

use super::whole::{open_line, sealed_line, write_whole};
use super::{FilesError, failed};

const WORD: &str = "leasehold-restores";
/// The version of the note.
const VERSION: u32 = 1;

/// A note that may not exist yet. Whoever uses it holds a lock on what it is about.
#[derive(Debug)]
pub(super) struct Note {
    path: PathBuf,
    highest: Option<u16>,
}

impl Note {
    /// Reads a note, or none.
    pub(super) fn read(path: PathBuf) -> Result<Self, FilesError> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { path, highest: None }),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(damaged(&path)),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let words = open_line(&text).unwrap_or_default();
        let version = words.get(1).and_then(|version| version.parse::<u32>().ok());
        match (words.as_slice(), version) {
            ([WORD, ..], Some(found)) if found > VERSION => {
                Err(FilesError::Newer { path, found, known: VERSION })
            }
            ([WORD, _, epoch], Some(_)) => {
                let highest = epoch.parse().map_err(|_| damaged(&path))?;
                Ok(Self { path, highest: Some(highest) })
            }
            _ => Err(damaged(&path)),
        }
    }

    /// Whether something was handed out before.
    pub(super) fn is_there(&self) -> bool {
        self.highest.is_some()
    }

    /// Hands out the epoch above the highest of: the file's own, the noted one, and that of a token somebody knows. When this returns,
    /// the next call anywhere gives a greater one.
    pub(super) fn hand_out(
        &mut self,
        of: &Path,
        own: Epoch,
        above: Option<Token>,
    ) -> Result<Epoch, FilesError> {
        let known = [Some(u64::from(own.get())), self.highest.map(u64::from), above.map(Token::epoch)];
        let highest = known.into_iter().flatten().max().expect("the first is always there");
        let next = u16::try_from(highest + 1).ok().and_then(Epoch::new);
        let next = next.ok_or_else(|| FilesError::LastEpoch { path: of.to_owned(), epoch: highest })?;
        write_whole(&self.path, sealed_line(&format!("{WORD} {VERSION} {}", next.get())).as_bytes())?;
        self.highest = Some(next.get());
        Ok(next)
    }
}

fn damaged(path: &Path) -> FilesError {
    let what = "the note of earlier restores does not fit its checksum; if you remove it, say --above with the greatest token that is known";
    FilesError::Damaged { path: path.to_owned(), offset: 0, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_is_above_all_that_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        let mut note = Note::read(path.clone()).unwrap();
        assert!(!note.is_there());
        let epoch = |number| Epoch::new(number).unwrap();
        assert_eq!(note.hand_out(&path, epoch(0), None).unwrap(), epoch(1));
        let mut note = Note::read(path.clone()).unwrap();
        assert_eq!(note.hand_out(&path, epoch(0), None).unwrap(), epoch(2));
        let token = Token::new(epoch(7), 3).unwrap();
        assert_eq!(note.hand_out(&path, epoch(4), Some(token)).unwrap(), epoch(8));
        assert_eq!(note.hand_out(&path, epoch(20), Some(token)).unwrap(), epoch(21));
    }

    #[test]
    fn behind_the_last_epoch_there_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        let mut note = Note::read(path.clone()).unwrap();
        let token = Token::from_u64(32_766 << 48);
        assert_eq!(note.hand_out(&path, Epoch::default(), Some(token)).unwrap(), Epoch::MAX);
        let refused = note.hand_out(&path, Epoch::default(), None).unwrap_err();
        assert!(matches!(refused, FilesError::LastEpoch { epoch: 32_767, .. }), "{refused}");
    }

    #[test]
    fn a_damaged_note_is_not_taken_for_a_missing_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.restores");
        Note::read(path.clone()).unwrap().hand_out(&path, Epoch::default(), None).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(Note::read(path.clone()).is_err(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(Note::read(path.clone()).is_err(), "{at} bytes");
        }
    }
}
