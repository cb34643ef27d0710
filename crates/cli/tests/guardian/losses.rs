//! The wrapper dies, the guardian dies, or the guardian is stopped.

use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use rustix::process::Signal;

use crate::stage::{Stage, TREE, UNTIL_TOLD, assert_before, deaf_tree, signal, wait_state, when_gone};

/// The ttl where the end must not come from the deadline.
const LONG: &str = "60000";
/// A fifth of what a lease with the long ttl would still run.
const AT_ONCE: Duration = Duration::from_secs(11);

#[test]
fn a_killed_wrapper_takes_every_descendant_with_it_before_the_deadline() {
    for _ in 0..3 {
        let stage = Stage::run(&["--ttl", "2000"], &deaf_tree());
        let tree = stage.tree();
        let [wrapper, guardian, _] = stage.pids();
        signal(wrapper, Signal::KILL);
        let gone = when_gone(&tree);
        assert_before(gone, stage.last_deadline());
        when_gone(&[guardian]);
    }
}

#[test]
fn a_killed_wrapper_means_sigterm_at_once_in_every_session() {
    let stage = Stage::run(&["--ttl", LONG], TREE);
    let tree = stage.tree();
    let [wrapper, guardian, _] = stage.pids();
    let killed = Point::now();
    signal(wrapper, Signal::KILL);
    assert_before(when_gone(&tree), killed.plus(AT_ONCE));
    when_gone(&[guardian]);
}

#[test]
fn a_killed_wrapper_leaves_a_deaf_command_the_time_it_was_promised() {
    // SIGKILL belongs to the deadline, not to the end of the wrapper.
    let stage = Stage::run(&["--ttl", "1500"], &deaf_tree());
    let tree = stage.tree();
    signal(stage.pids()[0], Signal::KILL);
    let gone = when_gone(&tree);
    // It cannot be killed later than 150 ms before the deadline; the last one noted may not have been sent.
    let left = stage.last_deadline().remaining(gone.at);
    assert!(left <= Duration::from_millis(150 + 500), "killed {left:?} before the deadline");
}

#[test]
fn a_killed_guardian_makes_the_wrapper_kill_every_descendant_at_once() {
    for _ in 0..3 {
        let mut stage = Stage::run(&["--ttl", LONG], &deaf_tree());
        let tree = stage.tree();
        let killed = Point::now();
        signal(stage.pids()[1], Signal::KILL);
        assert_before(when_gone(&tree), killed.plus(AT_ONCE));
        assert_eq!(stage.wait().code(), Some(137));
        stage.wait_log("event GuardianLost");
        stage.wait_log("event Exited(Signal(9))");
        stage.wait_log("event AllGone");
    }
}

#[test]
fn a_guardian_killed_after_the_command_ended_leaves_no_daemon() {
    let script = "( setsid sh -c 'sleep 300 & echo $! > $STAGE/daemon' & ); exit 5";
    let mut stage = Stage::run(&["--ttl", LONG], script);
    let daemon = stage.written("daemon");
    stage.wait_log("event Exited(Code(5))");
    let killed = Point::now();
    signal(stage.pids()[1], Signal::KILL);
    assert_before(when_gone(&[daemon]), killed.plus(AT_ONCE));
    assert_eq!(stage.wait().code(), Some(5));
}

#[test]
fn a_stopped_guardian_is_woken_by_the_wrapper() {
    let mut stage = Stage::run(&["--ttl", LONG], &format!("{UNTIL_TOLD}; exit 6"));
    let guardian = stage.pids()[1];
    for _ in 0..3 {
        signal(guardian, Signal::STOP);
        wait_state(guardian, false);
    }
    stage.go();
    assert_eq!(stage.wait().code(), Some(6));
}

#[test]
fn the_guardian_is_unmoved_by_the_signals_that_end_a_session() {
    let mut stage = Stage::run(&["--ttl", LONG], &format!("{UNTIL_TOLD}; exit 3"));
    let guardian = stage.pids()[1];
    let session =
        [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::TSTP, Signal::TTIN, Signal::TTOU];
    for each in session {
        signal(guardian, each);
    }
    stage.go();
    assert_eq!(stage.wait().code(), Some(3));
    assert!(!stage.log().contains("GuardianLost"));
}
