//! A store on a thread that knows nothing of tokens, and a proxy as a process in front of it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_kit::Awaited;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the store did: which token, what.
pub(crate) type Entry = (u64, String);

#[derive(Debug, Default)]
struct Inside {
    log: Vec<Entry>,
    arrived: Vec<String>,
    held: BTreeSet<String>,
}

/// A store that appends bodies to a log, one thread for each connection, and lets those wait that it is told to.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    inside: Arc<(Mutex<Inside>, Condvar)>,
    pub(crate) url: String,
}

impl Store {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let store = Self { inside: Arc::default(), url };
        let own = store.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (store, stream) = (own.clone(), stream.unwrap());
                std::thread::spawn(move || store.answer(&stream));
            }
        });
        store
    }

    fn answer(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((token, body)) = request(&mut reader) {
            let (lock, changed) = &*self.inside;
            let mut inside = lock.lock().unwrap();
            inside.arrived.push(body.clone());
            while inside.held.contains(&body) {
                inside = changed.wait(inside).unwrap();
            }
            if let Some(token) = token {
                inside.log.push((token, body));
            }
            drop(inside);
            // A store does not take back what it has done because nobody listens any more.
            let _ = (&*stream).write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n");
        }
    }

    pub(crate) fn hold(&self, value: &str) {
        self.inside.0.lock().unwrap().held.insert(value.to_owned());
    }

    pub(crate) fn let_go(&self, value: &str) {
        self.inside.0.lock().unwrap().held.remove(value);
        self.inside.1.notify_all();
    }

    pub(crate) fn log(&self) -> Vec<Entry> {
        self.inside.0.lock().unwrap().log.clone()
    }

    pub(crate) fn ever_had(&self, value: &str) -> bool {
        self.inside.0.lock().unwrap().arrived.iter().any(|one| one == value)
    }

    pub(crate) fn has(&self, value: &str) {
        eventually("the store has it", || self.ever_had(value).then_some(()));
    }
}

/// The token and the body of the next request; nothing at the end of the connection.
fn request(reader: &mut impl BufRead) -> Option<(Option<u64>, String)> {
    let (mut token, mut length) = (None, 0);
    let mut lines = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        lines += 1;
        let line = line.trim_end().to_lowercase();
        if line.is_empty() && lines > 1 {
            break;
        }
        if let Some(value) = line.strip_prefix("fencing-token: ") {
            token = value.parse().ok();
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((token, String::from_utf8(body).unwrap()))
}

pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    pub(crate) store: Store,
}

/// A proxy that listens. Killed at the end of the test if it has not ended.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    pub(crate) first_line: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), store: Store::start() }
    }

    pub(crate) fn fence(&self) -> PathBuf {
        self.directory.path().join("fence")
    }

    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["fence", "proxy", "--upstream", &self.store.url, "--fence"]).arg(self.fence());
        command.args(["--listen", "127.0.0.1:0"]).args(more);
        command.env("HOME", self.directory.path()).env_remove("LEASEHOLD_STORE").env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn serve(&self, more: &[&str]) -> Serving {
        let port = self.directory.path().join("port");
        let _ = std::fs::remove_file(&port);
        let mut command = self.command(more);
        command.arg("--port-file").arg(&port).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first_line = String::new();
        let mut out = BufReader::new(Awaited::new(child.stdout.take().unwrap()));
        out.read_line(&mut first_line).unwrap_or_else(|error| panic!("waited in vain for a line: {error}"));
        drop(out);
        if first_line.is_empty() {
            let mut err = String::new();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("it does not listen: {err}");
        }
        let address = std::fs::read_to_string(&port).unwrap().trim().to_owned();
        Serving { child, address, first_line: first_line.trim_end().to_owned() }
    }
}

impl Serving {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end: the exit code, and what it said on standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = eventually("the proxy ends", || self.child.try_wait().unwrap());
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status.code(), err)
    }

    /// One request on a connection of its own: the status and the body.
    pub(crate) fn ask(&self, method: &str, path: &str, token: Option<u64>, body: &str) -> (u16, String) {
        ask(&self.address, method, path, token, body)
    }

    pub(crate) fn write(&self, token: u64, value: &str) -> u16 {
        self.ask("PUT", "/report", Some(token), value).0
    }

    pub(crate) fn begin(&self, token: u64, value: &str) -> std::thread::JoinHandle<u16> {
        let (address, value) = (self.address.clone(), value.to_owned());
        std::thread::spawn(move || ask(&address, "PUT", "/report", Some(token), &value).0)
    }

    /// The highest token that is kept.
    pub(crate) fn highest(&self) -> Option<u64> {
        let (status, body) = self.ask("GET", "/.leasehold/fence?name=a", None, "");
        assert_eq!(status, 200, "{body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["highest"]["token"].as_str().map(|token| token.parse().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status 0 means that the connection ended without an answer.
fn ask(address: &str, method: &str, path: &str, token: Option<u64>, body: &str) -> (u16, String) {
    let token = token.map(|token| {
        format!("Fencing-Token: {token}\r\nFencing-Name: a\r\nFencing-Holder: holder-{token}\r\n")
    });
    let token = token.unwrap_or_default();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n{token}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

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
