//! The only clock reads of the measurement.
//!
//! Two readings on one machine are compared within seconds of each other, so the plain monotonic clock is
//! good enough here; it is not what lease deadlines are computed from.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Processor time of this process, all threads, user and system, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    let seconds = u64::try_from(t.tv_sec).expect("the clock counts up from zero");
    let nanos = u64::try_from(t.tv_nsec).expect("nanoseconds within a second are not negative");
    seconds * 1_000_000_000 + nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_grows_when_work_is_done() {
        let before = cpu_ns();
        let mut x = 1_u64;
        while cpu_ns() - before < 1_000_000 {
            x = std::hint::black_box(x.wrapping_mul(31));
        }
        assert!(now_ns() > 0);
    }
}
