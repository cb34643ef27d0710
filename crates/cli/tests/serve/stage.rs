//! A directory for services, and services in it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_kit::Awaited;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    pub(crate) dir: TempDir,
}

/// What a program left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A program that runs. Killed at the end of the test if it has not ended.
pub(crate) struct Running {
    child: Child,
    out: BufReader<Awaited<ChildStdout>>,
    err: BufReader<Awaited<ChildStderr>>,
}

/// A service that answers.
pub(crate) struct Serving {
    pub(crate) running: Running,
    pub(crate) address: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file in the stage.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A command whose home is the stage, so that no default leads out of it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(arguments).env("HOME", self.dir.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("LEASEHOLD_")
                || ["XDG_STATE_HOME", "NOTIFY_SOCKET", "NO_COLOR"].contains(&name.as_str())
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs to the end.
    pub(crate) fn say(&self, arguments: &[&str]) -> Said {
        said(&mut self.command(arguments))
    }

    /// Runs to an end that must be good; gives what was printed.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let said = self.say(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said.out
    }

    /// Starts a service with its data in the stage, and waits until it answers.
    pub(crate) fn serve(&self, more: &[&str]) -> Serving {
        let data = self.path("data");
        let mut arguments = vec!["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        arguments.extend(more);
        self.serve_with(&mut self.command(&arguments))
    }

    /// The same with a command that was made already.
    pub(crate) fn serve_with(&self, command: &mut Command) -> Serving {
        let port = self.path("port");
        let _ = fs::remove_file(&port);
        let mut running = Running::start(command.arg("--port-file").arg(&port));
        let address = eventually("the service listens", || {
            if let Some(status) = running.child.try_wait().unwrap() {
                let mut err = String::new();
                running.err.read_to_string(&mut err).unwrap();
                panic!("it ended with {status}: {err}");
            }
            read(&port)
        });
        Serving { running, address }
    }

    /// Starts another command against a service.
    pub(crate) fn start(&self, serving: &Serving, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments).env("LEASEHOLD_STORE", serving.url()))
    }
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim_end().to_owned())
}

impl Serving {
    pub(crate) fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    /// Asks it to stop, which must end well; gives what it logged.
    pub(crate) fn stop(self) -> String {
        self.running.signal(Signal::TERM);
        let said = self.running.end();
        assert_eq!(said.code, Some(0), "{said:?}");
        said.err
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(Awaited::new(child.stdout.take().unwrap()));
        let err = BufReader::new(Awaited::new(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    /// The next line of output; empty at its end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        next_line(&mut self.out)
    }

    /// The next line that is no result.
    #[track_caller]
    pub(crate) fn error_line(&mut self) -> String {
        next_line(&mut self.err)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        let code = eventually("the program ends", || self.child.try_wait().unwrap()).code();
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.err.read_to_string(&mut err).unwrap();
        Said { code, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn next_line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap_or_else(|error| panic!("waited in vain for a line: {error}"));
    line.trim_end().to_owned()
}

pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A log of JSON lines.
pub(crate) fn log(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Looks until there is something to see; gives up, with words, after a long time.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Point::now().plus(PATIENCE);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(!end.remaining(Point::now()).is_zero(), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
