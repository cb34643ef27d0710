//! `probe`, and what `hold` and `run` say of the same figures while they hold. Each test says which mistake it is there to find.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::stage::{Stage, eventually};

/// Lets a program stand still for a second.
fn stand_still(running: &super::stage::Running) {
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1_000));
    running.signal(Signal::CONT);
}

/// There to find: a session that is left open; a table without one of the figures.
#[test]
fn it_measures_the_store_the_process_and_the_clocks_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let said = stage.json(0, &["probe", "--for", "1500ms", "--ttl", "5m"]);
    for figure in ["renewals", "reads", "pauses"] {
        let count = said[figure]["count"].as_u64().unwrap();
        assert!(count > 3 && said[figure]["longest_us"].as_u64().is_some(), "{figure}: {said}");
    }
    assert!(said["clocks"]["monotonic_ppm"].is_i64(), "{said}");
    assert_eq!((&said["holds"], &said["numbers"]["ttl_ms"]), (&true.into(), &300_000.into()));
    assert_eq!(stage.json(0, &["list", "--sessions"])["sessions"], Value::Array(Vec::new()));
}

/// There to find: a pause that nobody sees, or that is taken for a slow store; advice that does not hear of it.
#[test]
fn a_process_that_was_stopped_finds_its_pause_and_advises_otherwise() {
    let stage = Stage::new();
    // A pause of a second is one too many for this ttl, and for the default it is not.
    let mut running = stage.start(&["--json", "probe", "--for", "1h", "--ttl", "1500ms"]);
    assert!(running.error_line().contains("measuring"));
    // The store is made and the session is there.
    eventually("it measures", || {
        let sessions = stage.say(&["--json", "list", "--sessions"]).out;
        sessions.contains("probe").then_some(())
    });
    stand_still(&running);
    // It measures on.
    stage.good(&["list", "--sessions"]);
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert!(report["pauses"]["longest_us"].as_u64().unwrap() >= 900_000, "{report}");
    assert!(report["numbers"]["pause_ms"].as_u64().unwrap() >= 900, "{report}");
    let broken = report["broken"].as_array().unwrap();
    let pause = broken.iter().find(|broken| broken["inequality"] == "pause").expect("the pause is named");
    assert!(pause["message"].as_str().unwrap().contains("renewal interval + pause + round trip = 500 ms + "));
    assert!(pause["to_ms"].as_u64().is_some() && report["holds"] == false, "{report}");
}

/// There to find: a signal that ends it without a word, or without the session being closed.
#[test]
fn it_ends_early_when_asked_and_shows_what_it_has() {
    let stage = Stage::new();
    let mut running = stage.start(&["probe", "--for", "1h", "--ttl", "5m"]);
    assert_eq!(running.error_line(), "leasehold: measuring for 1h");
    eventually("it measures", || stage.say(&["list", "--sessions"]).out.contains("probe").then_some(()));
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut lines = said.out.lines();
    assert!(lines.next().unwrap().ends_with(", ended early"), "{said:?}");
    assert_eq!(lines.next(), Some("FIGURE  P50  P99  P99.9  LONGEST  COUNT"));
    assert!(said.out.contains("\nthe numbers hold\nmore: leasehold plan --ttl 5m --rtt "), "{said:?}");
    assert_eq!(stage.json(0, &["list", "--sessions"])["sessions"], Value::Array(Vec::new()));
}

/// There to find: numbers that are judged after the measuring, when nobody wants to wait any more.
#[test]
fn numbers_that_hold_nowhere_are_refused_before_anything_is_made() {
    let stage = Stage::new();
    let said = stage.say(&["probe", "--for", "1h", "--ttl", "2s", "--renew-every", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("ttl - margin") && !stage.store().exists(), "{said:?}");
    let said = stage.say(&["probe", "--for", "100ms"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--for 100ms is below the minimum of 1s"), "{said:?}");
}

/// What a holder says beside its lines that was stopped for longer than its ttl allows.
fn said_after_a_pause(more: &[&str]) -> String {
    let stage = Stage::new();
    let mut arguments = vec!["--ttl", "1s", "--hard", "1m"];
    arguments.extend(more);
    let (mut running, _) = stage.hold("job", &arguments);
    stand_still(&running);
    // The figures are judged once a second.
    let mut said = String::new();
    if more.is_empty() {
        while !said.contains("stood still") {
            let line = running.error_line();
            assert!(!line.is_empty(), "it ended without a word of it: {said}");
            said = said + &line + "\n";
        }
    } else {
        std::thread::sleep(Duration::from_millis(2_500));
    }
    running.signal(Signal::TERM);
    said + &running.end().err
}

/// There to find: a warning that nobody prints.
#[test]
fn a_holder_that_stood_still_says_which_number_to_change() {
    let said = said_after_a_pause(&[]);
    let line = said.lines().find(|line| line.starts_with("leasehold: the process stood still for up to "));
    let line = line.unwrap_or_else(|| panic!("{said:?}"));
    assert!(line.contains(" ms, which is not below ttl - margin = 1000 ms - 100 ms = 900 ms; "), "{line}");
}

/// There to find: a warning that `--quiet` does not keep back.
#[test]
fn a_quiet_holder_says_nothing_of_its_numbers() {
    assert_eq!(said_after_a_pause(&["--quiet"]), "");
}
