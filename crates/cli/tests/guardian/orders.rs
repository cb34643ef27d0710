//! The guardian by itself: this test is the wrapper and speaks the orders over the link.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::countdown::Leads;
use leasehold_cli::guardian::link::{Link, Received, Sent};
use leasehold_cli::guardian::message::{Cause, Ending, Order, Report};
use leasehold_cli::guardian::tree::children;
use leasehold_cli::guardian::{COMMAND_WORD, arguments};
use rustix::process::{Pid, Signal};

use crate::stage::{assert_before, eventually, example, pid, signal, wait_state};

const LEADS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(100));
const LONG: Duration = Duration::from_secs(30);

struct Guarded {
    link: Link,
    guardian: Child,
    command: Pid,
}

impl Guarded {
    fn start(script: &str, first: Duration) -> (Self, Point) {
        let (link, theirs) = Link::pair().unwrap();
        let words = ["sh", "-c", script].map(Into::into);
        let guardian = Command::new(example())
            .arg(COMMAND_WORD)
            .args(arguments(Leads::new(LEADS.0, LEADS.1), &words))
            .stdin(Stdio::from(theirs.into_fd()))
            .spawn()
            .unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let deadline = Point::now().plus(first);
        let streams = [null.as_fd(), null.as_fd(), null.as_fd()];
        assert_eq!(link.send(&Order::Start(deadline).encode(), Some(streams)), Sent::Yes);
        let mut guarded = Self { link, guardian, command: pid(1) };
        let Report::Started(started) = guarded.next() else { panic!("the first report is the start") };
        guarded.command = pid(started);
        (guarded, deadline)
    }

    fn order(&self, order: Order) {
        assert_eq!(self.link.send(&order.encode(), None), Sent::Yes);
    }

    fn next(&self) -> Report {
        eventually("the guardian reports", || match self.link.receive() {
            Received::Packet(packet, _) => Some(Report::decode(&packet).unwrap()),
            Received::Nothing => None,
            Received::End => panic!("the guardian ended without a word"),
        })
    }

    /// Waits until the shell has started this many children. Before they sleep they may still be copies of the
    /// shell, with its traps; and a shell that waits for a child's exec cannot be stopped.
    fn wait_for_sleepers(&self, count: usize) {
        eventually("the children sleep", || {
            let names = children(self.command).into_iter().map(|child| {
                fs::read_to_string(format!("/proc/{}/comm", child.as_raw_nonzero())).unwrap_or_default()
            });
            (names.filter(|name| name == "sleep\n").count() == count).then_some(())
        });
    }

    fn guardian(&self) -> Pid {
        Pid::from_child(&self.guardian)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // Its end of the link sees our end even while we wait here.
        self.link.finish();
        let _ = rustix::process::kill_process_group(self.command, Signal::KILL);
        let _ = self.guardian.wait();
    }
}

#[test]
fn a_deadline_that_is_over_is_not_extended_by_one_that_was_sent_in_time_but_read_too_late() {
    let (guarded, deadline) = Guarded::start("trap '' TERM; sleep 300 & wait", Duration::from_millis(600));
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
    let (guarded, first) = Guarded::start("trap 'exit 2' TERM; sleep 300 & wait", Duration::from_millis(500));
    guarded.order(Order::Deadline(Point::now().plus(Duration::from_millis(1200))));
    guarded.order(Order::Deadline(Point::now().plus(Duration::from_millis(400))));
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
    assert_before(Point::now(), ordered.plus(Duration::from_secs(2)));
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
