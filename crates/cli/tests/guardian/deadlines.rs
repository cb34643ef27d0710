//! The deadline comes: because renewals end, because the wrapper is stopped, whatever the command does.

use rustix::process::{Signal, kill_process_group};

use crate::stage::{
    Stage, assert_before, deaf_tree, eventually, is_gone, pid, signal, undisturbed, wait_state, when_gone,
};

#[test]
fn a_command_that_ignores_sigterm_is_killed_before_the_deadline() {
    let mut stage = Stage::run(&["--ttl", "3000", "--renewals", "1"], &deaf_tree());
    let gone = when_gone(&stage.tree());
    assert_before(gone, stage.last_deadline());
    assert_eq!(stage.wait().code(), Some(137));
    let (asked, _) = stage.wait_log("event Terminating(Deadline)");
    let (killed, _) = stage.wait_log("event Killing(Deadline)");
    assert!(killed.remaining(asked).as_millis() >= 100, "no time between asking and killing");
}

#[test]
fn a_command_that_obeys_sigterm_is_not_killed() {
    let script = "trap 'exit 9' TERM; sleep 300 & wait";
    // It has 600 ms to obey.
    let mut stage = Stage::run(&["--ttl", "6000", "--renewals", "0"], script);
    assert_eq!(stage.wait().code(), Some(9));
    stage.wait_log("event Terminating(Deadline)");
    assert!(!stage.log().contains("Killing"));
}

#[test]
fn the_deadline_counts_from_the_send_however_late_the_answer_came() {
    undisturbed(|| {
        // The imagined answer takes 1000 ms of each 4000: counted from receipt, the end would come 600 ms too late.
        let stage = Stage::run(&["--ttl", "4000", "--age", "1000", "--renewals", "2"], &deaf_tree());
        let tree = stage.tree();
        stage.taken_in_all(2)?;
        assert_before(when_gone(&tree), stage.last_deadline());
        // The wrapper, which would have noticed, had no reason to step in.
        stage.wait_log("event AllGone");
        assert!(!stage.log().contains("GuardianLost"));
        Ok(())
    });
}

#[test]
fn with_the_shortest_ttl_everything_is_gone_before_the_deadline() {
    // The lead is only 50 ms: a busy machine may spoil a try, but not all of them.
    let in_time = (0..5).any(|_| {
        let stage = Stage::run(&["--ttl", "500", "--renewals", "8"], &deaf_tree());
        let gone = when_gone(&stage.tree());
        gone.is_before(stage.last_deadline())
    });
    assert!(in_time, "five times out of five something outlived the deadline");
}

#[test]
fn a_stopped_wrapper_does_not_keep_the_command_alive() {
    for _ in 0..2 {
        let mut stage = Stage::run(&["--ttl", "2000"], &deaf_tree());
        let tree = stage.tree();
        let [wrapper, guardian, _] = stage.pids();
        signal(wrapper, Signal::STOP);
        wait_state(wrapper, true);
        assert_before(when_gone(&tree), stage.last_deadline());
        when_gone(&[guardian]);
        // It learns all of it when it wakes up, in order.
        signal(wrapper, Signal::CONT);
        assert_eq!(stage.wait().code(), Some(137));
        stage.wait_log("event AllGone");
        assert!(!stage.log().contains("GuardianLost"));
    }
}

#[test]
fn a_stopped_tree_is_killed_too() {
    let stage = Stage::run(&["--ttl", "2000", "--renewals", "1"], &deaf_tree());
    let tree = stage.tree();
    for pid in &tree {
        signal(*pid, Signal::STOP);
        wait_state(*pid, true);
    }
    assert_before(when_gone(&tree), stage.last_deadline());
}

#[test]
fn a_stopped_command_is_woken_to_hear_sigterm() {
    let script = "trap 'echo 1 > $STAGE/heard; exit 4' TERM; sleep 300 & echo 1 > $STAGE/ready; wait";
    let mut stage = Stage::run(&["--ttl", "6000", "--renewals", "0"], script);
    stage.written("ready");
    let command = stage.pids()[2];
    kill_process_group(command, Signal::STOP).unwrap();
    wait_state(command, true);
    assert_eq!(stage.wait().code(), Some(4));
    stage.written("heard");
    stage.wait_log("event Stopped(19)");
}

#[test]
fn a_daemon_that_keeps_hopping_is_caught() {
    // Each generation starts the next one in a new session and ends: there is never a group to kill, and
    // the one that was found may be gone before it is hit.
    let hop = "trap '' TERM; echo $$ >> $STAGE/hops; setsid sh $STAGE/hop & exit 0";
    let stage = Stage::empty();
    std::fs::write(stage.file("hop"), hop).unwrap();
    let mut stage = stage;
    let mut command = stage.command(&["--ttl", "4000", "--renewals", "0"], &["sh", "-c", hop]);
    stage.wrapper = Some(command.spawn().unwrap());
    let deadline = eventually("a first deadline is noted", || {
        stage.log().contains(" pids ").then(|| stage.last_deadline())
    });
    stage.wait();
    assert_before(stage.wait_log("event AllGone").0, deadline);
    let hops = std::fs::read_to_string(stage.file("hops")).unwrap();
    let hops: Vec<i32> = hops.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(hops.len() > 10, "it hopped only {} times", hops.len());
    assert!(
        hops.iter().rev().take(10).all(|hop| is_gone(pid(*hop))),
        "one of the last generations still runs"
    );
}
