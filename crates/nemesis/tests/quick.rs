//! Short forms of the main scenarios, with the program that is built for tests.
//!
//! They need root. All in one test: they measure time, and
//! would disturb each other.

use leasehold_nemesis::scenario;
use leasehold_nemesis::stage::Options;

#[test]
fn clusters_keep_their_promises_under_faults() {
    let program = leasehold_kit::leasehold().unwrap();
    let out = program.parent().unwrap().join("nemesis-histories");
    let options = Options { program, out, seed: 1, quick: true, nodes: 3, rounds: None };
    let mut failed = Vec::new();
    for scenario in scenario::named("quick").unwrap() {
        match scenario.run(&options) {
            Ok(report) => {
                println!("{}\n{report}", scenario.name);
                if !report.is_good() {
                    failed.push(scenario.name.to_owned());
                }
            }
            Err(error) => failed.push(format!("{}: {error:#}", scenario.name)),
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
