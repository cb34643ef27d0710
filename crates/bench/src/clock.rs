//! The only clock reads of the measurement.
//!
//! Two readings on one machine are compared within seconds of each other, so the plain monotonic clock is
//! good enough here; it is not what lease deadlines are computed from.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(t.tv_sec).expect("the clock counts up from zero");
    let nanos = u64::try_from(t.tv_nsec).expect("nanoseconds within a second are not negative");
    seconds * 1_000_000_000 + nanos
}
