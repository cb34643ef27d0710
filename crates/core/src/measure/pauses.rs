//! Times at which a process stood still.

use core::time::Duration;

use crate::holder::Reading;

/// How much longer than asked a sleep took: a stopped process, a machine without time for it, a suspend. The longest is of the last one to
/// two generations; what is counted is of all time.
#[derive(Debug, Clone)]
pub struct Pauses {
    generation: Duration,
    began: Reading,
    recent: Duration,
    older: Duration,
    longest_ever: Duration,
    last: Option<Duration>,
    over: [u64; Pauses::THRESHOLDS.len()],
    /// All of them together.
    total: Duration,
}

impl Pauses {
    /// Pauses above these are counted: noticed by a fast service, by people, by a short lease.
    pub const THRESHOLDS: [Duration; 3] =
        [Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(1)];

    /// None yet. What was measured is forgotten after one to two times `generation`.
    pub const fn new(generation: Duration, now: Reading) -> Self {
        let none = Duration::ZERO;
        Self {
            generation,
            began: now,
            recent: none,
            older: none,
            longest_ever: none,
            last: None,
            over: [0; Self::THRESHOLDS.len()],
            total: none,
        }
    }

    /// A sleep that was to take `asked` took `took`. Gives back the pause, which is nothing if it came in time.
    pub fn slept(&mut self, asked: Duration, took: Duration, now: Reading) -> Duration {
        self.age(now);
        let pause = took.saturating_sub(asked);
        self.recent = self.recent.max(pause);
        self.longest_ever = self.longest_ever.max(pause);
        self.total = self.total.saturating_add(pause);
        for (threshold, count) in Self::THRESHOLDS.iter().zip(&mut self.over) {
            *count += u64::from(pause > *threshold);
        }
        if pause > Self::THRESHOLDS[0] {
            self.last = Some(pause);
        }
        pause
    }

    /// Forgets what is too old.
    pub fn age(&mut self, now: Reading) {
        let passed = now.since(self.began).greater();
        if passed < self.generation {
            return;
        }
        let forgotten = passed >= self.generation.saturating_mul(2);
        self.older = if forgotten { Duration::ZERO } else { self.recent };
        self.recent = Duration::ZERO;
        self.began = now;
    }

    /// The longest of the last minutes.
    pub fn longest(&self) -> Duration {
        self.recent.max(self.older)
    }

    /// The longest there ever was.
    pub const fn longest_ever(&self) -> Duration {
        self.longest_ever
    }

    /// The last above the first threshold.
    pub const fn last(&self) -> Option<Duration> {
        self.last
    }

    /// How many were above each of [`Pauses::THRESHOLDS`].
    pub const fn over(&self) -> [u64; Pauses::THRESHOLDS.len()] {
        self.over
    }

    /// All of them together: between two readings of this, this process stood still for the difference.
    pub const fn total(&self) -> Duration {
        self.total
    }
}
