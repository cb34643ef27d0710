//! What the tests share: stores, processes, their output, a turn for those that measure time, and what a busy machine took from them.

#[path = "../service/server.rs"]
mod server;

use std::cell::{RefCell, RefMut};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use server::Server;

/// A test that measures time runs alone: the machine is small, and figures would disturb each other. The others run beside each other.
static TURN: RwLock<()> = RwLock::new(());
/// Longer than anything here takes on a machine that is busy with something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn turn() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(PoisonError::into_inner)
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

/// A store of a test, gone when it ends: a directory that its processes share, or one with a service of its own.
pub(crate) struct Place {
    service: Option<RefCell<Server>>,
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { service: None, directory: tempfile::tempdir().unwrap() }
    }

    /// In memory, for tests that would measure the disk.
    pub(crate) fn in_memory() -> Self {
        Self { service: None, directory: tempfile::tempdir_in("/dev/shm").unwrap() }
    }

    /// A store behind TCP, served by a process that is nobody's client.
    pub(crate) fn served() -> Self {
        Self::served_as(&[])
    }

    /// The same, with more words on its command line.
    pub(crate) fn served_as(settings: &[&str]) -> Self {
        Self::served_from(tempfile::tempdir().unwrap(), settings)
    }

    /// The same in memory.
    pub(crate) fn served_in_memory() -> Self {
        Self::served_from(tempfile::tempdir_in("/dev/shm").unwrap(), &[])
    }

    fn served_from(directory: tempfile::TempDir, settings: &[&str]) -> Self {
        let server = Server::start(directory.path(), settings);
        Self { service: Some(RefCell::new(server)), directory }
    }

    /// The service of a place that has one.
    pub(crate) fn service(&self) -> RefMut<'_, Server> {
        self.service.as_ref().expect("only asked for where there is a service").borrow_mut()
    }

    pub(crate) fn is_served(&self) -> bool {
        self.service.is_some()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub(crate) fn url(&self) -> String {
        match &self.service {
            Some(service) => service.borrow().url(),
            None => format!("dir:{}", self.store().display()),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The real command on this store.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(leasehold());
        command.arg("--store").arg(self.url()).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn worker(&self, what: &str, rest: &[&str]) -> Worker {
        worker_at(&self.url(), what, rest)
    }

    /// A process that serves a directory and does nothing else. A service needs none.
    pub(crate) fn idle_server(&self) -> Option<Worker> {
        if self.is_served() {
            return None;
        }
        let server = self.worker("idle", &[]);
        server.wait_for("connected", PATIENCE).expect("the server starts");
        Some(server)
    }

    /// The process that serves the directory, as the lock file names it.
    pub(crate) fn server(&self) -> Option<u32> {
        leasehold_host::lock_holder(&self.store()).map(|holder| holder.pid)
    }
}

/// A worker that finds its store at this address.
pub(crate) fn worker_at(url: &str, what: &str, rest: &[&str]) -> Worker {
    let mut command = Command::new(worker_path());
    command.arg(what).arg(url).args(rest);
    Worker::start(command)
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

    /// Every line up to one that is what is waited for, and that one. None has to be there already.
    pub(crate) fn until(&self, what: &str, is_it: impl Fn(&[String]) -> bool) -> Vec<Vec<String>> {
        let (mut lines, end) = (Vec::new(), now() + nanos(PATIENCE));
        loop {
            let left = Duration::from_nanos(end.saturating_sub(now()));
            let line = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("waited in vain: {what}"));
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert!(words[0] != "error", "{line}");
            let found = is_it(&words);
            lines.push(words);
            if found {
                return lines;
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

/// For how many nanoseconds others had the processors while threads of these processes were ready to run.
fn held_back(pids: &[u32]) -> u64 {
    pids.iter().map(|pid| nanos(leasehold_kit::held_back(*pid))).sum()
}

/// What processes wait for a processor from now on.
pub(crate) struct Waits {
    pids: Vec<u32>,
    before: u64,
}

impl Waits {
    pub(crate) fn of(pids: &[u32]) -> Self {
        Self { pids: pids.to_vec(), before: held_back(pids) }
    }

    /// In nanoseconds. A thread that has ended since then takes its part with it.
    pub(crate) fn so_far(&self) -> u64 {
        held_back(&self.pids).saturating_sub(self.before)
    }
}

/// Looks until there is something to see.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + nanos(PATIENCE);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(now() < end, "waited in vain: {what}");
        pause(Duration::from_millis(2));
    }
}

pub(crate) fn pause(length: Duration) {
    std::thread::sleep(length);
}

pub(crate) fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}
