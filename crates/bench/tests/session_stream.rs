//! The measurement itself, run small: every cell must get its answers, in order, from a real second process.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_cell_is_measured_and_every_operation_is_answered() {
    let out = Command::new(env!("CARGO_BIN_EXE_session_stream"))
        .args(["--repeats", "1", "--round-trips", "20", "--paced-ms", "40", "--json"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    for contender in ["raw", "framed", "grpc"] {
        assert!(rows.iter().any(|row| row["cell"]["contender"] == contender), "no row of {contender}");
    }
    for row in rows {
        for figure in ["p50_us", "server_cpu_s", "client_cpu_s", "ops_per_second"] {
            let value = row["runs"][0][figure].as_f64().unwrap();
            assert!(value > 0.0, "{figure} of {} is {value}", row["cell"]);
        }
    }
    assert_eq!(report["http2_alone"].as_array().unwrap().len(), 20);
}
