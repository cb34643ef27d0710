//! A process and everything that it started, as the kernel lists them.
//!
//! A process group would not do: each backend of PostgreSQL makes a session of its own.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// The kernel takes this long to end a process that has much memory, with room for a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The process itself, then everything below it.
pub(crate) fn of(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        next += 1;
        all.extend(children(parent));
    }
    all
}

/// Ends a process and everything below it. The process is stopped first, so that it starts no more while they are counted.
pub(crate) fn kill(root: u32) -> Result<()> {
    signal(root, Signal::STOP)?;
    for process in of(root) {
        signal(process, Signal::KILL)?;
    }
    Ok(())
}

/// Signals a process. One that is gone already is none to complain about.
pub(crate) fn signal(process: u32, signal: Signal) -> Result<()> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw).context("a process has a number above 0")?;
    match kill_process(id, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("process {process} cannot be signalled")),
    }
}

/// Waits until none of the processes runs. Those that only wait to be collected by somebody do not run.
pub(crate) fn wait_until_gone(processes: &[u32]) -> Result<()> {
    let before = leasehold_clock::read().boot;
    while let Some(process) = processes.iter().find(|process| runs(**process)) {
        let waited = Duration::from_nanos(leasehold_clock::read().boot.saturating_sub(before));
        if waited > GONE_WITHIN {
            bail!("process {process} still runs {GONE_WITHIN:?} after it was killed");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// The memory that processes occupy, what they share counted once.
pub(crate) fn resident_bytes(processes: &[u32]) -> u64 {
    let kibibytes = processes.iter().filter_map(|process| {
        let rollup = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    kibibytes.sum::<u64>() * 1024
}

fn children(parent: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The state stands behind the name, which is in brackets and may hold anything.
fn runs(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_in_sessions_of_their_own_are_found_and_killed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "setsid sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sleep: u32 = line.trim().parse().unwrap();
        let all = of(shell.id());
        assert_eq!(all, [shell.id(), sleep]);
        assert!(resident_bytes(&all) > 0);
        kill(shell.id()).unwrap();
        shell.wait().unwrap();
        wait_until_gone(&all).unwrap();
        assert!(!runs(sleep));
    }

    #[test]
    fn a_process_that_is_gone_is_no_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        kill(child.id()).unwrap();
        wait_until_gone(&[child.id()]).unwrap();
    }
}
