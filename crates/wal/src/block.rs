//! Blocks of 512 bytes, and how a batch becomes some of them.
//!
//! A block can be checked alone: its CRC covers its place (segment, position, batch, which of how many) as well as its body, so a
//! block that is right but in the wrong place is noticed too. A block of zeros is never a good block.

use std::fmt;

/// The unit of writing: what a disk writes whole or not at all.
pub const BLOCK_BYTES: usize = 512;
/// The format this program writes, and the highest that it reads.
pub const FORMAT_VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"LHLB";
/// Keeps the CRC of one kind of bytes from being taken for that of another.
const BLOCK_SEED: u32 = 0x4c48_0b10;
const HEADER_BYTES: usize = 40;
const BODY_BYTES: usize = BLOCK_BYTES - HEADER_BYTES;
/// The CRC of the batch before, and the length of the records.
const PREFIX_BYTES: usize = 8;

/// Numbers segments from 1 on; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u64);

/// Numbers batches from 1 on, without gaps, through all segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchNumber(pub u64);

impl SegmentNumber {
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl BatchNumber {
    pub(crate) const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for BatchNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a block belongs: block `i` of the `n` blocks of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: SegmentNumber,
    pub(crate) batch: BatchNumber,
    pub(crate) position: u32,
    pub(crate) i: u32,
    pub(crate) n: u32,
}

/// What 512 bytes turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// All zero: not written yet.
    Empty,
    /// As it was written.
    Good(Place),
    /// As it was written, by a later version.
    Newer(u16),
    /// Neither.
    Bad,
}

pub(crate) fn read_block(bytes: &[u8]) -> Block {
    debug_assert_eq!(bytes.len(), BLOCK_BYTES, "blocks have one size");
    if is_zero(bytes) {
        return Block::Empty;
    }
    if u32_at(bytes, 0) != crc32c::crc32c_append(BLOCK_SEED, &bytes[4..]) || bytes[4..8] != MAGIC {
        return Block::Bad;
    }
    match u16::from_le_bytes([bytes[8], bytes[9]]) {
        FORMAT_VERSION => Block::Good(Place {
            segment: SegmentNumber(u64_at(bytes, 12)),
            batch: BatchNumber(u64_at(bytes, 20)),
            position: u32_at(bytes, 28),
            i: u32_at(bytes, 32),
            n: u32_at(bytes, 36),
        }),
        0 => Block::Bad,
        version => Block::Newer(version),
    }
}

/// The number of blocks that records of this many bytes take.
pub(crate) fn blocks_for(record_bytes: usize) -> usize {
    (PREFIX_BYTES + record_bytes).div_ceil(BODY_BYTES)
}

/// Lays the records of a batch out in blocks, into `out`; returns the CRC of the whole batch.
pub(crate) fn seal_batch(
    out: &mut Vec<u8>,
    records: &[u8],
    segment: SegmentNumber,
    position: u32,
    batch: BatchNumber,
    crc_before: u32,
) -> u32 {
    let n = u32::try_from(blocks_for(records.len())).expect("a batch is below the limit on its size");
    out.clear();
    out.resize(n as usize * BLOCK_BYTES, 0);
    let len = u32::try_from(records.len()).expect("a batch is below the limit on its size");
    let mut rest = records;
    for (block, i) in out.chunks_exact_mut(BLOCK_BYTES).zip(0..) {
        let mut body = &mut block[HEADER_BYTES..];
        if i == 0 {
            body[..4].copy_from_slice(&crc_before.to_le_bytes());
            body[4..PREFIX_BYTES].copy_from_slice(&len.to_le_bytes());
            body = &mut body[PREFIX_BYTES..];
        }
        let (now, later) = rest.split_at(rest.len().min(body.len()));
        body[..now.len()].copy_from_slice(now);
        rest = later;
        seal_block(block, Place { segment, batch, position: position + i, i, n });
    }
    crc32c::crc32c(out)
}

/// A batch whose blocks are good and in place, taken apart: the CRC of the batch before, and the records.
pub(crate) fn open_batch(blocks: &[u8]) -> Option<(u32, Vec<u8>)> {
    let mut body = Vec::with_capacity(blocks.len());
    for block in blocks.chunks_exact(BLOCK_BYTES) {
        body.extend_from_slice(&block[HEADER_BYTES..]);
    }
    let (crc_before, len) = (u32_at(&body, 0), u32_at(&body, 4) as usize);
    let end = PREFIX_BYTES.checked_add(len).filter(|end| *end <= body.len())?;
    body.truncate(end);
    body.drain(..PREFIX_BYTES);
    Some((crc_before, body))
}

pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|chunk| chunk == &ZEROS[..chunk.len()])
}

fn seal_block(block: &mut [u8], place: Place) {
    block[4..8].copy_from_slice(&MAGIC);
    block[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    block[12..20].copy_from_slice(&place.segment.0.to_le_bytes());
    block[20..28].copy_from_slice(&place.batch.0.to_le_bytes());
    block[28..32].copy_from_slice(&place.position.to_le_bytes());
    block[32..36].copy_from_slice(&place.i.to_le_bytes());
    block[36..40].copy_from_slice(&place.n.to_le_bytes());
    let crc = crc32c::crc32c_append(BLOCK_SEED, &block[4..]);
    block[..4].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(len: usize) -> (Vec<u8>, Vec<u8>) {
        let records: Vec<u8> = (0..len).map(|i| (i % 251) as u8 + 1).collect();
        let mut out = Vec::new();
        seal_batch(&mut out, &records, SegmentNumber(2), 5, BatchNumber(9), 0xabcd);
        (records, out)
    }

    #[test]
    fn a_batch_reads_back_at_every_length_around_a_block() {
        for len in [0, 1, 463, 464, 465, 935, 936, 937, 5000] {
            let (records, blocks) = batch_of(len);
            assert_eq!(blocks.len(), blocks_for(len) * BLOCK_BYTES);
            for (block, i) in blocks.chunks_exact(BLOCK_BYTES).zip(0..) {
                let Block::Good(place) = read_block(block) else { panic!("block {i} of {len} bytes") };
                assert_eq!((place.position, place.i, place.n as usize), (5 + i, i, blocks_for(len)));
            }
            assert_eq!(open_batch(&blocks), Some((0xabcd, records)));
        }
    }

    #[test]
    fn every_flipped_bit_makes_a_block_bad() {
        let (_, block) = batch_of(100);
        for bit in 0..BLOCK_BYTES * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_block(&flipped), Block::Bad, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let (_, mut block) = batch_of(100);
        block[8..10].copy_from_slice(&7u16.to_le_bytes());
        assert_eq!(read_block(&block), Block::Bad);
        let crc = crc32c::crc32c_append(BLOCK_SEED, &block[4..]);
        block[..4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(read_block(&block), Block::Newer(7));
    }
}
