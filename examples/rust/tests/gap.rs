//! The staged incident, run small with real processes: `leasehold gaps` splits it into its causes as they were.

use std::process::Command;

use serde_json::Value;

/// A machine that stands still in the middle for longer than the tolerance is given another try.
const TRIES: u32 = 5;

#[test]
fn an_incident_is_split_into_its_causes_and_a_good_deploy_has_no_gap() {
    let leasehold = leasehold_kit::leasehold().unwrap();
    let mut report = Value::Null;
    for _ in 0..TRIES {
        let out = Command::new(env!("CARGO_BIN_EXE_staged"))
            .args(["gap", "--program"])
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
