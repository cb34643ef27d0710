//! Orders, and what the guardian makes of them.

use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::message::{Cause, Ending, Order, Report};
use rustix::process::Signal;

use crate::guarded::{Guarded, LONG};
use crate::stage::{assert_before, eventually, signal, wait_state};

#[test]
fn a_deadline_that_is_over_is_not_extended_by_one_that_was_sent_in_time_but_read_too_late() {
    let (guarded, deadline) = Guarded::start("trap '' TERM; sleep 300 & wait", Duration::from_secs(3));
    signal(guarded.guardian(), Signal::STOP);
    wait_state(guarded.guardian(), true);
    guarded.order(Order::Deadline(Point::now().plus(LONG)));
    eventually("the first deadline passes", || deadline.remaining(Point::now()).is_zero().then_some(()));
    signal(guarded.guardian(), Signal::CONT);
    assert_eq!(guarded.next(), Report::Killing(Cause::Deadline));
    assert_eq!(guarded.next(), Report::Exited(Ending::Signal(9)));
    assert_eq!(guarded.next(), Report::AllGone);
}

#[test]
fn an_earlier_deadline_does_not_shorten_and_a_later_one_extends() {
    let (guarded, first) =
        Guarded::start("trap 'exit 2' TERM; sleep 300 & wait", Duration::from_millis(2_500));
    guarded.order(Order::Deadline(Point::now().plus(Duration::from_millis(4_500))));
    guarded.order(Order::Deadline(Point::now().plus(Duration::from_millis(2_000))));
    assert_eq!(guarded.next(), Report::Terminating(Cause::Deadline));
    assert!(first.remaining(Point::now()).is_zero(), "the command was asked to end for the first deadline");
    assert_eq!(guarded.next(), Report::Exited(Ending::Code(2)));
}

#[test]
fn an_order_to_terminate_reaches_every_session_and_leaves_the_deadline_alone() {
    let script = "trap 'exit 2' TERM; setsid sleep 300 & setsid sleep 300 & wait; exit 0";
    let (guarded, _) = Guarded::start(script, LONG);
    guarded.wait_for_sleepers(2);
    guarded.order(Order::Terminate(Signal::TERM.as_raw()));
    assert_eq!(guarded.next(), Report::Terminating(Cause::Order));
    assert_eq!(guarded.next(), Report::Exited(Ending::Code(2)));
    assert_eq!(guarded.next(), Report::AllGone);
}

#[test]
fn an_order_to_kill_kills_long_before_the_deadline() {
    let (guarded, _) = Guarded::start("trap '' TERM; setsid sleep 300 & wait", LONG);
    let ordered = Point::now();
    guarded.order(Order::Kill);
    assert_eq!(guarded.next(), Report::Killing(Cause::Order));
    assert_eq!(guarded.next(), Report::Exited(Ending::Signal(9)));
    assert_eq!(guarded.next(), Report::AllGone);
    assert_before(Point::now(), ordered.plus(LONG / 5));
}

#[test]
fn stops_and_continues_are_reported_and_signals_are_passed() {
    let (guarded, _) = Guarded::start("trap 'exit 8' USR1; sleep 300 & wait", LONG);
    guarded.wait_for_sleepers(1);
    guarded.order(Order::Signal(Signal::STOP.as_raw()));
    assert_eq!(guarded.next(), Report::Stopped(Signal::STOP.as_raw()));
    guarded.order(Order::Signal(Signal::CONT.as_raw()));
    assert_eq!(guarded.next(), Report::Continued);
    guarded.order(Order::Signal(Signal::USR1.as_raw()));
    assert_eq!(guarded.next(), Report::Exited(Ending::Code(8)));
    assert_eq!(guarded.next(), Report::AllGone);
}

#[test]
fn a_wrapper_that_stops_speaking_is_still_told_the_end() {
    let (guarded, _) = Guarded::start("sleep 300", LONG);
    guarded.link.finish();
    assert_eq!(guarded.next(), Report::Terminating(Cause::WrapperGone));
    assert_eq!(guarded.next(), Report::Exited(Ending::Signal(15)));
    assert_eq!(guarded.next(), Report::AllGone);
}
