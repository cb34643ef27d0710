//! Snapshot files: a header block, then the bytes.
//!
//! The file is whole before it has its name, and has its name before the log records it; so a recorded snapshot that does not read
//! back is damage, and one that is not recorded is a leftover.

use crate::block::{BLOCK_BYTES, BatchNumber, FORMAT_VERSION, u32_at, u64_at};
use crate::disk::Disk;
use crate::error::{Damage, OpenError, while_opening};
use crate::record::{Index, SnapshotKind, SnapshotMeta, Term};
use crate::segment::snapshot_name;

const MAGIC: [u8; 4] = *b"LHSN";
const SNAPSHOT_SEED: u32 = 0x4c48_53aa;

/// The header block of a snapshot file, and how the log records the file.
pub(crate) fn seal_snapshot(
    kind: SnapshotKind,
    index: Index,
    term: Term,
    file: BatchNumber,
    bytes: &[u8],
) -> ([u8; BLOCK_BYTES], SnapshotMeta) {
    let mut header = [0; BLOCK_BYTES];
    header[4..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header[20..28].copy_from_slice(&index.0.to_le_bytes());
    header[28..36].copy_from_slice(&term.0.to_le_bytes());
    header[36..44].copy_from_slice(&file.0.to_le_bytes());
    let crc = checksum(&header, bytes);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    (header, SnapshotMeta { kind, index, term, file, len: bytes.len() as u64, crc })
}

/// Reads the bytes of a recorded snapshot.
pub(crate) fn load_snapshot<D: Disk>(disk: &mut D, meta: &SnapshotMeta) -> Result<Vec<u8>, OpenError> {
    let name = snapshot_name(meta.file);
    let damage =
        |offset: u64, what: String| -> OpenError { Damage { file: name.clone(), offset, what }.into() };
    let len = match disk.len(&name) {
        Ok(len) => len,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(damage(0, "recorded in the log, but the file is missing".to_owned()));
        }
        Err(error) => return Err(while_opening("measuring", &name)(error)),
    };
    let expected = meta.len.saturating_add(BLOCK_BYTES as u64);
    if len != expected {
        return Err(damage(
            len.min(expected),
            format!("the file has {len} bytes, but {expected} were recorded"),
        ));
    }
    let mut header = [0; BLOCK_BYTES];
    disk.read_at(&name, 0, &mut header).map_err(while_opening("reading", &name))?;
    let size = usize::try_from(meta.len).map_err(|_| damage(12, "longer than memory can hold".to_owned()))?;
    let mut bytes = vec![0; size];
    disk.read_at(&name, BLOCK_BYTES as u64, &mut bytes).map_err(while_opening("reading", &name))?;
    let crc = checksum(&header, &bytes);
    if u32_at(&header, 0) != crc || header[4..8] != MAGIC {
        return Err(damage(0, "the checksum does not fit the content".to_owned()));
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version > FORMAT_VERSION {
        return Err(OpenError::NewerVersion { file: name, version, supported: FORMAT_VERSION });
    }
    let place = (u64_at(&header, 20), u64_at(&header, 28), u64_at(&header, 36));
    if crc != meta.crc || place != (meta.index.0, meta.term.0, meta.file.0) {
        return Err(damage(0, "a whole snapshot, but not the recorded one".to_owned()));
    }
    Ok(bytes)
}

/// Covers all of the file but the four bytes in which it stands itself.
fn checksum(header: &[u8; BLOCK_BYTES], bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(SNAPSHOT_SEED, &header[4..]), bytes)
}
