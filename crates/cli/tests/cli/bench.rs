//! `bench`. Each test says which mistake it is there to find.

use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Stage, eventually};

/// There to find: a phase that measures nothing; a session or lease that is left behind.
#[test]
fn it_measures_cycles_and_renewals_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let said = stage.json(0, &["bench", "--for", "1s", "--clients", "4"]);
    for figure in ["cycles", "renewals"] {
        let of = &said[figure];
        assert!(of["count"].as_u64().unwrap() > 3 && of["per_second"].as_u64().unwrap() > 0, "{said}");
        assert!(of["p50_us"].as_u64().unwrap() <= of["longest_us"].as_u64().unwrap(), "{said}");
    }
    assert_eq!(said["interrupted"], false);
    assert_eq!(stage.json(0, &["sessions"])["sessions"], Value::Array(Vec::new()));
    assert_eq!(stage.json(0, &["list"])["leases"], Value::Array(Vec::new()));
}

/// There to find: load on a store that others use, without a word.
#[test]
fn a_store_that_others_use_is_left_alone_unless_asked_for() {
    let stage = Stage::new();
    let (holding, _) = stage.hold("orders", &[]);
    let said = stage.say(&["bench", "--for", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("orders") && said.err.contains("--beside-others"), "{said:?}");
    let beside = stage.say(&["bench", "--for", "1s", "--beside-others"]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    holding.signal(Signal::TERM);
    holding.end();
}

/// There to find: a signal that ends it without a word, or leaves its leases.
#[test]
fn it_ends_early_when_asked_and_shows_what_it_has() {
    let stage = Stage::new();
    let mut running = stage.start(&["bench", "--for", "1h", "--clients", "2"]);
    assert_eq!(running.error_line(), "leasehold: 2 clients for 1h");
    eventually("it puts load", || stage.say(&["sessions"]).out.contains("bench").then_some(()));
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut lines = said.out.lines();
    assert!(lines.next().unwrap().ends_with(", 2 clients, ended early"), "{said:?}");
    assert_eq!(lines.next(), Some("OPERATION  PER SECOND  P50  P99  P99.9  LONGEST  COUNT"));
    assert_eq!(stage.json(0, &["sessions"])["sessions"], Value::Array(Vec::new()));
}
