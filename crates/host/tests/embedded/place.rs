//! Directories for tests: made, looked at byte by byte, mounted, and served from another process.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use leasehold_host::{EmbeddedOptions, ServeError, Server, try_serve};

/// Serves a directory that nobody serves.
pub(crate) fn serve(path: &Path) -> Server {
    try_serve(path, &EmbeddedOptions::default()).unwrap().expect("nobody else serves")
}

/// Why a directory is not served.
pub(crate) fn refusal(path: &Path) -> ServeError {
    match try_serve(path, &EmbeddedOptions::default()) {
        Ok(served) => panic!("{} is served: {served:?}", path.display()),
        Err(error) => error,
    }
}

/// Every file below a directory with its bytes.
pub(crate) fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.insert(entry.path(), Vec::new());
            found.extend(contents(&entry.path()));
        } else if kind.is_socket() {
            found.insert(entry.path(), b"socket".to_vec());
        } else {
            found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// Bytes of all files below a directory.
pub(crate) fn size(path: &Path) -> u64 {
    contents(path).values().map(|bytes| bytes.len() as u64).sum()
}

/// The first segment of a log.
pub(crate) fn first_segment(store: &Path) -> PathBuf {
    store.join("log").join(format!("segment-{:020}.log", 1))
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = leasehold_clock::read();
    loop {
        let waited = leasehold_clock::read().since(began).greater();
        if is_so() {
            return waited;
        }
        assert!(waited < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a program of the system.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed by this test: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed, which this test needs root for: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A file system of its own, gone when it is dropped.
pub(crate) struct Mount {
    at: tempfile::TempDir,
}

impl Mount {
    pub(crate) fn new(kind: &str, options: &str) -> Self {
        let at = tempfile::tempdir().unwrap();
        run("mount", &["-t", kind, "-o", options, "leasehold-test", &at.path().display().to_string()]);
        Self { at }
    }

    pub(crate) fn path(&self) -> &Path {
        self.at.path()
    }

    pub(crate) fn remount(&self, options: &str) {
        run("mount", &["-o", &format!("remount,{options}"), &self.at.path().display().to_string()]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: after a panic a server may still have files open in it.
        let _ = Command::new("umount").arg("-l").arg(self.at.path()).status();
    }
}

const CHILD_DIRECTORY: &str = "LEASEHOLD_TEST_CHILD_DIRECTORY";
const CHILD_SAYS: &str = "child:";

/// What another process says that tries to serve a directory, run as `prefix` says.
pub(crate) fn other_process(prefix: &[&str], path: &Path) -> String {
    let executable = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = prefix.iter().map(std::ffi::OsStr::new).collect();
    words.push(executable.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", "place::in_another_process", "--nocapture"]);
    let output = command.env(CHILD_DIRECTORY, path).output();
    let output = output.unwrap_or_else(|error| panic!("{:?} is needed by this test: {error}", words[0]));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let word =
        said.lines().find_map(|line| line.split_once(CHILD_SAYS).map(|(_, word)| word.trim().to_owned()));
    word.unwrap_or_else(|| {
        panic!("the process said nothing: {said} {}", String::from_utf8_lossy(&output.stderr))
    })
}

/// The part of [`other_process`] that runs there. By itself it makes sure that nobody asked for it by mistake.
#[test]
fn in_another_process() {
    let Ok(path) = std::env::var(CHILD_DIRECTORY) else {
        return assert!(std::env::var(CHILD_DIRECTORY).is_err());
    };
    let word = match try_serve(Path::new(&path), &EmbeddedOptions::default()) {
        Ok(Some(_)) => "served".to_owned(),
        Ok(None) => "taken".to_owned(),
        Err(error) => format!("refused: {error}"),
    };
    println!("\n{CHILD_SAYS} {word}");
}
