//! Round trips in fixed buckets.

use core::time::Duration;

use crate::holder::Reading;

/// Each power of two is cut into this many buckets: a bound is too large by a sixteenth at most.
const PARTS: u64 = 16;
/// The same as a power of two.
const PART_BITS: u32 = 4;
/// The last bucket ends at 2^32 microseconds, which is more than an hour.
const TOP_BIT: u32 = 31;
const BUCKETS: usize = ((TOP_BIT - PART_BITS + 2) as usize) * PARTS as usize;

/// Round trips of some minutes.
#[derive(Debug, Clone)]
struct Generation {
    counts: [u32; BUCKETS],
    count: u64,
    longest: Duration,
}

impl Generation {
    const fn new() -> Self {
        Self { counts: [0; BUCKETS], count: 0, longest: Duration::ZERO }
    }
}

/// How long answers took. Quantiles, count and the longest are of the present generation and the one before; totals are of all time.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    generation: Duration,
    began: Reading,
    recent: Generation,
    older: Generation,
    total: u64,
    total_time: Duration,
}

impl RoundTrips {
    /// None yet. What was measured is forgotten after one to two times `generation`.
    pub const fn new(generation: Duration, now: Reading) -> Self {
        let (recent, older) = (Generation::new(), Generation::new());
        Self { generation, began: now, recent, older, total: 0, total_time: Duration::ZERO }
    }

    /// One more.
    pub fn add(&mut self, took: Duration, now: Reading) {
        self.age(now);
        let counted = &mut self.recent.counts[bucket(micros(took))];
        *counted = counted.saturating_add(1);
        self.recent.count += 1;
        self.recent.longest = self.recent.longest.max(took);
        self.total += 1;
        self.total_time = self.total_time.saturating_add(took);
    }

    /// Forgets what is too old.
    pub fn age(&mut self, now: Reading) {
        let passed = now.since(self.began).greater();
        if passed < self.generation {
            return;
        }
        core::mem::swap(&mut self.recent, &mut self.older);
        if passed >= self.generation.saturating_mul(2) {
            self.older = Generation::new();
        }
        self.recent = Generation::new();
        self.began = now;
    }

    /// So many thousandths of the round trips took at most so long; nothing if there were none. The bound is the end of a bucket, or
    /// the longest of all if that is less.
    pub fn quantile(&self, per_mille: u16) -> Option<Duration> {
        let rank = (self.count() * u64::from(per_mille.min(1_000))).div_ceil(1_000).max(1);
        let mut below = 0;
        let counts = self.recent.counts.iter().zip(&self.older.counts);
        for (place, (recent, older)) in counts.enumerate() {
            below += u64::from(*recent) + u64::from(*older);
            if below >= rank {
                let bound = upper_bound(place).map_or(self.longest(), Duration::from_micros);
                return Some(bound.min(self.longest()));
            }
        }
        None
    }

    /// How many.
    pub const fn count(&self) -> u64 {
        self.recent.count + self.older.count
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        self.recent.longest.max(self.older.longest)
    }

    /// How many there ever were.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// How long all of them took together.
    pub const fn total_time(&self) -> Duration {
        self.total_time
    }
}

/// Rounded up, so that no bound is too small.
fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

fn bucket(micros: u64) -> usize {
    if micros < PARTS {
        return usize::try_from(micros).unwrap_or(0);
    }
    let top = micros.ilog2();
    if top > TOP_BIT {
        return BUCKETS - 1;
    }
    let part = (micros >> (top - PART_BITS)) & (PARTS - 1);
    let place = u64::from(top - PART_BITS + 1) * PARTS + part;
    usize::try_from(place).unwrap_or(BUCKETS - 1)
}

/// The greatest number of microseconds in a bucket; the last one has none.
fn upper_bound(place: usize) -> Option<u64> {
    if place + 1 == BUCKETS {
        return None;
    }
    let place = u64::try_from(place).ok()?;
    if place < PARTS {
        return Some(place);
    }
    let shift = u32::try_from(place / PARTS - 1).ok()?;
    Some(((PARTS + place % PARTS + 1) << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_without_a_hole_and_their_bounds_belong_to_them() {
        let mut next = 0;
        for place in 0..BUCKETS - 1 {
            let bound = upper_bound(place).unwrap();
            assert_eq!((bucket(next), bucket(bound)), (place, place), "{next} to {bound}");
            next = bound + 1;
        }
        assert_eq!((bucket(next), upper_bound(BUCKETS - 1)), (BUCKETS - 1, None));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
