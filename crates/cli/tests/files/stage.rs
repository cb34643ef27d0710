//! A directory for files of services, and the programs that are run on it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use leasehold_host::{backup_file, save_backup};
use leasehold_node::SavedSnapshot;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Stage {
    dir: TempDir,
}

/// A service that answers; killed at the end of the test.
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.current_dir(self.dir.path()).args(words).env("HOME", self.dir.path());
        command.env_remove("LEASEHOLD_STORE").stdin(Stdio::null());
        command
    }

    /// Runs a command to its end: its code, and what it said on both streams.
    pub(crate) fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
    }

    /// Runs a command that must succeed, and reads its result.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let words = [words, &["--json"]].concat();
        let (code, said) = self.run(&words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        serde_json::from_str(said.lines().next().unwrap()).unwrap()
    }

    /// Serves a directory of the stage.
    pub(crate) fn serve(&self, data: &str) -> Serving {
        self.serve_with(data, &[])
    }

    /// The same, with more words.
    pub(crate) fn serve_with(&self, data: &str, more: &[&str]) -> Serving {
        self.serve_on("127.0.0.1:0", data, more)
    }

    /// The same, where another one served before.
    pub(crate) fn serve_on(&self, address: &str, data: &str, more: &[&str]) -> Serving {
        let port = self.path("port");
        let _ = fs::remove_file(&port);
        let words = ["serve", "--data", data, "--listen", address, "--port-file", "port"];
        let log = fs::File::create(self.path("service.log")).unwrap();
        let mut child = self.command(&words).args(more).stderr(log).spawn().unwrap();
        for _ in 0..3_000 {
            if let Ok(address) = fs::read_to_string(&port) {
                return Serving { child, url: format!("leasehold://{}", address.trim()) };
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        panic!("it does not serve: {}", fs::read_to_string(self.path("service.log")).unwrap());
    }

    /// The token of a lease that is taken and given back.
    pub(crate) fn token(&self, serving: &Serving, name: &str) -> u64 {
        self.token_with(serving, name, &[])
    }

    /// The same, with more words.
    pub(crate) fn token_with(&self, serving: &Serving, name: &str, more: &[&str]) -> u64 {
        let words = ["--store", &serving.url, "run", name];
        let rest = ["--", "sh", "-c", "echo $LEASEHOLD_TOKEN"];
        let (code, said) = self.run(&[&words[..], more, &rest[..]].concat());
        assert_eq!(code, Some(0), "{said}");
        // A wait is told on the other stream.
        said.lines().next().unwrap().parse().unwrap()
    }

    /// A backup made of the snapshot that a directory begins with.
    pub(crate) fn backup(&self, name: &str) -> PathBuf {
        let data = self.path("made");
        drop(self.serve(data.to_str().unwrap()));
        let file = self.path(name);
        save_backup(&file, &backup_file(snapshot_of(&data))).unwrap();
        file
    }
}

/// The snapshot in the log of a directory: a block that says what it is, then the bytes.
pub(crate) fn snapshot_of(data: &Path) -> SavedSnapshot {
    let names = fs::read_dir(data.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let file = names.into_iter().find(|path| path.extension().is_some_and(|end| end == "snap"));
    let bytes = fs::read(file.expect("a service begins with a snapshot")).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    SavedSnapshot { index: number(20), term: number(28), bytes: bytes[512..].to_vec() }
}

impl Serving {
    /// A look over HTTP: the head and the body of the answer.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("leasehold://")).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
