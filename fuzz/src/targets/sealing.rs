//! Checksums made right, so that what is behind them is tried as well. The formats are those of docs/internals/log-on-disk.md.

use crc32c::{crc32c, crc32c_append};
use leasehold_wal::BLOCK_BYTES;

const BLOCK_MAGIC: [u8; 4] = *b"LHLB";
const BLOCK_SEED: u32 = 0x4c48_0b10;
const BLOCK_HEADER: usize = 40;
const BATCH_PREFIX: usize = 8;
const SNAPSHOT_SEED: u32 = 0x4c48_53aa;
const BACKUP_HEAD: usize = 64;
const BACKUP_HEAD_SEED: u32 = 0x4c48_4248;
const BACKUP_BODY_SEED: u32 = 0x4c48_4242;

/// Lays batches of records out as a segment does, beginning with batch `first` of segment `segment`.
pub(super) fn segment(batches: &[&[u8]], segment: u64, first: u64, blocks: usize) -> Vec<u8> {
    let mut file: Vec<u8> = Vec::new();
    let mut crc_before = 0_u32;
    for (batch, records) in (first..=u64::MAX).zip(batches) {
        let length = u32::try_from(records.len()).expect("an input is short");
        let mut body = [&crc_before.to_le_bytes()[..], &length.to_le_bytes(), records].concat();
        let n = body.len().div_ceil(BLOCK_BYTES - BLOCK_HEADER);
        body.resize(n * (BLOCK_BYTES - BLOCK_HEADER), 0);
        let start = file.len();
        for (i, part) in body.chunks(BLOCK_BYTES - BLOCK_HEADER).enumerate() {
            let mut block = vec![0; BLOCK_BYTES];
            block[4..8].copy_from_slice(&BLOCK_MAGIC);
            block[8] = 1;
            block[12..20].copy_from_slice(&segment.to_le_bytes());
            block[20..28].copy_from_slice(&batch.to_le_bytes());
            for (at, number) in [(28, file.len() / BLOCK_BYTES), (32, i), (36, n)] {
                let number = u32::try_from(number).expect("an input is short");
                block[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            block[BLOCK_HEADER..].copy_from_slice(part);
            seal_block(&mut block);
            file.extend_from_slice(&block);
        }
        crc_before = crc32c(&file[start..]);
    }
    let least = blocks * BLOCK_BYTES;
    file.resize(file.len().max(least), 0);
    file
}

/// The records of every batch of a segment whose blocks are good.
pub(super) fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let mut batches: Vec<Vec<u8>> = Vec::new();
    for block in file.chunks_exact(BLOCK_BYTES).take_while(|block| block[4..8] == BLOCK_MAGIC) {
        if block[32..36] == [0; 4] {
            batches.push(Vec::new());
        }
        let batch = batches.last_mut().expect("a batch begins with its first block");
        batch.extend_from_slice(&block[BLOCK_HEADER..]);
    }
    for batch in &mut batches {
        let length = u32::from_le_bytes(batch[4..8].try_into().expect("four bytes were sliced"));
        batch.drain(..BATCH_PREFIX);
        batch.truncate(length as usize);
    }
    batches
}

/// Makes the checksum of every block of a segment right that is not empty, and that of every batch before another.
pub(super) fn reseal_segment(file: &mut [u8]) {
    let (mut start, mut crc_before) = (0, None);
    for at in (0..file.len() / BLOCK_BYTES).map(|block| block * BLOCK_BYTES) {
        if file[at..at + BLOCK_BYTES].iter().all(|byte| *byte == 0) {
            continue;
        }
        if file[at + 32..at + 36] == [0; 4] {
            if at > start {
                crc_before = Some(crc32c(&file[start..at]));
            }
            start = at;
            if let Some(crc) = crc_before {
                file[at + BLOCK_HEADER..at + BLOCK_HEADER + 4].copy_from_slice(&crc.to_le_bytes());
            }
        }
        seal_block(&mut file[at..at + BLOCK_BYTES]);
    }
}

/// Makes the checksum of a snapshot file right.
pub(super) fn reseal_snapshot(file: &mut [u8]) {
    if file.len() >= BLOCK_BYTES {
        let crc = crc32c_append(SNAPSHOT_SEED, &file[4..]);
        file[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Makes length and checksums of a backup file right.
pub(super) fn reseal_backup(file: &mut [u8]) {
    let Some(body) = file.get(BACKUP_HEAD..) else { return };
    let (length, crc) = (body.len() as u64, crc32c_append(BACKUP_BODY_SEED, body));
    file[48..56].copy_from_slice(&length.to_le_bytes());
    file[60..64].copy_from_slice(&crc.to_le_bytes());
    let head = crc32c_append(crc32c_append(BACKUP_HEAD_SEED, &file[..12]), &file[16..BACKUP_HEAD]);
    file[12..16].copy_from_slice(&head.to_le_bytes());
}

fn seal_block(block: &mut [u8]) {
    let crc = crc32c_append(BLOCK_SEED, &block[4..]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
}
