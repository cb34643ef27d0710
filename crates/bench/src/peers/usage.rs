//! What servers have used, as the kernel counts it: processes and all their children together.

use std::collections::HashMap;
use std::ops::Sub;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::coalescing::process::Usage;

/// Used so far by all processes of a system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu_s: f64,
    /// Bytes that were sent towards a disk.
    pub written: f64,
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
                        used.written += one.written;
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
            written: self.written - before.written,
            resident_mib: self.resident_mib,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a measurement are far below 2^53")]
fn of(pid: u32) -> Result<Used> {
    let usage = Usage::of(pid)?;
    let path = format!("/proc/{pid}/io");
    let io = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let written = written(&io).context("no write_bytes in /proc/PID/io")?;
    let resident_mib = usage.resident_kib as f64 / 1024.0;
    Ok(Used { cpu_s: usage.cpu_s, written: written as f64, resident_mib })
}

fn written(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.trim().parse().ok()
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
        let began = crate::session_stream::clock::now_ns();
        let busy = loop {
            let used = Used::by(&[shell.id()]).unwrap();
            if used.cpu_s > 0.0 && family(shell.id()).len() >= 2 {
                break used;
            }
            assert!(crate::session_stream::clock::now_ns() - began < 20_000_000_000, "{used:?}");
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
    fn bytes_written_are_found() {
        assert_eq!(written("wchar: 7\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n"), Some(4096));
        assert_eq!(written("wchar: 7\n"), None);
    }
}
