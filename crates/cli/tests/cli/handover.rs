//! `release --to`, and `release` that waits for the successor.

use rustix::process::Signal;
use serde_json::json;

use super::stage::{Running, Stage, eventually};

/// Starts somebody who waits, and comes back when it stands in the queue.
fn waiter(stage: &Stage, label: &str) -> Running {
    let running = stage.start(&["hold", "job", "--label", label]);
    eventually("it waits", || {
        let seen = stage.json(0, &["get", "job"]);
        let queue = seen["queue"].as_array().cloned().unwrap_or_default();
        queue.iter().any(|waiter| waiter["label"] == label || waiter["holder"] == label).then_some(())
    });
    running
}

fn token_in(line: &str) -> String {
    line.rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_release_names_the_successor_it_waited_for() {
    let stage = Stage::new();
    let (holder, token) = stage.hold("job", &[]);
    let mut next = waiter(&stage, "next");
    let said = stage.good(&["release", "job", "--await-successor", "30s"]);
    let granted = token_in(&next.line());
    assert_eq!(
        said,
        format!(
            "job: token {token} of holder: drained and released\njob: now held by next, token {granted}\n"
        )
    );
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn a_release_says_when_nobody_came_in_time() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["release", "job", "--await-successor", "200ms"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(
        said.out,
        format!("job: token {token} of holder: drained and released\njob: nobody held it within 200ms\n")
    );
    let (_holder, _) = stage.hold("job", &[]);
    assert_eq!(stage.json(1, &["release", "job", "--await-successor", "1ms"])["held_by"], json!(null));
}

#[test]
fn a_handover_goes_to_whoever_waits_first() {
    let stage = Stage::new();
    let (holder, token) = stage.hold("job", &[]);
    let mut first = waiter(&stage, "first");
    let _second = waiter(&stage, "second");
    let said = stage.good(&["release", "job", "--to", "first"]);
    let granted = token_in(&first.line());
    assert_eq!(
        said,
        format!("job: token {token} of holder is over\njob: now held by first, token {granted}\n")
    );
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn a_named_successor_is_served_past_the_queue() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let _first = waiter(&stage, "first");
    let mut second = waiter(&stage, "second");
    let handed = stage.json(0, &["release", "job", "--to", "second"]);
    let granted = token_in(&second.line());
    let expected = json!({
        "resource": "job", "token": token, "holder": "holder",
        "held_by": { "holder": "second", "token": granted, "holds": true },
    });
    assert_eq!(handed, expected);
    let past = stage.json(0, &["history", "job"]);
    assert_eq!(
        past["history"][0]["ended"].as_str().or(past[0]["ended"].as_str()),
        Some("handed-over"),
        "{past}"
    );
}

#[test]
fn a_handover_to_nobody_disturbs_nobody() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["release", "job", "--to", "first"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(
        said.err,
        "leasehold: nobody waits for job: start the successor first, or let the holder go with: leasehold release job\n"
    );
    let _first = waiter(&stage, "first");
    let said = stage.say(&["release", "job", "--to", "nobody"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(1), "leasehold: \"nobody\" does not wait for job; those who do: first\n")
    );
    assert_eq!(stage.say(&["get", "job", "--token", &token]).code, Some(0), "the holder holds it as before");
    assert_eq!(stage.say(&["release", "free", "--to", "first"]).code, Some(1));
}

#[test]
fn a_named_successor_that_does_not_answer_leaves_the_holder_in_place() {
    let stage = Stage::new();
    let (_server, _) = stage.hold("other", &[]);
    let (_holder, token) = stage.hold("job", &[]);
    let second = waiter(&stage, "second");
    second.signal(Signal::STOP);
    let said = stage.say(&["release", "job", "--to", "second", "--wait", "500ms"]);
    assert_eq!(said.code, Some(120), "{said:?}");
    let expected = "leasehold: \"second\" has not said that it is ready to take job, so holder was not asked to let go; ";
    assert!(said.err.starts_with(expected), "{said:?}");
    assert_eq!(
        stage.say(&["get", "job", "--token", &token]).code,
        Some(0),
        "nothing is drained for one that is not ready"
    );
    second.signal(Signal::CONT);
    // It wakes, takes up the offer that still stands, and only now the holder lets go.
    let mut second = second;
    assert!(second.line().starts_with("granted job token "));
}

/// The holder was never asked, so nothing may point to ending its lease.
#[test]
fn a_named_successor_that_dies_is_what_is_told_and_not_the_holder() {
    let stage = Stage::new();
    let (_server, _) = stage.hold("other", &[]);
    let (_holder, token) = stage.hold("job", &[]);
    let second = stage.start(&["hold", "job", "--label", "second", "--ttl", "1s"]);
    eventually("it waits", || stage.good(&["get", "job"]).contains("waiting: 1").then_some(()));
    // Frozen first: what dies with its process, a connection, tells the store.
    second.signal(Signal::STOP);
    let said = stage.say(&["release", "job", "--to", "second", "--wait", "30s"]);
    assert_eq!(said.code, Some(120), "{said:?}");
    assert_eq!(
        said.err,
        "leasehold: \"second\" is gone and never said that it was ready to take job, so holder was not asked to let go and holds it as before; \
         start the successor again and repeat this, or let the holder go to the queue with: leasehold release job\n"
    );
    assert_eq!(stage.say(&["get", "job", "--token", &token]).code, Some(0));
    second.signal(Signal::KILL);
}

#[test]
fn a_command_is_drained_before_it_is_handed_over() {
    let stage = Stage::new();
    let command = "trap 'sleep 0.3; exit 0' TERM; echo started; while :; do sleep 0.05; done";
    let mut running = stage.start(&["run", "job", "--label", "runner", "--", "sh", "-c", command]);
    assert_eq!(running.line(), "started");
    let mut next = waiter(&stage, "next");
    let said = stage.good(&["release", "job", "--to", "first"]);
    assert!(said.contains("job: now held by next, token "), "{said}");
    assert!(next.line().starts_with("granted job token "));
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn a_hook_asks_only_its_own_replica() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.good(&["release", "job", "--holder", "another", "--await-successor", "30s"]);
    assert_eq!(said, "job: not held by \"another\", so nothing was asked\n");
    assert_eq!(stage.json(0, &["release", "job", "--holder", "another"])["asked"], json!(false));
    assert_eq!(stage.say(&["get", "job", "--token", &token]).code, Some(0), "the one that holds it stays");
    let said = stage.good(&["release", "job", "--holder", "holder"]);
    assert_eq!(said, format!("job: token {token} of holder: drained and released\n"));
}

#[test]
fn what_cannot_be_handed_over_is_refused_with_the_reason() {
    let stage = Stage::new();
    let (_one, _) = stage.hold("job", &["--shared"]);
    let (_two, _) = stage.hold("job", &["--shared"]);
    let _next = waiter(&stage, "next");
    let said = stage.say(&["release", "job", "--to", "next"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.err.starts_with("leasehold: job is shared by 2 holders, and goes to whoever waits when all"),
        "{said:?}"
    );
    let (_alone, _) = stage.hold("other", &[]);
    let _waits = stage.start(&["hold", "other", "--label", "next"]);
    eventually("it waits", || stage.good(&["get", "other"]).contains("waiting: 1").then_some(()));
    let said = stage.say(&["release", "other", "--to", "holder"]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), "leasehold: \"holder\" holds other already\n"));
}
