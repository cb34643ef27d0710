//! A Prometheus on loopback, and its promtool.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::super::stage::{Running, Stage, eventually};

/// Between two questions.
const LOOK: Duration = Duration::from_millis(100);

/// A Prometheus that runs until this is dropped.
pub(super) struct Prometheus {
    url: String,
    _running: Running,
}

impl Prometheus {
    /// Scrapes one service and evaluates these rules, both several times a second.
    pub(super) fn start(stage: &Stage, service: &str, rules: &[&Path]) -> Self {
        let mut config = format!(
            "global: {{ scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms }}\n\
             scrape_configs: [{{ job_name: leasehold, static_configs: [{{ targets: ['{service}'] }}] }}]\n\
             rule_files:\n"
        );
        for path in rules {
            writeln!(config, "  - '{}'", path.display()).unwrap();
        }
        let config = stage.file("prometheus.yml", &config);
        let mut command = Command::new(program("prometheus"));
        command.args([
            "--config.file",
            &config,
            "--web.listen-address",
            "127.0.0.1:0",
            "--storage.tsdb.path",
        ]);
        let mut running = Running::start(command.arg(stage.path("series")).stdin(Stdio::null()));
        let address = loop {
            let line = running.error_line();
            assert!(!line.is_empty(), "it ended before it listened");
            match line.split_once("msg=\"Listening on\" address=") {
                Some((_, address)) => break address.to_owned(),
                None => continue,
            }
        };
        Self { url: format!("http://{address}/api/v1"), _running: running }
    }

    fn query(&self, query: &str) -> Value {
        let answer =
            curl(&["-G", "--data-urlencode", &format!("query={query}"), &format!("{}/query", self.url)]);
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{query}: {error}: {answer}"))
    }

    /// What a query comes to now.
    #[track_caller]
    pub(super) fn ask(&self, query: &str) -> Value {
        let answer = self.query(query);
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].clone()
    }

    /// Whether it says that this is no query.
    pub(super) fn refuses(&self, query: &str) -> bool {
        self.query(query)["errorType"] == "bad_data"
    }

    /// What a query comes to as soon as it comes to anything.
    pub(super) fn until(&self, query: &str) -> Value {
        eventually(query, || {
            let seen = self.ask(query);
            if seen.as_array().is_some_and(|series| !series.is_empty()) {
                return Some(seen);
            }
            std::thread::sleep(LOOK);
            None
        })
    }

    /// Every rule that is loaded.
    pub(super) fn rules(&self) -> Vec<Value> {
        let answer: Value = serde_json::from_str(&curl(&[&format!("{}/rules", self.url)])).unwrap();
        let groups = answer["data"]["groups"].as_array().unwrap();
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect()
    }
}

/// Runs promtool with this to read. It must find nothing wrong.
#[track_caller]
pub(super) fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new(program("promtool"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "promtool {arguments:?}: {}", String::from_utf8_lossy(&said));
}

/// The body of an answer, whatever its status.
pub(super) fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["--silent", "--show-error"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where the command that runs all tests says, where it unpacks it, or where somebody has installed it.
fn program(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target")));
    let said = std::env::var_os("LEASEHOLD_PROMETHEUS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = said.into_iter().chain([target.join("tools/prometheus/usr/bin")]);
    let mut found = places.chain(std::env::split_paths(&path)).map(|place| place.join(name));
    found.find(|program| program.is_file()).unwrap_or_else(|| {
        panic!("{name} is missing; run `cargo xtask test`, or install the package prometheus")
    })
}
