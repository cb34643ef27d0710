//! Server processes: started alike, watched by the kernel's counters, gone when the measurement is.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::now_ns;

/// How often a server that starts is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a server may take to start: the largest of them read a million leases first.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one that is asked to end may take.
const PATIENCE_TO_STOP: Duration = Duration::from_secs(20);
/// Enough of a log to see what a server complained about.
const LAST_LINES: usize = 20;

/// A server process, started the same way each time. It is killed when this is dropped, and by the kernel when this process ends.
#[derive(Debug)]
pub struct Process {
    name: String,
    command: Command,
    /// Where its output goes.
    log: PathBuf,
    child: Option<Child>,
}

/// A program that the kernel kills when this process ends.
pub fn tied(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// When the program does not start.
    pub fn start(name: &str, command: Command, log: PathBuf) -> Result<Self> {
        let mut process = Self { name: name.to_owned(), command, log, child: None };
        process.run()?;
        Ok(process)
    }

    /// Starts it again after it was killed.
    ///
    /// # Errors
    /// When the program does not start.
    pub fn run(&mut self) -> Result<()> {
        let (name, log) = (&self.name, OpenOptions::new().create(true).append(true).open(&self.log));
        let log = log.with_context(|| format!("the log of {name} cannot be opened"))?;
        self.command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).current_dir("/");
        self.child = Some(self.command.spawn().with_context(|| format!("{name} does not start"))?);
        Ok(())
    }

    /// The number of its process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether it runs.
    pub fn lives(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Asks it to end, as a supervisor does, and says how it ended.
    ///
    /// # Errors
    /// When it does not run, or does not end.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        let child = self.child.as_mut().with_context(|| format!("{} does not run", self.name))?;
        kill_process(Pid::from_child(child), Signal::TERM).context("it cannot be signalled")?;
        let give_up = now_ns() + u64::try_from(PATIENCE_TO_STOP.as_nanos())?;
        while now_ns() < give_up {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        bail!("{} does not stop", self.name)
    }

    /// Kills it with all its children, and waits until it is gone.
    pub fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // The number of one that has ended may be another's by now.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        let family = super::usage::family(child.id());
        // Whatever fails here fails because it is gone already, which is what is wanted.
        let _ = child.kill();
        for pid in family.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = child.wait();
    }

    /// Waits until `ready` gives something.
    ///
    /// # Errors
    /// When the process ends, or takes too long: with the last lines of its log.
    pub fn until<T>(&mut self, mut ready: impl FnMut() -> Result<T>) -> Result<T> {
        let give_up = now_ns() + u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let error = match ready() {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                bail!("{} ended with {status}:\n{}", self.name, self.last_lines());
            }
            if now_ns() > give_up {
                bail!("{} is not ready after {PATIENCE:?}: {error:#}\n{}", self.name, self.last_lines());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn last_lines(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports that nobody listens on at this moment, all different.
///
/// # Errors
/// When the system gives none.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    // All are held until the last is known, so that none is given twice.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)))
        .collect::<std::io::Result<_>>()
        .context("no free port")?;
    held.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// A program in one of these directories or on the path.
pub fn program(name: &str, places: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = places.iter().cloned().chain(std::env::split_paths(&path));
    all.map(|place| place.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_told_with_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut shell = tied("sh");
        shell.args(["-c", "echo no such option; exit 3"]);
        let mut process = Process::start("shell", shell, directory.path().join("log")).unwrap();
        let error = process.until(|| -> Result<()> { bail!("not yet") }).unwrap_err().to_string();
        assert!(error.contains("no such option") && error.contains('3'), "{error}");
    }

    #[test]
    fn ports_are_all_different() {
        let mut ports = free_ports(20).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
