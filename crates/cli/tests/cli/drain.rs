//! `run --drain` and `run --kill-after`: how a command is ended that somebody wants to end.

use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;

use super::stage::{Stage, eventually};

/// Says its number, and ends with 3 when it is asked to. The shell says nothing of how its children end.
const TIDY: &str = "exec 2>/dev/null; trap 'exit 3' TERM; echo $$; while :; do sleep 0.05; done";
/// Says its number, and does not hear.
const DEAF: &str = "exec 2>/dev/null; trap '' TERM; echo $$; while :; do sleep 0.05; done";

fn since(begun: Point) -> Duration {
    Point::now().remaining(begun)
}

#[test]
fn a_replica_that_is_drained_names_the_next() {
    let stage = Stage::new();
    let replica =
        |label| stage.start(&["run", "app", "--drain", "20s", "--label", label, "--", "sh", "-c", TIDY]);
    let mut first = replica("one");
    first.line();
    let mut second = replica("two");
    eventually("the second waits", || stage.good(&["get", "app"]).contains("waiting: 1").then_some(()));
    first.signal(Signal::TERM);
    second.line();
    let token = stage.json(0, &["get", "app"])["holders"][0]["token"].as_str().unwrap().to_owned();
    let said = first.end();
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(said.err, format!("leasehold: app: now held by two, token {token}\n"));
    assert!(stage.good(&["history", "app"]).contains("drained"));
}

#[test]
fn whoever_looks_sees_that_a_command_is_being_drained() {
    let stage = Stage::new();
    let mut run = stage.start(&["run", "app", "--drain", "20s", "--", "sh", "-c", DEAF]);
    run.line();
    assert_eq!(stage.json(0, &["get", "app"])["holders"][0]["draining"], Value::Null);
    run.signal(Signal::TERM);
    let shown = eventually("it is shown", || {
        let seen = stage.json(0, &["get", "app"]);
        Some(seen["holders"][0]["draining"].clone()).filter(|shown| !shown.is_null())
    });
    assert_eq!(shown["in_flight"], 1, "{shown}");
    assert!(shown["remaining_ms"].as_u64().unwrap() <= 19_000, "{shown}");
    assert!(stage.good(&["get", "app"]).contains("draining"));
}

#[test]
fn a_successor_that_comes_and_goes_between_two_looks_is_seen_all_the_same() {
    let stage = Stage::new();
    let mut first = stage.start(&["run", "app", "--also", "job", "--drain", "20s", "--", "sh", "-c", TIDY]);
    first.line();
    let second = stage.start(&["run", "job", "--also", "app", "--label", "two", "--", "true"]);
    eventually("the second waits", || stage.good(&["get", "app"]).contains("waiting: 1").then_some(()));
    let begun = Point::now();
    first.signal(Signal::TERM);
    let said = first.end();
    assert!(since(begun) < Duration::from_secs(19), "the budget was not used up: {:?}", since(begun));
    assert_eq!(second.end().code, Some(0));
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines.len(), 2, "{said:?}");
    for name in ["app", "job"] {
        let (now, was) = (
            format!("{name}: now held by two, token "),
            format!("{name}: was held by two meanwhile, token "),
        );
        assert!(lines.iter().any(|line| line.contains(&now) || line.contains(&was)), "{said:?}");
    }
}

#[test]
fn a_drain_that_nobody_follows_ends_with_its_budget() {
    let stage = Stage::new();
    let mut run = stage.start(&["--json", "run", "app", "--drain", "5s", "--", "sh", "-c", TIDY]);
    run.line();
    let begun = Point::now();
    stage.good(&["release", "app"]);
    let said = run.end();
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(since(begun) >= Duration::from_millis(4_600), "{:?}", since(begun));
    let notes: Vec<Value> = said.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = notes.iter().map(|note| note["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["release-requested", "no-successor"]);
    assert_eq!((&notes[1]["resource"], &notes[1]["successor"]), (&"app".into(), &Value::Null));
    assert_eq!(notes[1]["token"], "2");
}

#[test]
fn a_deaf_command_is_killed_while_the_budget_still_lets_it_let_go() {
    let stage = Stage::new();
    let mut run = stage.start(&["run", "app", "--drain", "3s", "--ttl", "60s", "--", "sh", "-c", DEAF]);
    run.line();
    let begun = Point::now();
    run.signal(Signal::TERM);
    eventually("it is free", || (stage.say(&["get", "app"]).code == Some(1)).then_some(()));
    assert!(since(begun) >= Duration::from_secs(2), "{:?}", since(begun));
    let said = run.end();
    assert_eq!(said.code, Some(137), "{said:?}");
    assert!(
        said.err.starts_with("leasehold: the command has not ended within 2s of SIGTERM; killing"),
        "{said:?}"
    );
    assert!(
        said.err.ends_with("app: the time of the drain is over, and nobody else holds it yet\n"),
        "{said:?}"
    );
    let past = stage.good(&["history", "app"]);
    assert!(
        past.contains("released") && !past.contains("drained"),
        "what was cut off is not drained: {past}"
    );
}

#[test]
fn patience_with_a_deaf_command_is_as_long_as_it_says() {
    let stage = Stage::new();
    for asked_by in ["signal", "release"] {
        let mut run =
            stage.start(&["run", "job", "--kill-after", "1s", "--ttl", "60s", "--", "sh", "-c", DEAF]);
        run.line();
        let begun = Point::now();
        match asked_by {
            "signal" => run.signal(Signal::TERM),
            _ => drop(stage.good(&["release", "job"])),
        }
        let said = run.end();
        assert_eq!(said.code, Some(137), "{said:?}");
        assert!((1..20).contains(&since(begun).as_secs()), "{:?}", since(begun));
        assert!(said.err.contains("has not ended within 1s of SIGTERM; killing what is left"), "{said:?}");
        let past = stage.good(&["history", "job"]);
        assert!(past.contains("released") && !past.contains("drained"), "{past}");
    }
}

#[test]
fn a_wrapper_that_dies_after_it_was_asked_does_not_prolong_patience() {
    let stage = Stage::new();
    let mut run = stage.start(&["run", "job", "--kill-after", "1s", "--ttl", "60s", "--", "sh", "-c", DEAF]);
    let command = Pid::from_raw(run.line().parse().unwrap()).unwrap();
    let begun = Point::now();
    run.signal(Signal::TERM);
    run.signal(Signal::KILL);
    eventually("the command is gone", || test_kill_process(command).is_err().then_some(()));
    assert!((1..30).contains(&since(begun).as_secs()), "{:?}", since(begun));
}

#[test]
fn what_ends_in_time_is_not_killed_and_nothing_is_said() {
    let stage = Stage::new();
    let mut run = stage.start(&["run", "job", "--kill-after", "20s", "--", "sh", "-c", TIDY]);
    run.line();
    run.signal(Signal::TERM);
    let said = run.end();
    assert_eq!((said.code, said.err.as_str()), (Some(3), ""));
    // And a command that ends by itself is not drained, nor waited for.
    let begun = Point::now();
    let said = stage.say(&["run", "job", "--drain", "60s", "--", "true"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(since(begun) < Duration::from_secs(20));
}
