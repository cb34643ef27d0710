//! `hold`.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::{Stage, eventually};

#[test]
fn it_says_when_it_holds_and_when_it_has_let_go() {
    let stage = Stage::new();
    let mut running = stage.start(&["hold", "job"]);
    assert_eq!(running.line(), "granted job token 2");
    running.signal(Signal::TERM);
    let said = running.end();
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "released job token 2\n", ""));
}

#[test]
fn the_end_of_a_pipe_on_standard_input_ends_it() {
    let stage = Stage::new();
    let (mut running, _) = stage.hold("job", &[]);
    drop(running.stdin.take());
    assert_eq!(running.end().code, Some(0));
    assert!(stage.good(&["history", "job"]).contains("released"));
}

#[test]
fn without_a_pipe_standard_input_does_not_matter() {
    let stage = Stage::new();
    // The command of the test gives it /dev/null, which is at its end from the beginning.
    let mut holder = stage.command(&["hold", "job"]).spawn().unwrap();
    eventually("it is held", || (stage.say(&["get", "job"]).code == Some(0)).then_some(()));
    stage.good(&["release", "job"]);
    assert_eq!(holder.wait().unwrap().code(), Some(0));
}

#[test]
fn somebody_who_asks_gets_it_released() {
    let stage = Stage::new();
    let (mut running, token) = stage.hold("job", &[]);
    assert_eq!(
        stage.good(&["release", "job"]),
        format!("job: token {token} of holder: drained and released\n")
    );
    assert!(running.line().starts_with(&format!("release-requested job token {token} by ")));
    let said = running.end();
    assert_eq!((said.code, said.out), (Some(0), format!("released job token {token}\n")));
}

#[test]
fn lines_are_objects_with_json() {
    let stage = Stage::new();
    let mut running = stage.start(&["--json", "hold", "job", "--slots", "2", "--value", "host:80"]);
    let mut granted: Value = serde_json::from_str(&running.line()).unwrap();
    let remaining = granted["remaining_ms"].take().as_u64().unwrap();
    assert!((1..=9_000).contains(&remaining), "{remaining}");
    let slot = granted["slot"].clone();
    let expected = json!({
        "event": "granted", "resource": format!("job#{slot}"), "token": "2", "fence_token": "2", "slot": slot,
        "session": "1", "remaining_ms": null, "by": null, "ended": null,
    });
    assert_eq!(granted, expected);
    running.signal(Signal::INT);
    let said = running.end();
    let released: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &released["event"]), (Some(0), &json!("released")));
}

#[test]
fn a_revoked_lease_is_reported_as_lost() {
    let stage = Stage::new();
    let (mut running, token) = stage.hold("job", &[]);
    stage.good(&["revoke", "job", "--reason", "stuck", "--yes"]);
    // The end of its input would ask it to release.
    let line = running.line();
    let said = running.end();
    assert_eq!((said.code, line), (Some(121), format!("ended job token {token} revoked")));
    assert!(said.err.starts_with(&format!("leasehold: lost job with token {token}: revoked by ")));
}

#[test]
fn it_goes_on_holding_when_nobody_reads_its_lines() {
    let stage = Stage::new();
    let (mut running, _) = stage.hold("job", &[]);
    running.close_output();
    assert_eq!(stage.good(&["release", "job"]).lines().count(), 1);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn a_held_name_is_not_held_twice() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["hold", "job", "--no-wait"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    assert!(said.err.contains(&format!("held by holder with token {token}")));
}

#[test]
fn the_directory_is_made_for_its_owner_alone() {
    use std::os::unix::fs::MetadataExt;
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    assert_eq!(std::fs::metadata(stage.store()).unwrap().mode() & 0o777, 0o700);
}
