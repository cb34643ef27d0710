//! Backup files: a node's snapshot with a head that says what it is and a checksum over all of it.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 7 | `LHBACKUP` |
//! | 8, 9 | version |
//! | 10, 11 | zero |
//! | 12 to 15 | CRC32C, continued from `HEAD_SEED`, of the other 60 bytes of the head |
//! | 16 to 31 | incarnation |
//! | 32 to 39, 40 to 47 | index and term of the last entry covered |
//! | 48 to 55 | length of the body |
//! | 56, 57 | epoch |
//! | 58, 59 | zero |
//! | 60 to 63 | CRC32C, continued from `BODY_SEED`, of the body |
//! | 64 on | the body |
//!
//! Numbers are little-endian. Magic, version and the head's checksum keep their places in every later version.

use std::io;
use std::path::Path;

use leasehold_core::protocol::Incarnation;
use leasehold_node::SavedSnapshot;
use leasehold_node::payload::NodeSnapshot;

use super::whole::write_whole;
use super::{FilesError, failed};

const MAGIC: [u8; 8] = *b"LHBACKUP";
/// The version of the file.
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 64;
const HEAD_SEED: u32 = 0x4c48_4248;
const BODY_SEED: u32 = 0x4c48_4242;

/// What a backup file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The life of the state.
    pub incarnation: Incarnation,
    /// How often it was restored.
    pub epoch: u16,
    /// The last entry covered, its term, and the bytes of a node's snapshot.
    pub snapshot: SavedSnapshot,
}

/// The bytes of a backup file. Reads the whole snapshot: not for a loop that must stay short.
///
/// # Panics
/// When these are not the bytes that a node makes of its own state.
#[expect(clippy::needless_pass_by_value, reason = "its bytes are many megabytes, and of no use afterwards")]
pub fn backup_file(snapshot: SavedSnapshot) -> Vec<u8> {
    let read = NodeSnapshot::decode(&snapshot.bytes).expect("a node reads what it wrote");
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..10].copy_from_slice(&VERSION.to_le_bytes());
    head[16..32].copy_from_slice(&read.roster.incarnation.0.to_le_bytes());
    head[32..40].copy_from_slice(&snapshot.index.to_le_bytes());
    head[40..48].copy_from_slice(&snapshot.term.to_le_bytes());
    head[48..56].copy_from_slice(&(snapshot.bytes.len() as u64).to_le_bytes());
    head[56..58].copy_from_slice(&read.table.epoch().get().to_le_bytes());
    head[60..64].copy_from_slice(&crc32c::crc32c_append(BODY_SEED, &snapshot.bytes).to_le_bytes());
    let crc = head_crc(&head);
    head[12..16].copy_from_slice(&crc.to_le_bytes());
    let mut file = Vec::with_capacity(HEAD_BYTES + snapshot.bytes.len());
    file.extend_from_slice(&head);
    file.extend_from_slice(&snapshot.bytes);
    file
}

/// Checks the bytes of a backup and writes them to a file: whole and durable, or not at all.
///
/// # Errors
/// When they are not a whole backup, or cannot be written.
pub fn save_backup(path: &Path, bytes: &[u8]) -> Result<Backup, FilesError> {
    let backup = parse(path, bytes)?;
    write_whole(path, bytes)?;
    Ok(backup)
}

/// Reads a backup file.
///
/// # Errors
/// When it cannot be read, or does not read back as it was written.
pub fn read_backup(path: &Path) -> Result<Backup, FilesError> {
    let bytes = std::fs::read(path).map_err(failed("read", path))?;
    parse(path, &bytes)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Backup, FilesError> {
    let damaged = |offset: usize, what: &str| FilesError::Damaged {
        path: path.to_owned(),
        offset: offset as u64,
        what: what.to_owned(),
    };
    let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return Err(damaged(bytes.len(), "it ends within its head"));
    };
    if head[..8] != MAGIC {
        return Err(damaged(0, "it does not begin as a backup does"));
    }
    if u32::from_le_bytes(part(head, 12)) != head_crc(head) {
        return Err(damaged(0, "its head does not fit the checksum"));
    }
    let version = u16::from_le_bytes(part(head, 8));
    if version > VERSION {
        return Err(FilesError::Newer {
            path: path.to_owned(),
            what: "the file".to_owned(),
            found: version.into(),
            known: VERSION.into(),
        });
    }
    let length = u64::from_le_bytes(part(head, 48));
    if length != body.len() as u64 {
        let (whole, found) = (length.saturating_add(HEAD_BYTES as u64), bytes.len());
        let at = usize::try_from(whole).map_or(found, |whole| whole.min(found));
        return Err(damaged(at, &format!("it has {found} bytes, but {whole} were written")));
    }
    if u32::from_le_bytes(part(head, 60)) != crc32c::crc32c_append(BODY_SEED, body) {
        return Err(damaged(HEAD_BYTES, "its body does not fit the checksum"));
    }
    Ok(Backup {
        incarnation: Incarnation(u128::from_le_bytes(part(head, 16))),
        epoch: u16::from_le_bytes(part(head, 56)),
        snapshot: SavedSnapshot {
            index: u64::from_le_bytes(part(head, 32)),
            term: u64::from_le_bytes(part(head, 40)),
            bytes: body.to_vec(),
        },
    })
}

/// Whether a file begins as a backup does.
pub(super) fn is_backup(path: &Path) -> io::Result<bool> {
    let mut magic = [0; MAGIC.len()];
    match io::Read::read_exact(&mut std::fs::File::open(path)?, &mut magic) {
        Ok(()) => Ok(magic == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn head_crc(head: &[u8; HEAD_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(HEAD_SEED, &head[..12]), &head[16..])
}

fn part<const N: usize>(head: &[u8; HEAD_BYTES], at: usize) -> [u8; N] {
    *head[at..].first_chunk().expect("every field lies within the head")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::small_snapshot;

    #[test]
    fn a_backup_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b");
        let snapshot = small_snapshot();
        let saved = save_backup(&path, &backup_file(snapshot.clone())).unwrap();
        assert_eq!(read_backup(&path).unwrap(), saved);
        assert_eq!(saved.snapshot, snapshot);
        assert!(saved.incarnation.is_known());
        assert!(is_backup(&path).unwrap());
    }

    #[test]
    fn every_flipped_bit_every_shorter_and_every_longer_file_is_refused_with_the_place() {
        let good = backup_file(small_snapshot());
        let path = Path::new("b");
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let error = parse(path, &bad).unwrap_err();
                let FilesError::Damaged { offset, .. } = error else { panic!("byte {at}: {error}") };
                assert_eq!(offset >= HEAD_BYTES as u64, at >= HEAD_BYTES, "byte {at} was placed at {offset}");
            }
            assert!(parse(path, &good[..at]).is_err(), "{at} bytes");
        }
        let longer = [good.as_slice(), b"x"].concat();
        let error = parse(path, &longer).unwrap_err();
        assert!(
            matches!(error, FilesError::Damaged { offset, .. } if offset == good.len() as u64),
            "{error}"
        );
    }

    #[test]
    fn a_later_version_is_named() {
        let mut file = backup_file(small_snapshot());
        file[8] = 2;
        let head: [u8; HEAD_BYTES] = *file.first_chunk().unwrap();
        file[12..16].copy_from_slice(&head_crc(&head).to_le_bytes());
        assert!(matches!(parse(Path::new("b"), &file), Err(FilesError::Newer { found: 2, .. })));
    }

    #[test]
    fn bytes_that_are_no_backup_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b");
        std::fs::write(&path, "the last one").unwrap();
        let good = backup_file(small_snapshot());
        assert!(save_backup(&path, &good[..good.len() - 1]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"the last one");
    }
}
