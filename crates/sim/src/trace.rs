//! What happened, as a hash that two runs of one seed must agree on, and in words for whoever wants to read it.

use crate::random::mix;

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const MILLI: u64 = 1_000_000;
/// Nanoseconds of a microsecond.
pub const MICRO: u64 = 1_000;

/// A hash over everything, and optionally lines.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    prints: bool,
    /// Lines are printed only within this stretch of true time.
    from: u64,
    to: u64,
}

impl Trace {
    /// Counts and hashes; prints if asked to, within a stretch of true time.
    pub const fn new(prints: bool, from: u64, to: u64) -> Self {
        Self { hash: 0, events: 0, prints, from, to }
    }

    /// Takes in one event.
    pub const fn note(&mut self, at: u64, what: u64, detail: u64) {
        self.events += 1;
        self.hash = mix(self.hash.wrapping_add(at) ^ mix(what ^ detail.rotate_left(17)));
    }

    /// Prints a line, if lines are wanted now.
    pub fn say(&self, at: u64, line: impl FnOnce() -> String) {
        if self.prints && at >= self.from && at <= self.to {
            println!("{:>14.6} {}", seconds(at), line());
        }
    }

    /// What it all comes to.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events there were.
    pub const fn events(&self) -> u64 {
        self.events
    }
}

/// Seconds for people.
pub fn seconds(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let nanos = nanos as f64;
    nanos / 1e9
}
