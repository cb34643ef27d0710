//! What servers have used, as the kernel counts it: processes and all their children together.

use std::collections::HashMap;
use std::ops::Sub;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What the kernel counts processor time in for programs; the same on every machine that this is built for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Used so far by all processes of a system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu_s: f64,
    /// Bytes of pages that were to be written, as `/proc/PID/io` counts them. Where a file is kept in large pages, a small write counts as one
    /// of those: this is no measure of what reaches a disk.
    pub dirtied: f64,
    /// Resident memory now, in MiB.
    pub resident_mib: f64,
}

impl Used {
    /// Of these processes and everything below them.
    ///
    /// # Errors
    /// When one of them is gone.
    pub fn by(roots: &[u32]) -> Result<Self> {
        let mut used = Self::default();
        for &root in roots {
            for pid in family(root) {
                // A child may end while it is looked at; a root may not.
                match of(pid) {
                    Ok(one) => {
                        used.cpu_s += one.cpu_s;
                        used.dirtied += one.dirtied;
                        used.resident_mib += one.resident_mib;
                    }
                    Err(error) if pid == root => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(used)
    }
}

impl Sub for Used {
    type Output = Self;

    /// What was used between two looks. Memory is that of the later one.
    fn sub(self, before: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - before.cpu_s,
            dirtied: self.dirtied - before.dirtied,
            resident_mib: self.resident_mib,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a measurement are far below 2^53")]
fn of(pid: u32) -> Result<Used> {
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    let ticks = ticks(&read("stat")?).context("another /proc/PID/stat than expected")?;
    let resident_kib = number(&read("status")?, "VmRSS:").context("no VmRSS in /proc/PID/status")?;
    let dirtied = number(&read("io")?, "write_bytes:").context("no write_bytes in /proc/PID/io")?;
    let (dirtied, resident_mib) = (dirtied as f64, resident_kib as f64 / 1024.0);
    Ok(Used { cpu_s: f64::from(ticks) / TICKS_PER_SECOND, dirtied, resident_mib })
}

/// User and kernel time: the 14th and 15th field, counted behind the name, which may hold anything.
fn ticks(stat: &str) -> Option<u32> {
    let (_, behind) = stat.rsplit_once(") ")?;
    let mut fields = behind.split(' ').skip(11);
    let (user, kernel): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    user.checked_add(kernel)
}

/// The number behind the word that a line begins with.
pub(crate) fn number(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word))?.split_whitespace().next()?.parse().ok()
}

/// The disk that a directory lies on, by its numbers.
///
/// # Errors
/// When there is no such directory.
pub fn disk_of(place: &std::path::Path) -> Result<(u32, u32)> {
    let status =
        rustix::fs::stat(place).with_context(|| format!("{} cannot be looked at", place.display()))?;
    Ok((rustix::fs::major(status.st_dev), rustix::fs::minor(status.st_dev)))
}

/// Bytes that were written to a disk since the machine was started, by everybody; nothing if it is no disk that the kernel counts.
pub fn disk_written(disk: (u32, u32)) -> Option<f64> {
    written_to(&std::fs::read_to_string("/proc/diskstats").ok()?, disk)
}

/// The tenth field, in sectors of 512 bytes whatever the disk has.
#[expect(clippy::cast_precision_loss, reason = "bytes of a measurement are far below 2^53")]
fn written_to(statistics: &str, (major, minor): (u32, u32)) -> Option<f64> {
    let line = statistics.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let numbers = [major.to_string(), minor.to_string()];
    let line = line.into_iter().find(|fields| fields.starts_with(&[&numbers[0], &numbers[1]]))?;
    let sectors: u64 = line.get(9)?.parse().ok()?;
    Some(sectors as f64 * 512.0)
}

/// A process and everything below it.
pub fn family(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut all, mut next) = (vec![root], 0);
    while let Some(pid) = all.get(next) {
        all.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    all
}

/// The fourth field, counted behind the name, which may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_grandchild_belongs_to_the_family_and_its_work_is_counted() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60' & wait";
        let mut shell = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let began = crate::clock::now_ns();
        let busy = loop {
            let used = Used::by(&[shell.id()]).unwrap();
            if used.cpu_s > 0.0 && family(shell.id()).len() >= 2 {
                break used;
            }
            assert!(crate::clock::now_ns() - began < 20_000_000_000, "{used:?}");
        };
        assert!(busy.resident_mib > 0.0);
        for pid in family(shell.id()).into_iter().rev() {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        assert!(Used::by(&[shell.id()]).is_err(), "a root that is gone is told");
    }

    #[test]
    fn bytes_dirtied_are_found() {
        let of = |io| number(io, "write_bytes:");
        assert_eq!(of("wchar: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n"), Some(4096));
        assert_eq!(of("wchar: 7\n"), None);
    }

    #[test]
    fn the_times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 1 0 99 1000 10";
        assert_eq!(ticks(stat), Some(281));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn bytes_of_one_disk_are_found_among_others() {
        let statistics =
            "   8       0 sda 1 2 3 4 5 6 70 8 9 10 11\n 253       0 vda 1 2 3 4 5 6 30 8 9 10 11\n";
        assert_eq!(written_to(statistics, (253, 0)), Some(30.0 * 512.0));
        assert_eq!(written_to(statistics, (7, 0)), None);
    }
}
