//! The measurement itself, run small with real processes: the bounds on time are loose, since whatever else is tested runs beside it,
//! and those on work are the same.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_deploy_loses_no_work_and_the_naive_one_is_without_a_leader_for_its_warm_up_at_least() {
    let out = Command::new(env!("CARGO_BIN_EXE_staged"))
        .args(["deploys", "--program"])
        .arg(leasehold_kit::leasehold().unwrap())
        .args(["--quick", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}\n{said}", String::from_utf8_lossy(&out.stdout));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let deploys = &report["deploys"];
    assert_eq!(deploys["handovers_ms"].as_array().unwrap().len(), 3);
    assert!(deploys["items"].as_u64().unwrap() > 3, "{deploys}");
    for count in ["lost", "doubled", "redone", "overlaps"] {
        assert_eq!(deploys[count], 0, "{count}");
    }
    let naive: f64 =
        report["naive"]["handovers_ms"][0].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!(naive > report["warm_up_ms"].as_f64().unwrap(), "{report}");
    assert_eq!(report["kills"].as_array().unwrap().len(), 2);
}
