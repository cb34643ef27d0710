//! How a service ends.

use rustix::process::Signal;

use super::stage::{Stage, eventually, log};

#[test]
fn a_signal_ends_it_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let stage = Stage::new();
        let serving = stage.serve(&[]);
        serving.running.signal(signal);
        let said = serving.running.end();
        assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
        assert!(said.err.lines().last().unwrap().contains("stopped"), "{said:?}");
    }
}

#[test]
fn a_hangup_changes_nothing() {
    let stage = Stage::new();
    let mut serving = stage.serve(&[]);
    serving.running.signal(Signal::HUP);
    while !serving.running.error_line().contains("SIGHUP is ignored") {}
    stage.good(&["--store", &serving.url(), "run", "job", "--", "true"]);
    serving.stop();
}

#[test]
fn a_holder_and_a_waiter_do_not_keep_it() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut holder = stage.start(&serving, &["hold", "job"]);
    assert!(holder.line().starts_with("granted job "));
    let _waiter = stage.start(&serving, &["hold", "job"]);
    eventually("somebody waits", || {
        let out = stage.good(&["--store", &serving.url(), "get", "job"]);
        out.lines().any(|line| line == "waiting: 1").then_some(())
    });
    serving.stop();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut holder = stage.start(&serving, &["hold", "job"]);
    assert!(holder.line().starts_with("granted job "));
    // Both lie before it when it goes on, so that the second comes long before it has finished.
    serving.running.signal(Signal::STOP);
    serving.running.signal(Signal::INT);
    serving.running.signal(Signal::TERM);
    serving.running.signal(Signal::CONT);
    let said = serving.running.end();
    assert!(matches!(said.code, Some(130 | 143)), "{said:?}");
    assert!(said.err.contains("again: ending at once"), "{said:?}");
    // As safe as a crash: the lease is still there.
    let again = stage.serve(&[]);
    let out = stage.good(&["--store", &again.url(), "get", "job"]);
    assert!(out.contains("token: "), "{out}");
    again.stop();
}

#[test]
fn a_service_that_ends_by_itself_says_why_and_fails() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    // Whoever makes the file anew could lock it too: a service whose lock is gone must not go on.
    std::fs::remove_file(stage.path("data").join("lock")).unwrap();
    let said = serving.running.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let lines = log(&said.err);
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["code"]), (&"ERROR".into(), &"service-failed".into()), "{last}");
    assert!(last["message"].as_str().unwrap().contains("lock file"), "{last}");
}
