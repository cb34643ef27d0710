//! Short forms of the main scenarios, with the program that lies beside this test.
//!
//! They need root, and the program built before: `cargo xtask test` builds all of it. All in one test: they measure time, and
//! would disturb each other.

use std::path::PathBuf;

use leasehold_nemesis::scenario;
use leasehold_nemesis::stage::Options;

#[test]
fn clusters_keep_their_promises_under_faults() {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(2).unwrap();
    let program = target.join("leasehold");
    assert!(program.exists(), "{} is missing: build leasehold-cli first", program.display());
    let out: PathBuf = target.join("nemesis-histories");
    let options = Options { program, out, seed: 1, quick: true, nodes: 3, rounds: None };
    let mut failed = Vec::new();
    for scenario in scenario::named("quick").unwrap() {
        match scenario.run(&options) {
            Ok(report) => {
                println!("{report}");
                if !report.is_good() {
                    failed.push(scenario.name.to_owned());
                }
            }
            Err(error) => failed.push(format!("{}: {error:#}", scenario.name)),
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
