//! What the tests share: directories, processes, their output, and a turn for those that measure time.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Only one test that measures time runs at once: the machine is small, and their figures would disturb each other.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn leasehold() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_leasehold"))
}

/// The worker is an example of this crate, which lies beside the binary.
fn worker_path() -> PathBuf {
    let path = leasehold().parent().unwrap().join("examples").join("worker");
    assert!(path.exists(), "{} is missing: build the examples of this crate", path.display());
    path
}

/// A directory of a test, gone when it ends.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn url(&self) -> String {
        format!("dir:{}", self.store().display())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The real command on this directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(leasehold());
        command.arg("--store").arg(self.url()).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn worker(&self, what: &str, rest: &[&str]) -> Worker {
        let mut command = Command::new(worker_path());
        command.arg(what).arg(self.url()).args(rest);
        Worker::start(command)
    }

    /// The process that serves the directory, as the lock file names it.
    pub(crate) fn server(&self) -> Option<u32> {
        leasehold_server::lock_holder(&self.store()).map(|holder| holder.pid)
    }
}

/// A process whose lines are read.
pub(crate) struct Worker {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Worker {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line that begins with this word, split into words, or nothing in `length`.
    pub(crate) fn wait_for(&self, word: &str, length: Duration) -> Option<Vec<String>> {
        let end = now() + nanos(length);
        loop {
            let left = Duration::from_nanos(end.saturating_sub(now()));
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                    assert!(words[0] != "error", "{line}");
                    if words[0] == word {
                        return Some(words);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Every line that has arrived.
    pub(crate) fn drain(&self) -> Vec<Vec<String>> {
        self.lines.try_iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    /// Every line until the end of the output.
    pub(crate) fn rest(&self) -> Vec<Vec<String>> {
        self.lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_pid(self.pid(), signal);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

pub(crate) fn signal_pid(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may be gone already.
    let _ = kill_process(pid, signal);
}

/// Whether a process is there and not only waiting to be reaped.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// The boot clock in nanoseconds.
pub(crate) fn now() -> u64 {
    leasehold_clock::read().boot
}

pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap()
}

pub(crate) fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

pub(crate) fn pause(length: Duration) {
    std::thread::sleep(length);
}

pub(crate) fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}
