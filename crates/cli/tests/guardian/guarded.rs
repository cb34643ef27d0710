//! The guardian by itself: the test is the wrapper and speaks the orders over the link.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::countdown::{Leads, Rules};
use leasehold_cli::guardian::link::{Link, Received, Sent};
use leasehold_cli::guardian::message::{Message, Order, Report};
use leasehold_cli::guardian::tree::children;
use leasehold_cli::guardian::{COMMAND_WORD, arguments};
use rustix::process::{Pid, Signal};

use crate::stage::{eventually, example, pid};

pub(crate) const LEADS: (Duration, Duration) = (Duration::from_millis(1_000), Duration::from_millis(500));
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) struct Guarded {
    pub(crate) link: Link,
    guardian: Child,
    pub(crate) command: Pid,
}

impl Guarded {
    pub(crate) fn start(script: &str, first: Duration) -> (Self, Point) {
        Self::start_with(Leads::new(LEADS.0, LEADS.1).into(), script, first)
    }

    pub(crate) fn start_with(rules: Rules, script: &str, first: Duration) -> (Self, Point) {
        let (link, theirs) = Link::pair().unwrap();
        let words = ["sh", "-c", script].map(Into::into);
        let guardian = Command::new(example())
            .arg(COMMAND_WORD)
            .args(arguments(&rules, &words))
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

    pub(crate) fn order(&self, order: Order) {
        assert_eq!(self.link.send(&order.encode(), None), Sent::Yes);
    }

    pub(crate) fn next(&self) -> Report {
        eventually("the guardian reports", || match self.link.receive() {
            Received::Packet(packet, _) => Some(Report::decode(&packet).unwrap()),
            Received::Nothing => None,
            Received::End => panic!("the guardian ended without a word"),
        })
    }

    /// Waits until the shell has started this many children. Before they sleep they may still be copies of the
    /// shell, with its traps; and a shell that waits for a child's exec cannot be stopped.
    pub(crate) fn wait_for_sleepers(&self, count: usize) {
        eventually("the children sleep", || {
            let names = children(self.command).into_iter().map(|child| {
                fs::read_to_string(format!("/proc/{}/comm", child.as_raw_nonzero())).unwrap_or_default()
            });
            (names.filter(|name| name == "sleep\n").count() == count).then_some(())
        });
    }

    pub(crate) fn guardian(&self) -> Pid {
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
