//! A directory for a store, and programs that use it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
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
    out: Option<BufReader<Awaited<ChildStdout>>>,
    err: BufReader<Awaited<ChildStderr>>,
    pub(crate) stdin: Option<ChildStdin>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    /// The store, which is not there until somebody makes it.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command
            .args(arguments)
            .env("LEASEHOLD_STORE", self.store())
            .env_remove("NO_COLOR")
            // Keys of a store that looks at none.
            .envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "do-not-print")])
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(crate) fn say(&self, arguments: &[&str]) -> Said {
        said(&mut self.command(arguments))
    }

    /// Runs to the end, which must be good; gives what was printed.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let said = self.say(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said.out
    }

    /// Runs with `--json` to an end with this code; gives what was printed.
    pub(crate) fn json(&self, code: i32, arguments: &[&str]) -> Value {
        let mut with = vec!["--json"];
        with.extend(arguments);
        let said = self.say(&with);
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Starts a program, its input held open.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().map(|out| BufReader::new(Awaited::new(out)));
        let err = BufReader::new(Awaited::new(child.stderr.take().unwrap()));
        let stdin = child.stdin.take();
        Running { child, out, err, stdin }
    }

    /// Starts a holder and waits until it holds; its label is `holder`.
    pub(crate) fn hold(&self, name: &str, more: &[&str]) -> (Running, String) {
        let mut arguments = vec!["hold", name, "--label", "holder"];
        arguments.extend(more);
        let mut running = self.start(&arguments);
        let line = running.line();
        let token = line
            .strip_prefix("granted ")
            .and_then(|line| line.rsplit(' ').next())
            .unwrap_or_else(|| panic!("{line:?}"));
        (running, token.to_owned())
    }
}

impl Running {
    /// The next line of output; empty at its end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        next_line(self.out.as_mut().unwrap())
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

    /// Closes its output: whatever it prints from now on reaches nobody.
    pub(crate) fn close_output(&mut self) {
        self.out = None;
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        drop(self.stdin.take());
        let (mut out, mut err) = (String::new(), String::new());
        if let Some(stream) = &mut self.out {
            stream.read_to_string(&mut out).unwrap();
        }
        let code = eventually("the program ends", || self.child.try_wait().unwrap()).code();
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

/// The text with every length of time written as T: those differ from run to run.
pub(crate) fn masked(text: &str) -> String {
    let is_length = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &word[digits.len()..];
        !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
            && matches!(unit, "ms" | "s" | "m" | "h")
    };
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').map(|word| if is_length(word) { "T" } else { word }).collect();
        words.join(" ").replace("T T", "T")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
