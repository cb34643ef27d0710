//! The only source of chance: a small generator that gives the same numbers on every machine.

/// SplitMix64. Parts of the world that must not disturb each other get their own by [`Random::fork`].
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A generator of its own for a part of the world.
    pub const fn fork(&mut self, part: u64) -> Self {
        Self(mix(self.bits() ^ mix(part)))
    }

    /// A number below `bound`; zero if that is zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// A number from `least` to `most`, both included.
    pub const fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// An index below `len`, which is not zero.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index is small")
    }

    /// Whether something that happens so many times in a million happens now.
    pub const fn millionths(&mut self, parts: u64) -> bool {
        parts > 0 && self.below(1_000_000) < parts
    }

    /// Whether something that happens once in so many times happens now.
    pub const fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// A length around `middle`: mostly near, sometimes several times as long.
    pub const fn around(&mut self, middle: u64) -> u64 {
        let half = middle / 2;
        let length = half + self.below(middle + 1);
        if self.one_in(16) { length * 4 } else { length }
    }

    /// 32 bits.
    pub fn word(&mut self) -> u32 {
        u32::try_from(self.bits() >> 32).expect("32 bits are left")
    }
}

/// One step of SplitMix64.
pub const fn mix(state: u64) -> u64 {
    let mut bits = state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
