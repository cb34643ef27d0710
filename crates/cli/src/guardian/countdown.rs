//! When to ask the command to end, and when to end it: the one decision of the guardian, without a clock.
//!
//! Promises that a deadline once over stays over: nothing that arrives later, however late its point, moves
//! it again. Deliberately knows nothing of processes; the caller sends the signals it is told to send.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// What becomes of the command when its lease may not be kept. The words on the variants are those of `run --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
pub enum OnLoss {
    /// SIGTERM, then SIGKILL at the deadline
    #[default]
    Stop,
    /// SIGSTOP; SIGCONT once confirmed
    Freeze,
}

/// By what a command is ended: given once, at its start, so that it does not matter who lives later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// How long before the deadline.
    pub leads: Leads,
    /// What is done first.
    pub on_loss: OnLoss,
    /// How long after SIGTERM everything is killed, if not by the deadline alone.
    pub kill_after: Option<Duration>,
}

impl From<Leads> for Rules {
    fn from(leads: Leads) -> Self {
        Self { leads, on_loss: OnLoss::default(), kill_after: None }
    }
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Nothing before this moment.
    Wait(Point),
    /// SIGSTOP, and again to whoever runs; the countdown notes that it is frozen.
    Freeze,
    /// SIGCONT to those that were frozen.
    Thaw,
    /// SIGTERM, once; the countdown notes that it was said.
    Term,
    /// SIGKILL, now and from now on until nothing is left.
    Kill,
}

/// The deadline in force and what was already done about it.
#[derive(Debug, Clone)]
pub struct Countdown {
    deadline: Point,
    rules: Rules,
    /// Whether SIGTERM went out for the deadline in force.
    term_said: bool,
    /// Whether SIGTERM went out for another reason than time. From then on nothing is frozen.
    asked: bool,
    /// When patience with a command that was asked to end is over.
    kill_at: Option<Point>,
    in_doubt: bool,
    frozen: bool,
    over: bool,
}

impl Countdown {
    /// A countdown to `deadline`.
    pub fn new(deadline: Point, rules: Rules) -> Self {
        Self {
            deadline,
            rules,
            term_said: false,
            asked: false,
            kill_at: None,
            in_doubt: false,
            frozen: false,
            over: false,
        }
    }

    /// The deadline in force.
    pub fn deadline(&self) -> Point {
        self.deadline
    }

    /// Takes `deadline` if it is later than the present one and the present one is not over; says whether.
    ///
    /// Over means: the moment of SIGKILL has come, whether or not anyone was awake to act on it. A later
    /// deadline that arrives between SIGTERM and SIGKILL is taken: the lease is still held, and a command
    /// that was asked to end gets more time to do so. One that is taken ends any doubt.
    pub fn extend(&mut self, deadline: Point, now: Point) -> bool {
        let remaining = self.deadline.remaining(now);
        if remaining <= self.rules.leads.kill {
            self.over = true;
        }
        if self.over || deadline.remaining(now) <= remaining {
            return false;
        }
        self.deadline = deadline;
        self.term_said = false;
        self.in_doubt = false;
        true
    }

    /// Whether the lease is held cannot be said until a later deadline is taken.
    pub fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// Ends it now, whatever the deadline says.
    pub fn give_up(&mut self) {
        self.over = true;
    }

    /// Notes that SIGTERM went out for another reason than time, so that time does not send a second one.
    pub fn note_term(&mut self, now: Point) {
        self.term_said = true;
        self.asked = true;
        self.frozen = false;
        self.begin_patience(now);
    }

    /// Whether SIGKILL is due or was due.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether the command is to stand still.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Whether it took longer to end than it was given, with time left before the deadline.
    pub fn is_out_of_patience(&self, now: Point) -> bool {
        self.kill_at.is_some_and(|at| at.remaining(now).is_zero())
            && self.deadline.remaining(now) > self.rules.leads.kill
    }

    /// What is due at `now`. `Freeze`, `Thaw` and `Term` are answered once each; `Kill` is answered for ever.
    pub fn due(&mut self, now: Point) -> Due {
        let remaining = self.deadline.remaining(now);
        if self.over || remaining <= self.rules.leads.kill || self.is_out_of_patience(now) {
            self.over = true;
            return Due::Kill;
        }
        let near = remaining <= self.rules.leads.term;
        if self.rules.on_loss == OnLoss::Freeze && !self.asked {
            let before = std::mem::replace(&mut self.frozen, near || self.in_doubt);
            return match (before, self.frozen) {
                (false, true) => Due::Freeze,
                (true, false) => Due::Thaw,
                (true, true) => Due::Wait(self.kill_moment(now)),
                (false, false) => Due::Wait(self.deadline.minus(self.rules.leads.term)),
            };
        }
        if self.term_said {
            return Due::Wait(self.kill_moment(now));
        }
        if near {
            self.term_said = true;
            self.begin_patience(now);
            return Due::Term;
        }
        // Time may have asked for an earlier deadline, and patience runs since.
        Due::Wait(self.or_impatience(self.deadline.minus(self.rules.leads.term), now))
    }

    /// The first request counts: one that is repeated gives no more time.
    fn begin_patience(&mut self, now: Point) {
        if let (None, Some(kill_after)) = (self.kill_at, self.rules.kill_after) {
            self.kill_at = Some(now.plus(kill_after));
        }
    }

    fn kill_moment(&self, now: Point) -> Point {
        self.or_impatience(self.deadline.minus(self.rules.leads.kill), now)
    }

    /// The end of patience, if that comes before `moment`.
    fn or_impatience(&self, moment: Point, now: Point) -> Point {
        self.kill_at.filter(|at| at.remaining(now) < moment.remaining(now)).unwrap_or(moment)
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
        Countdown::new(at(deadline_ms), rules())
    }

    fn rules() -> Rules {
        Leads::new(Duration::from_millis(200), Duration::from_millis(50)).into()
    }

    fn freezing(deadline_ms: u64) -> Countdown {
        Countdown::new(at(deadline_ms), Rules { on_loss: OnLoss::Freeze, ..rules() })
    }

    fn impatient(deadline_ms: u64) -> Countdown {
        Countdown::new(at(deadline_ms), Rules { kill_after: Some(Duration::from_millis(300)), ..rules() })
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
    fn freezing_takes_the_place_of_term_and_a_later_deadline_thaws() {
        let mut c = freezing(1000);
        assert_eq!(c.due(at(0)), Due::Wait(at(800)));
        assert_eq!(c.due(at(800)), Due::Freeze);
        assert_eq!(c.due(at(801)), Due::Wait(at(950)));
        assert!(c.extend(at(1500), at(900)));
        assert_eq!(c.due(at(900)), Due::Thaw);
        assert_eq!(c.due(at(901)), Due::Wait(at(1300)));
        assert_eq!(c.due(at(1300)), Due::Freeze);
        assert_eq!(c.due(at(1450)), Due::Kill);
        assert!(!c.extend(at(9000), at(1460)), "over stays over");
    }

    #[test]
    fn a_later_deadline_that_is_near_too_does_not_thaw() {
        let mut c = freezing(1000);
        assert_eq!(c.due(at(900)), Due::Freeze);
        assert!(c.extend(at(1050), at(900)));
        assert_eq!(c.due(at(901)), Due::Wait(at(1000)));
    }

    #[test]
    fn doubt_freezes_long_before_the_deadline_and_lasts_until_a_later_one() {
        let mut c = freezing(1000);
        c.doubt();
        assert_eq!(c.due(at(100)), Due::Freeze);
        assert!(!c.extend(at(1000), at(110)), "no later");
        assert_eq!(c.due(at(110)), Due::Wait(at(950)));
        assert!(c.extend(at(1100), at(120)));
        assert_eq!(c.due(at(120)), Due::Thaw);
    }

    #[test]
    fn what_was_asked_to_end_is_not_frozen_any_more() {
        let mut c = freezing(1000);
        assert_eq!(c.due(at(850)), Due::Freeze);
        c.note_term(at(860));
        assert!(!c.is_frozen());
        assert_eq!(c.due(at(861)), Due::Wait(at(950)));
        assert!(c.extend(at(2000), at(900)));
        c.doubt();
        assert_eq!(c.due(at(910)), Due::Wait(at(1800)));
        assert_eq!(c.due(at(1800)), Due::Term);
        assert_eq!(c.due(at(1950)), Due::Kill);
    }

    #[test]
    fn patience_counts_from_the_first_request_and_no_deadline_prolongs_it() {
        let mut c = impatient(10_000);
        c.note_term(at(1000));
        c.note_term(at(1200));
        assert_eq!(c.due(at(1200)), Due::Wait(at(1300)));
        assert!(c.extend(at(20_000), at(1250)));
        assert_eq!(c.due(at(1250)), Due::Wait(at(1300)));
        assert!(!c.is_out_of_patience(at(1299)) && c.is_out_of_patience(at(1300)));
        assert_eq!(c.due(at(1300)), Due::Kill);
    }

    #[test]
    fn a_deadline_that_comes_before_the_end_of_patience_is_what_kills() {
        let mut c = impatient(1000);
        c.note_term(at(900));
        assert_eq!(c.due(at(901)), Due::Wait(at(950)));
        assert_eq!(c.due(at(1250)), Due::Kill);
        assert!(!c.is_out_of_patience(at(1250)));
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
