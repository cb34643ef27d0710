//! Random numbers that a seed decides. Not fit for secrets.

use std::ops::Range;
use std::time::Duration;

/// A small generator: every draw is a mix of a counter.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator that draws other numbers, for somebody else.
    pub fn split(&mut self) -> Self {
        Self(self.draw())
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.draw() % end).expect("below a usize")
    }

    /// A length of time within the range.
    pub fn between(&mut self, range: &Range<Duration>) -> Duration {
        let span = range.end.saturating_sub(range.start).as_nanos();
        let span = u64::try_from(span).unwrap_or(u64::MAX).max(1);
        range.start + Duration::from_nanos(self.draw() % span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_and_splits_differ() {
        let (mut one, mut same) = (Random::new(7), Random::new(7));
        assert_eq!(one.draw(), same.draw());
        let mut other = one.split();
        assert_ne!(one.draw(), other.draw());
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = Random::new(1);
        let range = Duration::from_millis(10)..Duration::from_millis(20);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!(range.contains(&random.between(&range)));
        }
    }
}
