//! The staged incident, run small with real processes: `leasehold gaps` splits it into its causes as they were.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A machine that stands still in the middle for longer than the tolerance is given another try.
const TRIES: u32 = 5;

/// Builds the program to serve with, and gives back where it lies.
fn leasehold() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.args(["build", "--quiet", "-p", "leasehold-cli", "--bin", "leasehold"]);
    command.arg("--message-format=json-render-diagnostics");
    let built = command.output().expect("cargo starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8_lossy(&built.stdout);
    let program = messages.lines().filter_map(|line| line.split_once("\"executable\":\"")).next_back();
    let (program, _) = program.and_then(|(_, rest)| rest.split_once('"')).expect("cargo names the program");
    PathBuf::from(program)
}

#[test]
fn an_incident_is_split_into_its_causes_and_a_good_deploy_has_no_gap() {
    let leasehold = leasehold();
    let mut report = Value::Null;
    for _ in 0..TRIES {
        let out = Command::new(env!("CARGO_BIN_EXE_gap"))
            .arg("--program")
            .arg(&leasehold)
            .args(["--quick", "--json"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        report = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert_eq!(out.status.success(), report["good"] == true, "{report}");
        if report["good"] == true {
            break;
        }
    }
    assert_eq!(report["good"], true, "{report:#}");
    let length = |place: usize| report["incident"][place]["gaps_ms"].as_f64().unwrap();
    assert!(length(0) > 800.0 && length(1) > 500.0 && length(2) > 900.0, "{report:#}");
}
