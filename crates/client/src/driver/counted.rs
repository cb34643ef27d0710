//! Maps whose keys are counted: by this process, or by the service that it uses.
//!
//! Nobody chooses such keys to make them collide, so they need no hash that withstands it, and a driver looks several of them up for every
//! message.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from counted keys.
pub(super) type CountedMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// An odd number with well mixed bits: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads numbers that follow each other.
#[derive(Debug, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(ODD);
    }

    fn finish(&self) -> u64 {
        // A product is mixed best at its upper end, and a map looks at both.
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::BuildHasher as _;

    #[test]
    fn numbers_that_follow_each_other_are_spread_at_both_ends() {
        for step in [1_u64, 2, 3, 1 << 10, 1 << 20] {
            let hashes =
                (0..4_096).map(|number: u64| BuildHasherDefault::<Spread>::default().hash_one(number * step));
            let hashes: Vec<u64> = hashes.collect();
            let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xfff).collect();
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 1_024 && high.len() > 64, "{step}: {} and {}", low.len(), high.len());
        }
    }
}
