//! The process of a server: its port, its log, its death and its next life.
//!
//! It is started through `setpriv --pdeathsig KILL`, so that the kernel ends it when this process ends. The kernel means the *thread*
//! that started it, and every test has a thread of its own; so one thread, which never ends, starts all servers. A server may
//! therefore lie in a `static` and serve all tests of a program.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::directory::Directory;
use crate::tree;
use crate::user::User;

const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Enough to see what a server complained about, and few enough to read.
const LAST_LINES: usize = 30;

/// How a server is started, the same way each time.
pub(crate) struct Recipe {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Whom it runs as, if not as whoever runs the test.
    pub(crate) user: Option<User>,
    /// Asks it for its version. The answer is what makes it ready.
    pub(crate) ask: fn(&Process) -> Result<String>,
    /// How long it may take to become ready, on a busy machine.
    pub(crate) patience: Duration,
}

/// A server's process, which is ended when this is dropped.
pub struct Process {
    recipe: Recipe,
    child: Option<Child>,
    version: String,
    /// How long its log was when it was started last.
    log_before: usize,
    /// Last: it is removed when nobody writes to it any more.
    directory: Directory,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} on port {}", self.recipe.name, self.version, self.recipe.port)
    }
}

impl Process {
    /// Starts it and waits until it serves.
    pub(crate) fn start(directory: Directory, recipe: Recipe) -> Result<Self> {
        let mut process = Self { recipe, child: None, version: String::new(), log_before: 0, directory };
        process.run()?;
        Ok(process)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.recipe.port
    }

    /// Its version, as it said itself when it was started last.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The number of its process, unless it was killed.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Where it keeps everything.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The memory that it and its children occupy, what they share counted once.
    pub fn resident_bytes(&self) -> u64 {
        self.id().map_or(0, |id| tree::resident_bytes(&tree::of(id)))
    }

    /// All that it wrote since it was started last.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(log.get(self.log_before..).unwrap_or_default()).into_owned()
    }

    /// What is run.
    pub(crate) fn program(&self) -> &Path {
        &self.recipe.program
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        // One that ended by itself has left no children that could be found.
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        tree::signal(child.id(), Signal::STOP)?;
        let all = tree::of(child.id());
        tree::kill(child.id())?;
        child.wait().with_context(|| format!("{} was lost", self.recipe.name))?;
        tree::wait_until_gone(&all)
    }

    pub(crate) fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.run()
    }

    pub(crate) fn pause(&self) -> Result<()> {
        self.signal_all(Signal::STOP)
    }

    pub(crate) fn resume(&self) -> Result<()> {
        self.signal_all(Signal::CONT)
    }

    fn signal_all(&self, signal: Signal) -> Result<()> {
        let id = self.id().with_context(|| format!("{} does not run", self.recipe.name))?;
        tree::of(id).into_iter().try_for_each(|process| tree::signal(process, signal))
    }

    fn run(&mut self) -> Result<()> {
        let name = self.recipe.name;
        let log = OpenOptions::new().create(true).append(true).open(self.log_path());
        let log = log.with_context(|| format!("{} cannot be opened", self.log_path().display()))?;
        self.log_before = usize::try_from(log.metadata()?.len()).context("its log is too long")?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = spawn(command).with_context(|| format!("{name} does not start"))?;
        self.child = Some(child);
        match self.wait_until_ready() {
            Ok(version) => {
                self.version = version;
                Ok(())
            }
            Err(error) => {
                self.kill()?;
                bail!("{name} is not ready: {error:#}; the end of its log:\n{}", self.last_lines())
            }
        }
    }

    /// Each program replaces itself by the next, so the process that is started is the server in the end.
    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some(user) = &self.recipe.user {
            command.args(user.for_setpriv());
        }
        command.arg("--").arg(&self.recipe.program).args(&self.recipe.arguments);
        // An interrupt at the terminal is for the test, which takes the server with it.
        command.current_dir(self.directory.path()).process_group(0);
        command
    }

    fn wait_until_ready(&mut self) -> Result<String> {
        let before = leasehold_clock::read().boot;
        loop {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().transpose()) {
                bail!("it ended with {}", status?);
            }
            let error = match (self.recipe.ask)(self) {
                Ok(version) => return Ok(version),
                Err(error) => error,
            };
            let waited = Duration::from_nanos(leasehold_clock::read().boot.saturating_sub(before));
            if waited > self.recipe.patience {
                return Err(error.context(format!("it does not serve after {:?}", self.recipe.patience)));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("server.log")
    }

    fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{}: {error:#}", self.recipe.name);
        }
    }
}

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

/// Starts a command in the thread that never ends.
fn spawn(command: Command) -> Result<Child> {
    static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in taken {
                // Whoever asked waits for the answer.
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, child) = mpsc::channel();
    starter.send((command, answer)).ok().context("the thread that starts servers has ended")?;
    let child = child.recv().context("the thread that starts servers has ended")?;
    child.context("setpriv (package util-linux) or the program behind it cannot be run")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(script: &str, ask: fn(&Process) -> Result<String>) -> Recipe {
        Recipe {
            name: "shell",
            port: 0,
            program: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            user: None,
            ask,
            patience: Duration::from_millis(300),
        }
    }

    fn has_spoken(process: &Process) -> Result<String> {
        process.log().lines().last().map(ToOwned::to_owned).context("it has said nothing")
    }

    #[test]
    fn a_server_that_does_not_become_ready_is_reported_with_its_last_lines() {
        let directory = Directory::new("shell").unwrap();
        let error = Process::start(directory, recipe("seq 100; exec sleep 600", |_| bail!("no answer")));
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("shell is not ready: it does not serve after 300ms: no answer;"),
            "{error}"
        );
        assert!(error.ends_with("\n99\n100") && !error.contains("\n70\n"), "{error}");
    }

    #[test]
    fn a_server_that_ends_at_once_is_not_waited_for() {
        let directory = Directory::new("shell").unwrap();
        let error = Process::start(directory, recipe("echo no; exit 3", |_| bail!("no answer"))).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("it ended with exit status: 3; the end of its log:\nno"), "{error}");
    }

    #[test]
    fn a_server_outlives_the_thread_that_asked_for_it_and_not_its_value() {
        let start = || {
            let directory = Directory::new("shell").unwrap();
            Process::start(directory, recipe("echo hello; exec sleep 600", has_spoken)).unwrap()
        };
        let mut process = std::thread::spawn(start).join().unwrap();
        assert_eq!(process.version(), "hello");
        assert!(process.child.as_mut().unwrap().try_wait().unwrap().is_none());
        let (id, directory) = (process.id().unwrap(), process.directory().to_owned());
        drop(process);
        tree::wait_until_gone(&[id]).unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn a_killed_server_is_started_again_in_the_same_directory() {
        let directory = Directory::new("shell").unwrap();
        let script = "echo x >> lives; wc -l < lives; exec sleep 600";
        let mut process = Process::start(directory, recipe(script, has_spoken)).unwrap();
        assert_eq!(process.version(), "1");
        process.kill().unwrap();
        assert_eq!(process.id(), None);
        process.restart().unwrap();
        assert_eq!(process.version(), "2");
    }
}
