//! When to ask the command to end, and when to end it: the one decision of the guardian, without a clock.
//!
//! Promises that a deadline once over stays over: nothing that arrives later, however late its point, moves
//! it again. Deliberately knows nothing of processes; the caller sends the signals it is told to send.

use std::time::Duration;

use super::clock::Point;

/// SIGTERM goes out at most this long before the deadline: with a ttl of hours nobody wants to be asked to
/// stop hours early, and half a minute is what most supervisors give.
const LONGEST_TERM_LEAD: Duration = Duration::from_secs(30);
/// Below this a loaded machine cannot be trusted to run the guardian, kill a tree and see it gone.
const SHORTEST_KILL_LEAD: Duration = Duration::from_millis(50);
/// Killing a tree takes milliseconds, a tenth of a second on an overloaded machine; more lead than this only takes
/// time away from the command.
const LONGEST_KILL_LEAD: Duration = Duration::from_secs(1);
/// Closer to a moment than this, sleep exactly; further away, sleep only part of the way. See [`nap`].
const EXACT_SLEEP: Duration = Duration::from_millis(20);

/// How long before the deadline each of the two signals is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leads {
    term: Duration,
    kill: Duration,
}

impl Leads {
    /// Leads given by hand. The kill lead is cut to the term lead: SIGKILL never goes out before SIGTERM.
    pub fn new(term: Duration, kill: Duration) -> Self {
        Self { term, kill: kill.min(term) }
    }

    /// The leads for a session of this ttl: a fifth of it for SIGTERM, a tenth for SIGKILL, within bounds.
    ///
    /// With a renewal every third of the ttl and a margin of a tenth, one lost renewal leaves
    /// 9/10 - 2/3 = 7/30 of the ttl, which is more than the fifth taken here: no signal goes out for it.
    pub fn for_ttl(ttl: Duration) -> Self {
        let term = (ttl / 5).min(LONGEST_TERM_LEAD);
        Self::new(term, (ttl / 10).clamp(SHORTEST_KILL_LEAD, LONGEST_KILL_LEAD))
    }

    /// How long before the deadline SIGTERM is sent.
    pub fn term(self) -> Duration {
        self.term
    }

    /// How long before the deadline SIGKILL is sent.
    pub fn kill(self) -> Duration {
        self.kill
    }
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing before this moment.
    Wait(Point),
    /// SIGTERM, once; the countdown notes that it was said.
    Term,
    /// SIGKILL, now and from now on until nothing is left.
    Kill,
}

/// The deadline in force and what was already done about it.
#[derive(Debug, Clone)]
pub struct Countdown {
    deadline: Point,
    leads: Leads,
    term_said: bool,
    over: bool,
}

impl Countdown {
    /// A countdown to `deadline`.
    pub fn new(deadline: Point, leads: Leads) -> Self {
        Self { deadline, leads, term_said: false, over: false }
    }

    /// The deadline in force.
    pub fn deadline(&self) -> Point {
        self.deadline
    }

    /// Takes `deadline` if it is later than the present one and the present one is not over; says whether.
    ///
    /// Over means: the moment of SIGKILL has come, whether or not anyone was awake to act on it. A later
    /// deadline that arrives between SIGTERM and SIGKILL is taken: the lease is still held, and a command
    /// that was asked to end gets more time to do so.
    pub fn extend(&mut self, deadline: Point, now: Point) -> bool {
        let remaining = self.deadline.remaining(now);
        if remaining <= self.leads.kill {
            self.over = true;
        }
        if self.over || deadline.remaining(now) <= remaining {
            return false;
        }
        self.deadline = deadline;
        self.term_said = false;
        true
    }

    /// Ends it now, whatever the deadline says.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// Notes that SIGTERM went out for another reason than time, so that time does not send a second one.
    pub fn note_term(&mut self) {
        self.term_said = true;
    }

    /// Whether SIGKILL is due or was due.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What is due at `now`. `Term` is answered once per deadline; `Kill` is answered for ever.
    pub fn due(&mut self, now: Point) -> Due {
        let remaining = self.deadline.remaining(now);
        if self.over || remaining <= self.leads.kill {
            self.over = true;
            return Due::Kill;
        }
        if self.term_said {
            return Due::Wait(self.deadline.minus(self.leads.kill));
        }
        if remaining <= self.leads.term {
            self.term_said = true;
            return Due::Term;
        }
        Due::Wait(self.deadline.minus(self.leads.term))
    }
}

/// How long to sleep towards a moment that is `remaining` away.
///
/// A sleep is measured by CLOCK_MONOTONIC, which a time daemon may slow by up to a tenth against
/// CLOCK_MONOTONIC_RAW. Sleeping four fifths of the way and looking again never oversleeps, and takes few
/// steps; the last 20 ms are slept in one go, where a tenth is too little to matter.
pub fn nap(remaining: Duration) -> Duration {
    if remaining <= EXACT_SLEEP { remaining } else { (remaining * 4 / 5).max(EXACT_SLEEP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Point {
        Point::new(Duration::from_millis(ms), Duration::from_millis(ms))
    }

    fn countdown(deadline_ms: u64) -> Countdown {
        Countdown::new(at(deadline_ms), Leads::new(Duration::from_millis(200), Duration::from_millis(50)))
    }

    #[test]
    fn term_comes_once_and_kill_comes_before_the_deadline() {
        let mut c = countdown(1000);
        assert_eq!(c.due(at(0)), Due::Wait(at(800)));
        assert_eq!(c.due(at(800)), Due::Term);
        assert_eq!(c.due(at(801)), Due::Wait(at(950)));
        assert_eq!(c.due(at(950)), Due::Kill);
        assert_eq!(c.due(at(951)), Due::Kill);
    }

    #[test]
    fn a_later_deadline_is_taken_while_the_present_one_runs() {
        let mut c = countdown(1000);
        assert!(c.extend(at(1500), at(900)));
        assert_eq!(c.due(at(960)), Due::Wait(at(1300)));
    }

    #[test]
    fn a_deadline_that_is_over_is_not_extended_even_if_nobody_was_awake() {
        let mut c = countdown(1000);
        assert!(!c.extend(at(5000), at(950)));
        assert_eq!(c.due(at(951)), Due::Kill);
    }

    #[test]
    fn an_earlier_deadline_changes_nothing() {
        let mut c = countdown(1000);
        assert!(!c.extend(at(900), at(100)));
        assert_eq!(c.deadline(), at(1000));
    }

    #[test]
    fn a_deadline_taken_after_term_brings_its_own_term() {
        let mut c = countdown(1000);
        assert_eq!(c.due(at(850)), Due::Term);
        assert!(c.extend(at(1400), at(860)));
        assert_eq!(c.due(at(870)), Due::Wait(at(1200)));
        assert_eq!(c.due(at(1200)), Due::Term);
    }

    #[test]
    fn one_clock_alone_ends_it() {
        let mut c = countdown(1000);
        let suspended = Point::new(Duration::from_millis(2000), Duration::from_millis(10));
        assert_eq!(c.due(suspended), Due::Kill);
    }

    #[test]
    fn one_lost_renewal_sends_no_signal_at_any_ttl() {
        for ttl in [500_u64, 1000, 10_000, 300_000].map(Duration::from_millis) {
            let margin = (ttl / 10).max(Duration::from_millis(50));
            let left = ttl - margin - 2 * ttl / 3;
            let leads = Leads::for_ttl(ttl);
            assert!(leads.term() < left, "ttl {ttl:?}: term lead {:?}, left {left:?}", leads.term());
            assert!(leads.kill() <= leads.term() / 2, "ttl {ttl:?}");
        }
    }

    #[test]
    fn a_nap_never_oversleeps_a_clock_slowed_by_a_tenth() {
        for ms in [21_u64, 100, 1000, 60_000] {
            let remaining = Duration::from_millis(ms);
            assert!(nap(remaining) * 11 / 10 < remaining + Duration::from_millis(2), "{ms}");
        }
    }
}
