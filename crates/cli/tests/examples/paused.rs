//! A holder that is stopped for longer than its lease lasts.

use super::language::{Language, Task};
use super::stage::Stage;
use super::turns::read;

/// Longer than any test has patience: the test ends the pause.
const PAUSE_MS: u32 = 600_000;

/// Stops one in the middle of its work while another takes over.
fn stopped_and_overtaken(language: Language) {
    let stage = Stage::new();
    let quiet = Task { ttl_ms: 3_000, pages: 2, work_ms: 10, pause_ms: 0 };
    let stopped = stage.start(language, Task { pause_ms: PAUSE_MS, ..quiet });
    let old = stage.heard("stopped");
    let next = stage.start(language, quiet);
    assert_eq!(next.end(), (Some(0), String::new()), "{}", stage.log());
    stopped.wake();
    assert_eq!(stopped.end(), (Some(3), String::new()), "{}", stage.log());

    let log = stage.log();
    let said: Vec<_> = log.lines().filter_map(read).collect();
    let of = |token: u64| -> Vec<&str> {
        said.iter().filter(|(_, other)| *other == token).map(|(what, _)| *what).collect()
    };
    assert_eq!(of(old), ["acquired", "wrote", "stopped", "lost", "fenced"], "{log}");
    let first = |wanted: &str| said.iter().find(|(what, token)| *what == wanted && *token != old).unwrap().1;
    let (next, again) = (first("acquired"), first("sealed"));
    assert_eq!(of(next), ["acquired", "wrote", "wrote", "releasing"], "{log}");
    assert!(old < next && old < again, "{log}");
    assert!(log.contains("its time was over"), "the guard refused, and not the fence:\n{log}");
    assert_eq!(stage.pages(language), [old, next, next], "nothing came too late");
}

#[test]
fn a_stopped_program_in_python_gets_no_guard_and_its_old_token_is_refused() {
    stopped_and_overtaken(Language::Python);
}

#[test]
fn a_stopped_program_in_go_gets_no_guard_and_its_old_token_is_refused() {
    stopped_and_overtaken(Language::Go);
}
