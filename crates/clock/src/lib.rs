//! The two clocks of this machine.
//!
//! `CLOCK_BOOTTIME` runs on in suspend and is slewed by time daemons; `CLOCK_MONOTONIC_RAW` is never slewed and stands still in
//! suspend. Whoever lends takes the smaller elapsed time of the two, whoever borrows the greater: every disagreement then errs
//! to the safe side. `std::time::Instant` is neither of them and is not used for deadlines.
//!
//! This is the only place that reads them. Neither clock sees the pause of a whole virtual machine; only a fence covers that.

use leasehold_core::holder::Reading;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads both clocks.
pub fn read() -> Reading {
    Reading {
        boot: nanos(clock_gettime(ClockId::Boottime)),
        raw: nanos(clock_gettime(ClockId::MonotonicRaw)),
    }
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
}
