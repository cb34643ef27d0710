//! What a busy machine took from a process, so that a test of a deadline judges the process and not the machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// How long the threads of a process were ready to run while others had the processors, as the kernel counts it.
///
/// Next to nothing on a machine that has nothing else to do. Nothing for a process that is gone, and where the kernel does not count.
pub fn held_back(pid: u32) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    threads.filter_map(|thread| waited(&thread.ok()?.path())).sum()
}

/// Measures a length of time, without that in which threads of this process were held back.
pub struct Timer {
    /// On the boot clock, in nanoseconds.
    began: u64,
    held_back: Duration,
}

impl Timer {
    /// Begins now.
    pub fn start() -> Self {
        Self { held_back: held_back(std::process::id()), began: leasehold_clock::read().boot }
    }

    /// What has passed since then.
    pub fn took(&self) -> Duration {
        let passed = Duration::from_nanos(leasehold_clock::read().boot.saturating_sub(self.began));
        passed.saturating_sub(held_back(std::process::id()).saturating_sub(self.held_back))
    }
}

/// The same as [`held_back`] for the thread that asks.
pub fn this_thread_was_held_back() -> Duration {
    waited(Path::new("/proc/thread-self")).unwrap_or_default()
}

fn waited(thread: &Path) -> Option<Duration> {
    let counted = fs::read_to_string(thread.join("schedstat")).ok()?;
    Some(Duration::from_nanos(counted.split(' ').nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_process_that_is_gone_was_not_held_back() {
        assert_eq!(held_back(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn a_thread_that_shares_its_processor_is_held_back() {
        let before = this_thread_was_held_back();
        let processors = std::thread::available_parallelism().map_or(1, Into::into);
        std::thread::scope(|scope| {
            for _ in 0..2 * processors {
                scope.spawn(|| (0..100_000_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next)));
            }
            (0..100_000_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next));
        });
        assert!(this_thread_was_held_back() > before);
        assert!(held_back(std::process::id()) > Duration::ZERO);
    }
}
