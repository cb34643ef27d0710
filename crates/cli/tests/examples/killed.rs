//! The service is killed while one holds and another waits, and comes back where it was.

use super::language::{Language, Task};
use super::stage::Stage;
use super::turns::turns;

/// The holder keeps its lease, the waiter finds its place again, and whoever asks for the lease gets it released.
fn killed_and_restarted(language: Language) {
    let mut stage = Stage::new();
    let task = Task { ttl_ms: 10_000, pages: 1, work_ms: 10, pause_ms: 0 };
    let holder = stage.start(language, Task { pages: 1_000_000, ..task });
    let held = stage.heard("wrote");
    let waiter = stage.start(language, task);
    stage.waiting(1);
    stage.kill_service();
    // A waiter that asked again without cancelling first would stand in the queue twice.
    stage.waiting(1);
    let asked = stage.ask_release();
    assert_eq!((&asked["token"], &asked["ended"]), (&held.to_string().into(), &"released".into()), "{asked}");
    assert_eq!(holder.end(), (Some(0), String::new()));
    assert_eq!(waiter.end(), (Some(0), String::new()));
    let log = stage.log();
    let tokens = turns(&log).unwrap_or_else(|why| panic!("{why}\n{log}"));
    assert_eq!((tokens.len(), tokens[0]), (2, held));
    assert!(log.contains(&format!("asked token {held}")));
    assert_eq!(stage.pages(language).last(), tokens.last());
}

#[test]
fn a_killed_service_costs_programs_in_python_nothing() {
    killed_and_restarted(Language::Python);
}

#[test]
fn a_killed_service_costs_programs_in_go_nothing() {
    killed_and_restarted(Language::Go);
}
