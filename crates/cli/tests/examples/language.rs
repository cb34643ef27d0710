//! How an example is started, and how its receiver is read.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

/// Longer than any test has patience: an example that waits behind itself is found.
const WAIT_SECONDS: &str = "600";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Go,
}

/// What an example is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) ttl_ms: u32,
    pub(crate) pages: u32,
    pub(crate) work_ms: u32,
    pub(crate) pause_ms: u32,
}

impl Language {
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::Go];

    /// The example, with its receiver in a directory.
    pub(crate) fn command(self, url: &str, directory: &Path, task: Task) -> Command {
        let Task { ttl_ms, pages, work_ms, pause_ms } = task;
        let seconds = |ms: u32| (f64::from(ms) / 1_000.0).to_string();
        let mut command = match self {
            Self::Python => {
                found("python3", "python3");
                let mut command = Command::new("python3");
                command.arg(examples().join("python/leasehold_example.py"));
                command.arg("--db").arg(directory.join("reports.db"));
                let (work, pause) = (seconds(work_ms), seconds(pause_ms));
                command.args(["--ttl-ms", &ttl_ms.to_string(), "--work", &work, "--pause", &pause]);
                command.args(["--wait", WAIT_SECONDS]);
                command
            }
            Self::Go => {
                let mut command = Command::new(built());
                command.arg("--file").arg(directory.join("reports.json"));
                let [ttl, work, pause] = [ttl_ms, work_ms, pause_ms].map(|length| format!("{length}ms"));
                command.args(["--ttl", &ttl, "--work", &work, "--pause", &pause]);
                command.args(["--wait", &format!("{WAIT_SECONDS}s")]);
                command
            }
        };
        command.args(["--url", url, "--pages", &pages.to_string()]);
        command
    }

    /// The tokens of all pages that the receiver took, in order.
    pub(crate) fn pages(self, directory: &Path) -> Vec<u64> {
        let pages = match self {
            Self::Python => {
                let query = "import json, sqlite3, sys\n\
                    rows = sqlite3.connect(sys.argv[1]).execute('SELECT token FROM page ORDER BY id')\n\
                    print(json.dumps([{'token': token} for (token,) in rows]))";
                let mut python = Command::new("python3");
                let output = good(python.args(["-c", query]).arg(directory.join("reports.db")));
                serde_json::from_slice::<Value>(&output.stdout).unwrap()
            }
            Self::Go => {
                let text = std::fs::read(directory.join("reports.json")).unwrap();
                serde_json::from_slice::<Value>(&text).unwrap()["pages"].take()
            }
        };
        pages.as_array().unwrap().iter().map(|page| page["token"].as_u64().unwrap()).collect()
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The Go example, compiled once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("leasehold-example-go");
        good(go().args(["build", "-o"]).arg(&program).arg("."));
        program
    })
}

/// The compiler as it is, with nothing fetched and no settings of whoever runs the tests.
fn go() -> Command {
    found("go", "golang-go");
    let mut go = Command::new("go");
    go.current_dir(examples().join("go"));
    go.envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("GOWORK", "off"), ("CGO_ENABLED", "0")]);
    go
}

/// Fails with the command that would help if a program is missing.
fn found(program: &str, package: &str) {
    let tried = Command::new(program).env("GOTOOLCHAIN", "local").arg("version").output();
    let missing = tried.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    assert!(!missing, "{program} is missing; install it with: apt-get install {package}");
}

fn good(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

#[test]
fn the_go_example_passes_its_vet() {
    good(go().args(["vet", "."]));
}
