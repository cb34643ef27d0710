//! Randomness and how bad a world is.

use crate::id::Nonce;

pub(super) const MS: u64 = 1_000_000;

/// A small generator: the same seed gives the same world on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn nonce(&mut self) -> Nonce {
        let (a, b) = (self.next(), self.next());
        Nonce(((u128::from(a) << 64) | u128::from(b)).to_be_bytes())
    }
}

/// How bad a world is.
pub(super) struct Weather {
    /// One in so many messages on a living connection is lost; zero loses none.
    pub(super) loss: u64,
    /// The ordinary delay of a message is below this.
    pub(super) delay: u64,
    /// One in so many messages takes up to half a ttl; zero makes none slow.
    pub(super) slow: u64,
    /// The application closes its session once in so many wishes, and releases a lease once in so many.
    pub(super) close: u64,
    pub(super) release: u64,
    /// Whether one client at a time is cut off, mostly for about a ttl, while the other waits.
    pub(super) sieges: bool,
}

impl Weather {
    /// A good third of the worlds cut off whoever holds, a third opens many sessions, the rest is a bit of everything. In the
    /// first two the service's clock is fastest and the holders' slowest, or errors of a few per cent would stay hidden.
    pub(super) fn draw(random: &mut Random) -> (Self, bool) {
        match random.below(5) {
            0 | 1 => (Self { loss: 30, delay: 2 * MS, slow: 4, close: 200, release: 30, sieges: true }, true),
            2 | 3 => (Self { loss: 30, delay: 2 * MS, slow: 3, close: 6, release: 30, sieges: true }, true),
            _ => {
                let (loss, slow) = (10 + random.below(40), 10 + random.below(40));
                let delay = 1 + random.below(60) * MS;
                (Self { loss, delay, slow, close: 40, release: 4, sieges: false }, false)
            }
        }
    }

    pub(super) fn fair() -> Self {
        Self { loss: 0, delay: 20 * MS, slow: 0, close: 40, release: 4, sieges: false }
    }
}
