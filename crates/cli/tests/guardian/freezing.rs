//! A lease in doubt: everything stands still, and goes on or is killed. And patience with what was asked to end.

use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::countdown::{Leads, OnLoss, Rules};
use leasehold_cli::guardian::message::{Cause, Ending, Order, Report};
use leasehold_cli::guardian::tree::{Stat, children};
use rustix::process::{Pid, Signal};

use crate::guarded::{Guarded, LONG};
use crate::stage::{assert_before, eventually, is_gone, signal, wait_state, when_gone};

/// Frozen so long before the deadline that a busy machine has time to look; killed a moment before it.
const LEADS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_millis(500));
/// The first deadline: frozen when a busy machine, too, has started the command and its children.
const FIRST: Duration = Duration::from_secs(5);
/// Many times what a process needs that runs when it should not.
const A_WHILE: Duration = Duration::from_millis(200);

const TWO: &str = "sleep 300 & setsid sleep 300 & wait";
const TWO_THAT_TIDY: &str = "trap 'exit 2' TERM; sleep 300 & setsid sleep 300 & wait";
const DEAF: &str = "trap '' TERM; sleep 300 & setsid sleep 300 & wait";

fn rules() -> Rules {
    Rules { on_loss: OnLoss::Freeze, ..Rules::from(Leads::new(LEADS.0, LEADS.1)) }
}

/// A command with two children, one of them in a session of its own.
fn start(script: &str, first: Duration) -> (Guarded, Point, Vec<Pid>) {
    let (guarded, deadline) = Guarded::start_with(rules(), script, first);
    guarded.wait_for_sleepers(2);
    let mut family = children(guarded.command);
    family.push(guarded.command);
    (guarded, deadline, family)
}

impl Guarded {
    /// The next report but that the command runs again, which is true and no news.
    fn said(&self) -> Report {
        loop {
            match self.next() {
                Report::Continued => {}
                report => return report,
            }
        }
    }

    fn confirm(&self) {
        self.order(Order::Deadline(Point::now().plus(LONG)));
        assert_eq!(self.said(), Report::Thawed);
    }
}

fn all_stand_still(family: &[Pid], still: bool) {
    for pid in family {
        wait_state(*pid, still);
    }
}

#[test]
fn everything_stands_still_before_the_deadline_and_goes_on_with_a_later_one() {
    let (guarded, deadline, family) = start(TWO, FIRST);
    assert_eq!(guarded.said(), Report::Frozen, "and no word of a stop, which would be taken for Ctrl-Z");
    all_stand_still(&family, true);
    guarded.confirm();
    all_stand_still(&family, false);
    eventually("the first deadline passes", || deadline.remaining(Point::now()).is_zero().then_some(()));
    assert!(family.iter().all(|pid| !is_gone(*pid)));
    guarded.order(Order::Kill);
    assert_eq!(guarded.said(), Report::Killing(Cause::Order));
}

#[test]
fn what_is_not_confirmed_is_killed_as_it_stands() {
    let (guarded, deadline, family) = start(TWO_THAT_TIDY, FIRST);
    assert_eq!(guarded.said(), Report::Frozen);
    let gone = when_gone(&family);
    assert_before(gone, deadline);
    assert!(deadline.remaining(gone.at) <= LEADS.1, "killed before its time");
    assert_eq!(guarded.said(), Report::Killing(Cause::Deadline));
    assert_eq!(guarded.said(), Report::Exited(Ending::Signal(9)), "it had no time to tidy up");
    assert_eq!(guarded.said(), Report::AllGone);
}

#[test]
fn whoever_was_stopped_before_is_left_alone() {
    let (guarded, _, family) = start(TWO, LONG);
    for (place, pid) in family.iter().enumerate() {
        // Each in turn: one in the group, one outside it, and not the command, whose stop is reported.
        if *pid == guarded.command {
            continue;
        }
        signal(*pid, Signal::STOP);
        wait_state(*pid, true);
        guarded.order(Order::Doubt);
        assert_eq!(guarded.said(), Report::Frozen);
        all_stand_still(&family, true);
        guarded.order(Order::Deadline(Point::now().plus(LONG + Duration::from_secs(1 + place as u64))));
        assert_eq!(guarded.said(), Report::Thawed);
        for other in &family {
            wait_state(*other, other == pid);
        }
        signal(*pid, Signal::CONT);
    }
}

#[test]
fn doubt_freezes_at_once_and_nobody_can_wake_what_is_in_doubt() {
    let (guarded, _, family) = start(TWO, LONG);
    guarded.order(Order::Doubt);
    assert_eq!(guarded.said(), Report::Frozen);
    for pid in &family {
        all_stand_still(&family, true);
        signal(*pid, Signal::CONT);
        wait_state(*pid, true);
    }
    std::thread::sleep(A_WHILE);
    all_stand_still(&family, true);
    // No later than the one in force: nothing was confirmed since.
    guarded.order(Order::Deadline(Point::now().plus(Duration::from_secs(4))));
    std::thread::sleep(A_WHILE);
    all_stand_still(&family, true);
    guarded.confirm();
    all_stand_still(&family, false);
}

#[test]
fn a_command_in_doubt_that_is_asked_to_end_wakes_and_ends() {
    let (guarded, _, _) = start(TWO_THAT_TIDY, LONG);
    guarded.order(Order::Doubt);
    assert_eq!(guarded.said(), Report::Frozen);
    guarded.order(Order::Terminate(Signal::TERM.as_raw()));
    assert_eq!(guarded.said(), Report::Terminating(Cause::Order));
    assert_eq!(guarded.said(), Report::Exited(Ending::Code(2)));
    assert_eq!(guarded.said(), Report::AllGone);
}

#[test]
fn a_command_that_was_asked_to_end_is_not_frozen_any_more() {
    let (guarded, deadline, family) = start(DEAF, FIRST);
    assert_eq!(guarded.said(), Report::Frozen);
    guarded.order(Order::Terminate(Signal::TERM.as_raw()));
    assert_eq!(guarded.said(), Report::Terminating(Cause::Order));
    wait_state(guarded.command, false);
    guarded.order(Order::Doubt);
    std::thread::sleep(A_WHILE);
    wait_state(guarded.command, false);
    assert_before(when_gone(&family), deadline);
    assert_eq!(guarded.said(), Report::Killing(Cause::Deadline));
}

#[test]
fn a_wrapper_that_dies_while_all_stands_still_wakes_it_to_end_it() {
    for (script, ending) in [(TWO_THAT_TIDY, Ending::Code(2)), (DEAF, Ending::Signal(9))] {
        let (guarded, deadline, family) = start(script, FIRST);
        assert_eq!(guarded.said(), Report::Frozen);
        all_stand_still(&family, true);
        guarded.link.finish();
        assert_eq!(guarded.said(), Report::Terminating(Cause::WrapperGone));
        assert_before(when_gone(&family), deadline);
        let reports: Vec<Report> = std::iter::repeat_with(|| guarded.said()).take(2).collect();
        assert!(reports.contains(&Report::Exited(ending)), "{reports:?}");
    }
}

#[test]
fn whoever_continues_a_job_that_is_in_doubt_has_it_run_when_it_is_confirmed() {
    let (guarded, _, _) = start(TWO, LONG);
    guarded.order(Order::Signal(Signal::STOP.as_raw()));
    assert_eq!(guarded.said(), Report::Stopped(Signal::STOP.as_raw()));
    guarded.order(Order::Doubt);
    assert_eq!(guarded.said(), Report::Frozen);
    // `fg`: the wrapper has the command continued.
    guarded.order(Order::Signal(Signal::CONT.as_raw()));
    std::thread::sleep(A_WHILE);
    assert!(Stat::read(guarded.command).unwrap().is_stopped(), "nothing is confirmed yet");
    guarded.confirm();
    wait_state(guarded.command, false);
}

#[test]
fn a_deaf_command_is_killed_when_patience_is_over() {
    let patience = Duration::from_millis(600);
    for wrapper_dies in [false, true] {
        let rules = Rules { kill_after: Some(patience), on_loss: OnLoss::Stop, ..rules() };
        let (guarded, deadline) = Guarded::start_with(rules, DEAF, LONG);
        guarded.wait_for_sleepers(2);
        let asked = Point::now();
        guarded.order(Order::Terminate(Signal::TERM.as_raw()));
        assert_eq!(guarded.said(), Report::Terminating(Cause::Order));
        if wrapper_dies {
            guarded.link.finish();
            assert_eq!(guarded.said(), Report::Terminating(Cause::WrapperGone));
        } else {
            // Neither asking again nor a renewal gives more time.
            guarded.order(Order::Terminate(Signal::TERM.as_raw()));
            guarded.order(Order::Deadline(deadline.plus(LONG)));
            assert_eq!(guarded.said(), Report::Terminating(Cause::Order));
        }
        assert_eq!(guarded.said(), Report::Killing(Cause::TooSlow));
        let waited = Point::now().remaining(asked);
        assert!(waited >= patience && waited < 10 * patience, "{waited:?}");
        assert_eq!(guarded.said(), Report::Exited(Ending::Signal(9)));
        assert_eq!(guarded.said(), Report::AllGone);
    }
}
