//! Nodes, each with an address and a directory, and commands against them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_kit::Awaited;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(40);

static STAGES: AtomicU32 = AtomicU32::new(0);

/// A place for the nodes of one test.
pub(crate) struct Stage {
    dir: TempDir,
    /// The first three numbers of all addresses.
    network: String,
}

/// A node that runs. Killed at the end of the test.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: String,
    child: Child,
    log: PathBuf,
    /// Bytes that an earlier process with this number has logged.
    logged_before: usize,
}

/// What a command left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A command that runs on. Killed at the end of the test.
pub(crate) struct Running {
    child: Child,
    out: BufReader<Awaited<ChildStdout>>,
    err: BufReader<Awaited<ChildStderr>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        // No two tests that run at the same time have the same: not those of this process, and not those of others.
        let (pid, count) = (std::process::id(), STAGES.fetch_add(1, Ordering::Relaxed));
        let network = format!("127.{}.{}", 1 + (pid / 250 + 16 * count) % 250, 1 + pid % 250);
        Self { dir: TempDir::new().unwrap(), network }
    }

    pub(crate) fn address(&self, number: usize) -> String {
        format!("{}.{number}:7420", self.network)
    }

    pub(crate) fn data(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("data{number}"))
    }

    /// All addresses up to this number.
    pub(crate) fn url(&self, count: usize) -> String {
        let all: Vec<String> = (1..=count).map(|number| self.address(number)).collect();
        format!("leasehold://{}", all.join(","))
    }

    /// Starts node `number`, with its name, directory and address.
    pub(crate) fn start(&self, number: usize, more: &[&str]) -> Node {
        let (name, address) = (format!("n{number}"), self.address(number));
        let log = self.dir.path().join(format!("log{number}"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = self.command(&["serve", "--name", &name, "--listen", &address]);
        command.args(["--log-format", "human", "--data"]).arg(self.data(number)).args(more);
        let logged_before = std::fs::read(&log).unwrap().len();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Node { name, address, child, log, logged_before }
    }

    /// Three nodes that found a cluster, once one of them leads and all have met it: one that has not would not know that it was in a cluster.
    pub(crate) fn three(&self) -> Vec<Node> {
        let initial: Vec<String> =
            (1..=3).map(|number| format!("n{number}={}", self.address(number))).collect();
        let initial = initial.join(",");
        let nodes: Vec<Node> =
            (1..=3).map(|number| self.start(number, &["--initial-cluster", &initial])).collect();
        for node in &nodes {
            let store = format!("leasehold://{}", node.address);
            let list = || said(self.command(&["list"]).env("LEASEHOLD_STORE", &store));
            eventually("it has met the others", || (list().code == Some(0)).then_some(()));
        }
        nodes
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(arguments).env("HOME", self.dir.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("LEASEHOLD_") || ["XDG_STATE_HOME", "NOTIFY_SOCKET"].contains(&name.as_str())
            {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs a command against the first `count` nodes to its end.
    pub(crate) fn say(&self, count: usize, arguments: &[&str]) -> Said {
        said(self.command(arguments).env("LEASEHOLD_STORE", self.url(count)))
    }

    /// The same, which must end well; gives what was printed.
    pub(crate) fn good(&self, count: usize, arguments: &[&str]) -> String {
        let said = self.say(count, arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said.out
    }

    /// The same against one node alone.
    pub(crate) fn good_at(&self, node: &Node, arguments: &[&str]) -> String {
        let store = format!("leasehold://{}", node.address);
        let said = said(self.command(arguments).env("LEASEHOLD_STORE", store));
        assert_eq!(said.code, Some(0), "{arguments:?} at {}: {said:?}", node.name);
        said.out
    }

    /// Begins a command against the first `count` nodes.
    pub(crate) fn begin(&self, count: usize, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        command.env("LEASEHOLD_STORE", self.url(count)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(Awaited::new(child.stdout.take().unwrap()));
        let err = BufReader::new(Awaited::new(child.stderr.take().unwrap()));
        Running { child, out, err }
    }

    /// Takes a name and lets go; gives the token.
    pub(crate) fn token(&self, count: usize, name: &str) -> u64 {
        let said = self.good(count, &["run", name, "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]);
        said.trim().parse().unwrap()
    }

    /// How the nodes stand.
    pub(crate) fn status(&self, count: usize) -> Value {
        serde_json::from_str(&self.good(count, &["cluster", "status", "--json"])).unwrap()
    }

    /// Hands leadership to a node, once that one answers the leader, and waits until it leads.
    pub(crate) fn transfer(&self, count: usize, to: &str) {
        eventually("it leads", || {
            let said = self.say(count, &["cluster", "transfer", to]);
            if said.code != Some(0) {
                assert!(said.err.contains("does not answer the leader"), "{said:?}");
                return None;
            }
            assert_eq!(said.out.trim(), format!("{to} leads"));
            // A busy machine may have made them elect another one since.
            (self.leader(count) == to).then_some(())
        });
    }

    /// The name of the leader.
    pub(crate) fn leader(&self, count: usize) -> String {
        self.status(count)["leader"].as_str().unwrap().to_owned()
    }
}

/// Takes the node with this name out of the list.
pub(crate) fn take(nodes: &mut Vec<Node>, name: &str) -> Node {
    let place = nodes.iter().position(|node| node.name == name).unwrap();
    nodes.remove(place)
}

/// Names and roles of the members.
pub(crate) fn roles(status: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let members = status["members"].as_array().unwrap().iter();
    members.map(|member| (text(&member["name"]), text(&member["role"]))).collect()
}

impl Node {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ends it as a crash of the process does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end; gives its exit code and everything it logged.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = eventually("the node ends", || self.child.try_wait().unwrap()).code();
        (code, self.logged())
    }

    /// Asks it to stop, which must end well.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let (code, log) = self.end();
        assert_eq!(code, Some(0), "{log}");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until its log says this.
    pub(crate) fn says(&self, words: &str) {
        eventually(words, || self.logged().contains(words).then_some(()));
    }

    /// Everything that it has logged.
    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap().split_off(self.logged_before)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- {}\n{}", self.name, self.logged());
        }
    }
}

impl Running {
    /// The next line of output; empty at its end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap_or_else(|error| panic!("waited in vain for a line: {error}"));
        line.trim_end().to_owned()
    }

    /// Reads what is no result up to a line with these words.
    pub(crate) fn error_until(&mut self, words: &str) {
        let mut said = String::new();
        while !said.lines().last().is_some_and(|line| line.contains(words)) {
            let read = self.err.read_line(&mut said);
            let read = read.unwrap_or_else(|error| panic!("waited in vain for {words:?}: {error}: {said}"));
            assert!(read > 0, "{words:?} is not in {said}");
        }
    }

    /// Asks it to end, which must end well; gives the rest of what it printed.
    pub(crate) fn stop(mut self) -> Vec<String> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty())).collect();
        assert!(self.child.wait().unwrap().success(), "{lines:?}");
        lines
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// How long something took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Point::now();
    let done = work();
    (done, Point::now().remaining(began))
}

/// Looks until there is something to see; gives up, with words, after a long time.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Point::now().plus(PATIENCE);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(!end.remaining(Point::now()).is_zero(), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
