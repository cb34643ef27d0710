//! The guardian's loop: sleep until a moment, an order or the end of a child, then act.
//!
//! It reads the clocks before it reads orders, so that what became due while it slept, or was stopped, is done
//! before anything that arrived in the meantime is believed. Nothing in it waits for the wrapper, except the
//! last report after all is gone.

use std::collections::VecDeque;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use signal_hook::SigId;
use signal_hook::consts::SIGCHLD;

use super::clock::Point;
use super::countdown::{Countdown, Due, nap};
use super::errno;
use super::family::Family;
use super::link::{Link, Received, Sent};
use super::message::{Cause, Message, Order, Report};

/// While killing, look again at least this often: a descendant below a living one that was forked during the
/// last look sends no signal when it appears. Doubled up to the second value for what cannot be killed.
pub(crate) const FIRST_SWEEP: Duration = Duration::from_millis(1);
pub(crate) const LAST_SWEEP: Duration = Duration::from_millis(20);

/// While frozen, look this often for somebody who runs: anybody may continue a stopped process.
const FROZEN_LOOK: Duration = Duration::from_millis(20);

/// A wrapper that does not read may make us keep this many reports; stops and continues beyond it are dropped,
/// the others come once each.
const MOST_UNSENT: usize = 16;

/// The ends of children, as something to poll, and a timer that goes on in suspend.
pub(super) struct Ends {
    signals: UnixStream,
    timer: OwnedFd,
}

impl Ends {
    pub(super) fn subscribe() -> Result<Self, Errno> {
        let (signals, _) = subscribe(SIGCHLD).map_err(|error| errno(&error))?;
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { signals, timer })
    }

    /// Sleeps until the wrapper speaks (if it is still there), a child ends, or `until`, or a little less.
    fn sleep(&mut self, link: Option<&Link>, until: Point, now: Point) {
        let timeout = timespec(nap(until.remaining(now)));
        // A poll's timeout stands still in suspend; this timer is what wakes us first after it.
        let at = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(until.boot()) };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at);
        let mut fds =
            vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        fds.extend(link.map(|link| PollFd::new(link, PollFlags::IN)));
        // An interrupted sleep is a short one, and every turn of the loop looks at everything.
        let _ = poll(&mut fds, Some(&timeout));
        drain(&mut self.signals);
    }
}

/// A stream in which there is something to read when the signal has come.
pub(crate) fn subscribe(signal: i32) -> std::io::Result<(UnixStream, SigId)> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    let id = signal_hook::low_level::pipe::register(signal, write)?;
    Ok((read, id))
}

/// Reads away what signals wrote; says whether there was anything.
pub(crate) fn drain(signals: &mut UnixStream) -> bool {
    let mut waste = [0_u8; 64];
    let mut any = false;
    while matches!(signals.read(&mut waste), Ok(count) if count > 0) {
        any = true;
    }
    any
}

/// Watches over the family until nothing of it is left.
pub(super) fn watch(link: Link, ends: Ends, countdown: Countdown, family: Family) {
    let started = Report::Started(family.command().as_raw_nonzero().get());
    let mut watch = Watch {
        link,
        listening: true,
        ends,
        countdown,
        family,
        cause: Cause::Deadline,
        killing: false,
        unsent: VecDeque::from([started]),
    };
    let mut sweep = FIRST_SWEEP;
    loop {
        let until = watch.act_on_time();
        watch.tell_news();
        if watch.killing {
            watch.family.kill();
        }
        if watch.family.is_gone() {
            watch.report(Report::AllGone);
            watch.deliver();
            return;
        }
        watch.flush();
        let now = Point::now();
        let until = match (watch.killing, watch.countdown.is_frozen()) {
            (true, _) => now.plus(sweep),
            (false, true) if until.remaining(now) > FROZEN_LOOK => now.plus(FROZEN_LOOK),
            (false, _) => until,
        };
        sweep = if watch.killing { (sweep * 2).min(LAST_SWEEP) } else { FIRST_SWEEP };
        watch.ends.sleep(watch.listening.then_some(&watch.link), until, now);
        watch.act_on_time();
        watch.act_on_orders();
    }
}

struct Watch {
    link: Link,
    /// Whether more orders can come. Reports are sent even when not: the wrapper may only have said its last word.
    listening: bool,
    ends: Ends,
    countdown: Countdown,
    family: Family,
    /// Why SIGKILL will have gone out when it does.
    cause: Cause,
    killing: bool,
    unsent: VecDeque<Report>,
}

impl Watch {
    /// Does what is due and says when the next thing is.
    fn act_on_time(&mut self) -> Point {
        loop {
            match self.countdown.due(Point::now()) {
                Due::Wait(until) => {
                    if self.countdown.is_frozen() {
                        self.family.freeze();
                    }
                    return until;
                }
                Due::Freeze => {
                    // What happened before is somebody else's doing, and is told.
                    self.tell_news();
                    self.family.freeze();
                    self.report(Report::Frozen);
                }
                Due::Thaw => {
                    self.family.thaw();
                    self.report(Report::Thawed);
                }
                Due::Term => {
                    self.family.terminate(Signal::TERM);
                    self.report(Report::Terminating(Cause::Deadline));
                }
                Due::Kill => {
                    if !self.killing {
                        self.killing = true;
                        self.family.kill();
                        let slow = self.countdown.is_out_of_patience(Point::now());
                        let cause = if slow { Cause::TooSlow } else { self.cause };
                        self.report(Report::Killing(cause));
                    }
                    return self.countdown.deadline();
                }
            }
        }
    }

    fn tell_news(&mut self) {
        for news in self.family.news() {
            self.report(news);
        }
    }

    fn act_on_orders(&mut self) {
        while self.listening {
            match self.link.receive() {
                Received::Packet(packet, _) => match Order::decode(&packet) {
                    Some(order) => self.obey(order),
                    None => {
                        let packet = String::from_utf8_lossy(&packet);
                        eprintln!("leasehold: the guardian got an order it cannot read: {packet:?}");
                    }
                },
                Received::Nothing => return,
                Received::End => self.wrapper_is_gone(),
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            // A second start cannot be meant; its point is as good as any other.
            Order::Start(deadline) | Order::Deadline(deadline) => {
                self.countdown.extend(deadline, Point::now());
            }
            Order::Doubt => {
                self.countdown.doubt();
                self.act_on_time();
            }
            // Continued by whoever holds the terminal; nothing runs while the lease is in doubt.
            Order::Signal(signal) if signal == Signal::CONT.as_raw() && self.countdown.is_frozen() => {
                self.family.wake_group_with_thaw();
            }
            Order::Signal(signal) => {
                // Nothing is passed on to a command that is being killed; above all it is not continued.
                if let (false, Some(signal)) = (self.killing, Signal::from_named_raw(signal)) {
                    self.family.signal_group(signal);
                }
            }
            Order::Terminate(signal) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.family.terminate(signal);
                    if signal == Signal::TERM {
                        self.countdown.note_term(Point::now());
                    }
                    self.report(Report::Terminating(Cause::Order));
                }
            }
            Order::Kill => {
                self.cause = Cause::Order;
                self.countdown.give_up();
                self.act_on_time();
            }
        }
    }

    fn wrapper_is_gone(&mut self) {
        self.listening = false;
        self.cause = Cause::WrapperGone;
        if !self.killing {
            self.family.terminate(Signal::TERM);
            self.countdown.note_term(Point::now());
            self.report(Report::Terminating(Cause::WrapperGone));
        }
    }

    fn report(&mut self, report: Report) {
        let optional = matches!(report, Report::Stopped(_) | Report::Continued);
        if !(optional && self.unsent.len() >= MOST_UNSENT) {
            self.unsent.push_back(report);
        }
    }

    /// Sends what the wrapper takes now. Says whether all of it is sent.
    fn flush(&mut self) -> bool {
        while let Some(report) = self.unsent.front() {
            match self.link.send(&report.encode(), None) {
                Sent::Yes => drop(self.unsent.pop_front()),
                Sent::Full => return false,
                // The orders may still hold something to read; their end comes by itself.
                Sent::Gone => self.unsent.clear(),
            }
        }
        true
    }

    /// Everything is gone: now there is time to wait for a wrapper that is stopped with a full buffer.
    fn deliver(&mut self) {
        while !self.flush() {
            let _ = poll(&mut [PollFd::new(&self.link, PollFlags::OUT)], None);
        }
    }
}

/// A length for the kernel. One that it cannot count is for ever.
pub(crate) fn timespec(length: Duration) -> Timespec {
    Timespec::try_from(length).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
