//! Chance: random bytes of the system for what must not be guessed or met twice, and numbers drawn from a seed for everything else.

use leasehold_core::Nonce;
use leasehold_core::holder::Fraction;

/// Random bytes. Without randomness two sessions could be taken for one: there is no safe way to go on.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// A nonce. It is a secret, and must differ from all others: the system draws it.
pub(super) fn nonce() -> Nonce {
    Nonce(random())
}

/// Draws jitter for every poll of every session. It only keeps sessions apart that began together, so the system is asked for a seed and not for each
/// draw, which would be a call into the kernel.
#[derive(Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn seeded() -> Self {
        Self(u64::from_le_bytes(random()))
    }

    /// The next one: SplitMix64, which goes through every state whatever the seed.
    pub(super) fn draw(&mut self) -> Fraction {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [.., a, b, c, d] = (mixed ^ (mixed >> 31)).to_le_bytes();
        Fraction::from_bits(u32::from_le_bytes([a, b, c, d]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn draws_are_spread_evenly() {
        let mut jitter = Jitter(7);
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            let part = jitter.draw().of(Duration::from_millis(10)).as_millis();
            tenths[usize::try_from(part).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|count| (900..1_100).contains(count)), "{tenths:?}");
    }
}
