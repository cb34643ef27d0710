//! Names of files, and what is in one segment.
//!
//! Reading decides nothing about the directory as a whole: it says which batches are whole, and whether the next one was torn by a
//! crash. Everything that is neither is damage.

use leasehold_core::planted::{Bug, planted};

use crate::block::{
    BLOCK_BYTES, BatchNumber, Block, FORMAT_VERSION, Place, SegmentNumber, open_batch, read_block,
};
use crate::error::{Damage, OpenError};
use crate::record::{Item, decode};

/// What a name in the directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Segment(SegmentNumber),
    Snapshot(BatchNumber),
    /// Being made; of no meaning after a crash.
    Aside,
    /// Not ours: the lock file, a socket.
    Other,
}

pub(crate) fn segment_name(number: SegmentNumber) -> String {
    format!("segment-{:020}.log", number.0)
}

pub(crate) fn snapshot_name(number: BatchNumber) -> String {
    format!("snapshot-{:020}.snap", number.0)
}

pub(crate) const SNAPSHOT_ASIDE: &str = "snapshot.tmp";

pub(crate) fn parse_name(name: &str) -> Name {
    let number = |prefix: &str, suffix: &str| {
        let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        // There is a number below and above each: neither the first nor the last is ever given out.
        if plain { digits.parse::<u64>().ok().filter(|number| (1..u64::MAX).contains(number)) } else { None }
    };
    if let Some(number) = number("segment-", ".log") {
        Name::Segment(SegmentNumber(number))
    } else if let Some(number) = number("snapshot-", ".snap") {
        Name::Snapshot(BatchNumber(number))
    } else if name == SNAPSHOT_ASIDE {
        Name::Aside
    } else {
        Name::Other
    }
}

/// A head's word for its batch is believed below this: numbering goes on from there and must not pass the end.
const HIGHEST_BATCH: u64 = u64::MAX / 2;

/// The end of the chain: what the next batch must be numbered, and what it must say of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) next: BatchNumber,
    pub(crate) crc: u32,
}

impl Chain {
    pub(crate) const START: Self = Self { next: BatchNumber::FIRST, crc: 0 };
}

/// A run of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) position: u32,
    pub(crate) blocks: u32,
}

/// What a segment holds, besides its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contents {
    pub(crate) batches: u64,
    pub(crate) last: Extent,
    pub(crate) chain: Chain,
    /// The first block of the next batch.
    pub(crate) end: u32,
    /// Blocks of a batch that was never synced.
    pub(crate) torn: Option<Extent>,
}

/// Reads one segment, giving each record to `sink` with the offset of its batch.
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) number: SegmentNumber,
    /// Whether a torn batch may be at its end.
    pub(crate) is_last: bool,
}

enum Next {
    Batch(u32),
    Torn(Extent),
    End,
}

impl Reader<'_> {
    /// `before` is the end of the segment before; without it, the head's word is taken.
    pub(crate) fn read(
        &self,
        before: Option<Chain>,
        mut sink: impl FnMut(Item, u64) -> Result<(), OpenError>,
    ) -> Result<Contents, OpenError> {
        if !self.bytes.len().is_multiple_of(BLOCK_BYTES) {
            return self.damage(self.bytes.len() as u64, "the file ends within a block");
        }
        let mut chain = match before {
            Some(chain) => chain,
            None => self.chain_of_head()?,
        };
        let mut contents =
            Contents { batches: 0, last: Extent { position: 0, blocks: 0 }, chain, end: 0, torn: None };
        while contents.end < self.total() {
            let position = contents.end;
            let blocks = match self.next_at(position, chain.next)? {
                Next::Batch(blocks) => blocks,
                Next::Torn(extent) => {
                    contents.torn = Some(extent);
                    break;
                }
                Next::End => break,
            };
            let whole = &self.bytes[position as usize * BLOCK_BYTES..][..blocks as usize * BLOCK_BYTES];
            let Some((crc_before, records)) = open_batch(whole) else {
                return self.damage_at(position, "a batch that is longer than its blocks");
            };
            let first_of_all = before.is_none() && position == 0;
            if crc_before != chain.crc && !first_of_all && !planted(Bug::ChainUnchecked) {
                return self.damage_at(position, "a batch that does not follow the one before it");
            }
            let offset = u64::from(position) * BLOCK_BYTES as u64;
            match decode(&records) {
                Ok(items) => items.into_iter().try_for_each(|item| sink(item, offset))?,
                Err(what) => return self.damage_at(position, what),
            }
            chain = Chain { next: chain.next.next(), crc: crc32c::crc32c(whole) };
            contents.batches += 1;
            contents.last = Extent { position, blocks };
            contents.chain = chain;
            contents.end = position + blocks;
        }
        Ok(contents)
    }

    fn total(&self) -> u32 {
        u32::try_from(self.bytes.len() / BLOCK_BYTES).unwrap_or(u32::MAX)
    }

    fn chain_of_head(&self) -> Result<Chain, OpenError> {
        if self.bytes.is_empty() {
            return self.damage(0, "the file is empty");
        }
        match self.block(0)? {
            Block::Good(place) if place.batch.0 < HIGHEST_BATCH => Ok(Chain { next: place.batch, crc: 0 }),
            Block::Good(_) => self.damage_at(0, "a head with a batch number that is never reached"),
            Block::Empty | Block::Newer(_) | Block::Bad => self.damage_at(0, "no good head"),
        }
    }

    /// A block, with a newer version already refused.
    fn block(&self, position: u32) -> Result<Block, OpenError> {
        match read_block(&self.bytes[position as usize * BLOCK_BYTES..][..BLOCK_BYTES]) {
            Block::Newer(version) => Err(OpenError::NewerVersion {
                file: self.file.to_owned(),
                version,
                supported: FORMAT_VERSION,
            }),
            block => Ok(block),
        }
    }

    /// What begins at `position`, where batch `batch` would be.
    fn next_at(&self, position: u32, batch: BatchNumber) -> Result<Next, OpenError> {
        let Block::Good(first) = self.block(position)? else {
            return self.unfinished_at(position, batch);
        };
        let place =
            |i| Place { segment: self.number, batch, position: position.saturating_add(i), i, n: first.n };
        if first != place(0) || first.n == 0 || first.n > self.total() - position {
            return self.damage_at(position, "a block that belongs elsewhere");
        }
        for i in 1..first.n {
            if self.block(position + i)? != Block::Good(place(i)) {
                return self.unfinished_at(position, batch);
            }
        }
        Ok(Next::Batch(first.n))
    }

    /// A batch that is not whole: it is the end of the log only if nothing but empty blocks and blocks of this very batch follow.
    fn unfinished_at(&self, position: u32, batch: BatchNumber) -> Result<Next, OpenError> {
        let mut torn: Option<u32> = None;
        let mut hole: Option<u32> = None;
        let mut cut_damage = false;
        for at in position..self.total() {
            match self.block(at)? {
                Block::Empty => hole = hole.or(Some(at)),
                Block::Good(found) => {
                    let n = torn.unwrap_or(found.n);
                    let i = at - position;
                    let fits = i < n && n <= self.total() - position;
                    if !fits || found != (Place { segment: self.number, batch, position: at, i, n }) {
                        let what =
                            "an empty block with a later batch behind it, or a block that belongs elsewhere";
                        return self.damage_at(hole.unwrap_or(at), what);
                    }
                    torn = Some(n);
                }
                Block::Bad if planted(Bug::CutOnDamage) && self.is_last => {
                    cut_damage = true;
                }
                Block::Newer(_) | Block::Bad => {
                    return self.damage_at(at, "a block that is neither good nor empty");
                }
            }
        }
        let Some(blocks) = torn.or(cut_damage.then_some(1)) else { return Ok(Next::End) };
        if !self.is_last || planted(Bug::TornTailIsDamage) {
            return self.damage_at(position, "a batch that is not whole, with a later segment behind it");
        }
        Ok(Next::Torn(Extent { position, blocks }))
    }

    fn damage_at<T>(&self, position: u32, what: &str) -> Result<T, OpenError> {
        self.damage(u64::from(position) * BLOCK_BYTES as u64, what)
    }

    fn damage<T>(&self, offset: u64, what: &str) -> Result<T, OpenError> {
        Err(Damage { file: self.file.to_owned(), offset, what: what.to_owned() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_foreign_ones_are_left_alone() {
        assert_eq!(parse_name(&segment_name(SegmentNumber(7))), Name::Segment(SegmentNumber(7)));
        assert_eq!(parse_name(&snapshot_name(BatchNumber(8))), Name::Snapshot(BatchNumber(8)));
        assert_eq!(parse_name(SNAPSHOT_ASIDE), Name::Aside);
        for name in ["lock", "socket", "segment-7.log", "segment-+0000000000000000007.log", "other.tmp"] {
            assert_eq!(parse_name(name), Name::Other, "{name}");
        }
    }
}
