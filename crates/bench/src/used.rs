//! What a process has used, as the kernel says.

use anyhow::{Context, Result};

/// What the kernel counts processor time in for programs; the same on every machine that this is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time so far, and memory now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Seconds of processor time, in user and kernel mode.
    pub(crate) cpu_s: f64,
    /// Resident memory.
    pub(crate) resident_kib: u64,
}

impl Usage {
    /// Of a process that runs: `/proc/PID/stat` and `/proc/PID/status`.
    ///
    /// # Errors
    /// When there is no such process, or its files say something else than expected.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let ticks = ticks(&read("stat")?).context("another /proc/PID/stat than expected")?;
        let resident_kib = resident(&read("status")?).context("no VmRSS in /proc/PID/status")?;
        Ok(Self { cpu_s: f64::from(ticks) / TICKS_PER_SECOND, resident_kib })
    }
}

/// User and kernel time: the 14th and 15th field, counted behind the name, which may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(") ")?;
    let mut fields = behind.split(' ').skip(11);
    let (user, kernel): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    user.checked_add(kernel)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 1 0 99 1000 10";
        assert_eq!(ticks(stat), Some(281));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn this_process_has_used_memory() {
        assert!(Usage::of(std::process::id()).unwrap().resident_kib > 100);
    }
}
