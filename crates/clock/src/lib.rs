//! The two clocks of this machine.
//!
//! `CLOCK_BOOTTIME` runs on in suspend and is slewed by time daemons; `CLOCK_MONOTONIC_RAW` is never slewed and stands still in
//! suspend. Whoever lends takes the smaller elapsed time of the two, whoever borrows the greater: every disagreement then errs
//! to the safe side. `std::time::Instant` is neither of them and is not used for deadlines.
//!
//! This is the only place that reads them. Neither clock sees the pause of a whole virtual machine; only a fence covers that.

use leasehold_core::holder::Reading;
use leasehold_core::measure::Clocks;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads both clocks.
pub fn read() -> Reading {
    Reading {
        boot: nanos(clock_gettime(ClockId::Boottime)),
        raw: nanos(clock_gettime(ClockId::MonotonicRaw)),
    }
}

/// Two readings of one clock that lie further apart have something between them that is no reading.
const CLOSE_NANOS: u64 = 20_000;
/// How often four clocks are read again because they were not read at one moment.
const TRIES: u32 = 4;

/// Reads all four clocks, for measurement only: how they run against each other, and whether somebody set the time of day. No outcome
/// depends on it; deadlines are made of [`read`] alone. A reading in which this thread was interrupted is made again.
pub fn measure() -> Clocks {
    let mut best = measured();
    for _ in 1..TRIES {
        if best.1 <= CLOSE_NANOS {
            break;
        }
        let next = measured();
        best = if next.1 < best.1 { next } else { best };
    }
    best.0
}

/// All clocks, and how long the reading took.
fn measured() -> (Clocks, u64) {
    let before = nanos(clock_gettime(ClockId::MonotonicRaw));
    let monotonic = nanos(clock_gettime(ClockId::Monotonic));
    let reading = read();
    let wall = nanos(clock_gettime(ClockId::Realtime));
    let after = nanos(clock_gettime(ClockId::MonotonicRaw));
    (Clocks { reading, monotonic, wall }, after.saturating_sub(before))
}

/// How long this thread has computed: for measuring programs, not for deadlines.
pub fn computed() -> core::time::Duration {
    core::time::Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// How long all threads of this process have computed.
pub fn computed_by_all() -> core::time::Duration {
    core::time::Duration::from_nanos(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

fn nanos(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_run() {
        let first = read();
        let mut second = read();
        while second.boot == first.boot || second.raw == first.raw {
            second = read();
        }
        assert!(second.boot > first.boot && second.raw > first.raw);
    }

    #[test]
    fn four_clocks_are_read_and_none_is_another() {
        let first = measure();
        let mut second = measure();
        while second.monotonic == first.monotonic || second.wall == first.wall {
            second = measure();
        }
        // The time of day counts from 1970, the others from the start of the machine.
        assert!(second.wall / 2 > second.monotonic && second.reading.boot >= second.monotonic);
    }
}
