//! A directory with a service in it, a file into which all programs write, and the programs.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::tree::{self, Stat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::language::{Language, Task};
use super::turns::read;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the examples hold if nobody says otherwise.
const RESOURCE: &str = "reports/nightly";

pub(crate) struct Stage {
    dir: TempDir,
    address: String,
    service: Running,
}

/// A program that runs. Killed at the end of the test if it has not ended.
pub(crate) struct Running {
    child: Child,
}

impl Stage {
    /// With a service that answers, on a port that the system chose.
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let (service, address) = serve(dir.path(), "127.0.0.1:0");
        Self { dir, address, service }
    }

    /// Kills the service without a word and starts it again where it was.
    pub(crate) fn kill_service(&mut self) {
        self.service.kill();
        (self.service, self.address) = serve(self.dir.path(), &self.address);
    }

    /// Starts an example. All of them write into one file, line by line and in the order in which things happen.
    pub(crate) fn start(&self, language: Language, task: Task) -> Running {
        let log = File::options().append(true).create(true).open(self.dir.path().join("log")).unwrap();
        let mut command = language.command(&format!("http://{}", self.address), self.dir.path(), task);
        let child = command.stdin(Stdio::null()).stdout(log).stderr(Stdio::piped()).spawn().unwrap();
        Running { child }
    }

    /// What the examples wrote so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Waits until some program says this; gives its token.
    pub(crate) fn heard(&self, what: &str) -> u64 {
        eventually(what, || {
            let log = self.log();
            log.lines().filter_map(read).find(|(said, _)| *said == what).map(|(_, token)| token)
        })
    }

    /// Waits until so many stand in the queue.
    pub(crate) fn waiting(&self, many: u64) {
        eventually("somebody waits", || {
            (self.command(&["get", RESOURCE])["waiting"].as_u64() == Some(many)).then_some(())
        });
    }

    /// Asks the holder to let go.
    pub(crate) fn ask_release(&self) -> Value {
        self.command(&["release", RESOURCE])
    }

    /// The tokens of the pages that a receiver took.
    pub(crate) fn pages(&self, language: Language) -> Vec<u64> {
        language.pages(self.dir.path())
    }

    /// A command of our own, and its result.
    fn command(&self, arguments: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(["--json", "--store", &format!("leasehold://{}", self.address)])
            .args(arguments)
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {output:?}"))
    }
}

fn serve(directory: &Path, address: &str) -> (Running, String) {
    let port = directory.join("port");
    let _ = fs::remove_file(&port);
    let log = File::options().append(true).create(true).open(directory.join("service-log")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["serve", "--listen", address, "--data"])
        .arg(directory.join("data"))
        .arg("--port-file")
        .arg(&port)
        .env("HOME", directory)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut running = Running { child };
    let address = eventually("the service listens", || {
        if let Some(status) = running.child.try_wait().unwrap() {
            panic!("it ended with {status}: {}", fs::read_to_string(directory.join("service-log")).unwrap());
        }
        fs::read_to_string(&port).ok().map(|text| text.trim_end().to_owned())
    });
    (running, address)
}

impl Running {
    /// Waits for its end; gives its exit code and what it complained of.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = eventually("the example ends", || self.child.try_wait().unwrap()).code();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (code, err)
    }

    /// Ends the sleep of the shell that is to wake it, which is done early that way. A shell says nothing of a command that ends by this signal.
    pub(crate) fn wake(&self) {
        eventually("a stopped example has a sleep behind it", || {
            let this = Pid::from_child(&self.child);
            let mut sleeps = tree::children(this).into_iter().flat_map(tree::children);
            let sleep = sleeps.find(|_| Stat::read(this).is_some_and(|stat| stat.is_stopped()))?;
            kill_process(sleep, Signal::PIPE).ok()
        });
    }

    fn kill(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Looks until there is something to see; gives up, with words, after a long time.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Point::now().plus(PATIENCE);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(!end.remaining(Point::now()).is_zero(), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
