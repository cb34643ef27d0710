//! Who a directory is: the id of the member that lives in it.
//!
//! The id is drawn once, before there is a log, and is as durable as the log from then on. A directory that was wiped has another
//! one, so a member that has forgotten its votes is nobody's voter. The file is whole or missing: it is written aside and renamed.
//! A founded directory without it is damaged; it is never given a new id by itself.

use std::io;
use std::path::Path;

use leasehold_core::protocol::MemberId;

use super::recover;
use super::whole::{replace, sealed_line};
use crate::directory::{DirectoryError, failed};

const NODE_FILE: &str = "node";
const WORD: &str = "leasehold-node";
/// The version of the file.
const FORMAT: u32 = 1;

/// The id of the member in a directory, drawn if there was never a log. To be called under the lock, and before the log is opened: a
/// recovery that was interrupted is carried through first.
///
/// # Errors
/// When the file is damaged, or missing although the directory was founded.
pub(crate) fn member_id(directory: &Path, founded: bool) -> Result<MemberId, DirectoryError> {
    let path = directory.join(NODE_FILE);
    // Another life that was decided here begins with another log and another id, and neither without the other.
    recover::finish_recovery(directory)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(|why| damaged(&path, &why)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && founded => {
            Err(damaged(&path, "it is missing, but there is a log that was written under its id"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = draw_id().map_err(failed("draw an id for", &path))?;
            write_member_id(directory, id)?;
            Ok(id)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(damaged(&path, "it is not text")),
        Err(error) => Err(failed("read", &path)(error)),
    }
}

/// Draws an id that nobody else has.
pub(super) fn draw_id() -> io::Result<MemberId> {
    loop {
        let id = getrandom::u64().map_err(io::Error::other)?;
        // Zero is nobody's.
        if id != 0 {
            return Ok(MemberId(id));
        }
    }
}

/// Writes the id, whole and durable. Whatever was there is replaced.
pub(super) fn write_member_id(directory: &Path, id: MemberId) -> Result<(), DirectoryError> {
    let path = directory.join(NODE_FILE);
    replace(&path, text(id).as_bytes()).map_err(failed("write", &path))
}

fn text(id: MemberId) -> String {
    sealed_line(&format!("{WORD} {FORMAT} {id}"))
}

fn parse(found: &str) -> Result<MemberId, String> {
    let words: Vec<&str> = found.split_whitespace().collect();
    if let [WORD, version, ..] = words[..]
        && let Ok(version) = version.parse::<u32>()
        && version > FORMAT
    {
        return Err(format!("it has version {version}; this release knows up to {FORMAT}: upgrade it"));
    }
    let id = words.get(2).and_then(|id| u64::from_str_radix(id, 16).ok()).filter(|id| *id != 0);
    match id.map(MemberId) {
        // Compared as a whole: the checksum is a part of the text.
        Some(id) if text(id) == found => Ok(id),
        _ => Err("its text does not fit its checksum".to_owned()),
    }
}

fn damaged(path: &Path, why: &str) -> DirectoryError {
    DirectoryError::Identity { path: path.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE_ASIDE: &str = "node.tmp";

    #[test]
    fn an_id_is_drawn_once_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let id = member_id(directory.path(), false).unwrap();
        assert_eq!(member_id(directory.path(), false).unwrap(), id);
        assert_eq!(member_id(directory.path(), true).unwrap(), id);
        assert!(!directory.path().join(NODE_ASIDE).exists());
        let other = tempfile::tempdir().unwrap();
        assert_ne!(member_id(other.path(), false).unwrap(), id);
    }

    #[test]
    fn a_founded_directory_without_its_file_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let error = member_id(directory.path(), true).unwrap_err();
        assert!(matches!(error, DirectoryError::Identity { .. }), "{error}");
        assert!(!directory.path().join(NODE_FILE).exists());
    }

    #[test]
    fn every_flipped_bit_and_every_shorter_text_is_damage() {
        let directory = tempfile::tempdir().unwrap();
        member_id(directory.path(), false).unwrap();
        let path = directory.path().join(NODE_FILE);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&path, &bad).unwrap();
                let found = member_id(directory.path(), false);
                assert!(matches!(found, Err(DirectoryError::Identity { .. })), "byte {at} bit {bit}");
            }
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(member_id(directory.path(), false).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_write_that_was_interrupted_leaves_no_id() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(NODE_ASIDE), "leasehold-no").unwrap();
        let id = member_id(directory.path(), false).unwrap();
        assert_eq!(member_id(directory.path(), true).unwrap(), id);
    }

    #[test]
    fn a_later_version_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(NODE_FILE), "leasehold-node 2 whatever\n").unwrap();
        let error = member_id(directory.path(), true).unwrap_err().to_string();
        assert!(error.contains("version 2"), "{error}");
    }
}
