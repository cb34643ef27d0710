//! The scheduler of one session's renewals: a pure machine.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::belief::{Belief, Standing};
use super::reading::Reading;
use crate::id::{ItemNumber, RenewalNumber};
use crate::numbers::{Numbers, Schedule};
use crate::planted::{Bug, planted};

/// Sendings remembered for their answers. An answer to an older one comes too late to be of use: even at the shortest request
/// timeout this many reach back over several seconds.
const MAX_OUTSTANDING: usize = 1_024;
/// A renewal comes earlier by up to this many hundredths of its interval.
const JITTER_PERCENT: u32 = 20;

/// Round trips after which a request is sent again, as [`Numbers::request_timeout`] has it.
const TIMEOUT_ROUND_TRIPS: u32 = 4;

/// A random part of one, drawn outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fraction(u32);

impl Fraction {
    /// `bits` of 2^32.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// This part of a length.
    pub fn of(self, length: Duration) -> Duration {
        let nanos = (length.as_nanos() * u128::from(self.0)) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What the scheduler wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Send a renewal with this number now: its sending counts from the `now` of the poll that gave this.
    SendRenewal(RenewalNumber),
    /// The second attempt is due and the first is still unanswered: another node may answer.
    TryAnotherNode,
    /// The session stands differently than before.
    Standing(Standing),
}

/// One sending of a renewal.
#[derive(Debug, Clone, Copy)]
struct Sending {
    number: RenewalNumber,
    sent: Reading,
    /// Set by the answer: it counts once this item was processed.
    counts_after: Option<ItemNumber>,
}

#[derive(Debug, Clone, Copy)]
struct Uncertain {
    since: Reading,
    /// The first number that was sent after the disagreement was noticed.
    needs: RenewalNumber,
}

/// Decides when to renew and until when to believe, for one session.
#[derive(Debug, Clone)]
pub struct Scheduler {
    numbers: Numbers,
    /// The newest reading seen, so that inputs handed over in the wrong order do not turn time back.
    latest: Reading,
    /// The sending of the last confirmed open or renewal, and its number if it was a renewal.
    confirmed: Reading,
    confirmed_number: RenewalNumber,
    last_sent: Reading,
    last_number: RenewalNumber,
    /// In the order of their numbers, which is that of sending.
    sendings: VecDeque<Sending>,
    processed: ItemNumber,
    connected: bool,
    /// Whether nothing sent since the last confirmation was confirmed yet.
    awaiting: bool,
    /// The interval to the next renewal, jitter taken off.
    interval: Duration,
    /// How long an answer is waited for, jitter taken off: what was sent by many at one moment is not sent again at one moment.
    retry_after: Duration,
    /// What is taken off.
    jitter: Fraction,
    /// The service's wish for the next renewal, counted from the last sending.
    hinted: Option<Duration>,
    /// Whether a renewal is wanted at once.
    urgent: bool,
    /// Whether one is wanted at once when the one under way is answered.
    again: bool,
    /// The round trip that was measured, if it is above the bound.
    slow: Duration,
    retrying: Option<Reading>,
    uncertain: Option<Uncertain>,
    reported: Option<Standing>,
    /// The confirmed sending after which another node was asked for.
    tried_another: Option<Reading>,
}

impl Scheduler {
    /// Begins with a confirmed open whose nonce was first sent at `first_sent`. The session is connected.
    pub fn new(numbers: Numbers, first_sent: Reading, jitter: Fraction) -> Self {
        Self {
            numbers,
            latest: first_sent,
            confirmed: first_sent,
            confirmed_number: RenewalNumber::NONE,
            last_sent: first_sent,
            last_number: RenewalNumber::NONE,
            sendings: VecDeque::new(),
            processed: ItemNumber::NONE,
            connected: true,
            awaiting: false,
            interval: interval(&numbers, jitter),
            retry_after: numbers.request_timeout().duration(),
            jitter,
            hinted: None,
            urgent: false,
            again: false,
            slow: Duration::ZERO,
            retrying: None,
            uncertain: None,
            reported: None,
            tried_another: None,
        }
    }

    /// What to do now. `jitter` is drawn anew for every call.
    pub fn poll(&mut self, now: Reading, jitter: Fraction) -> Vec<Output> {
        let now = self.observe(now);
        let mut outputs = Vec::new();
        if self.until_due(now).is_zero() {
            if self.awaiting || !self.connected {
                self.retrying.get_or_insert(now);
            }
            if self.connected {
                outputs.push(Output::SendRenewal(self.send(now, jitter)));
            }
        }
        if self.until_another_node(now).is_some_and(|left| left.is_zero()) {
            self.tried_another = Some(self.confirmed);
            outputs.push(Output::TryAnotherNode);
        }
        let standing = self.belief().standing(now);
        if self.reported != Some(standing) {
            self.reported = Some(standing);
            outputs.push(Output::Standing(standing));
        }
        outputs
    }

    /// How long until [`Scheduler::poll`] has something to do, if only time passes.
    pub fn poll_timeout(&self, now: Reading) -> Option<Duration> {
        let now = now.latest(self.latest);
        let due = (self.connected || self.retrying.is_none()).then(|| self.until_due(now));
        let left = self.belief().left(now);
        let lapse = (!left.is_zero()).then_some(left);
        due.into_iter().chain(lapse).chain(self.until_another_node(now)).min()
    }

    /// The service has answered: the renewal `number` was applied, and counts once item `after` is processed.
    pub fn answered(&mut self, number: RenewalNumber, after: ItemNumber, now: Reading) {
        let now = self.observe(now);
        if let Ok(place) = self.place_of(number) {
            self.sendings[place].counts_after = Some(after);
        }
        self.settle(now);
    }

    /// The service has answered that it knew a later number already: this sending renewed nothing.
    pub fn stale(&mut self, number: RenewalNumber, highest: RenewalNumber, now: Reading) {
        self.observe(now);
        if let Ok(place) = self.place_of(number) {
            self.sendings.remove(place);
        }
        self.last_number = self.last_number.max(highest);
    }

    /// Every item up to this one was processed.
    pub fn processed(&mut self, item: ItemNumber, now: Reading) {
        let now = self.observe(now);
        self.processed = self.processed.max(item);
        self.settle(now);
    }

    /// There is a connection again. What was unanswered on the last one is sent anew.
    pub fn connected(&mut self, now: Reading) {
        self.observe(now);
        self.connected = true;
        self.urgent |= self.awaiting;
    }

    /// There is no connection any more.
    pub fn disconnected(&mut self, now: Reading) {
        self.observe(now);
        self.connected = false;
    }

    /// The service would like the next renewal in `length`. It is heard only as far as the schedule stays safe, and is never
    /// counted as a renewal.
    pub fn hint(&mut self, length: Duration, now: Reading) {
        let now = self.observe(now);
        if planted(Bug::HintCountsAsRenewal) {
            self.confirmed = now;
        }
        if self.awaiting || self.numbers.schedule() == Schedule::Fixed {
            return;
        }
        let wished = now.since(self.last_sent).greater().saturating_add(length);
        let latest = self.numbers.latest_renewal().duration().saturating_sub(self.sent_after_confirmed());
        self.hinted = Some(wished.max(self.numbers.request_timeout().duration()).min(latest));
    }

    /// A renewal is wanted now and not when it is due, to learn how long it takes. Nothing happens while an answer is missing already.
    pub fn renew_now(&mut self, now: Reading) {
        self.observe(now);
        self.urgent |= !self.awaiting;
    }

    /// A renewal is wanted that is sent from now on: at once, or when the one under way is answered, so that there are never two because of
    /// this. Gives back its number; a later one will do as well.
    pub fn renew(&mut self, now: Reading) -> RenewalNumber {
        self.observe(now);
        if self.awaiting {
            self.again = true;
        } else {
            self.urgent = true;
        }
        self.last_number.next()
    }

    /// What round trips take on this connection. Where that is above the bound that was trusted, answers are waited for accordingly longer,
    /// up to half of the interval: what waits in a queue is not hurried by sending it again.
    pub fn round_trips_take(&mut self, length: Duration) {
        self.slow = length;
    }

    /// A lease was granted. It is held at once if the session stands well; otherwise only from the renewal given back on,
    /// which is sent as soon as possible.
    pub fn granted(&mut self, now: Reading) -> Option<RenewalNumber> {
        let now = self.observe(now);
        if planted(Bug::GrantMovesDeadline) {
            self.confirmed = now;
        }
        if self.belief().standing(now).is_believed() {
            return None;
        }
        self.urgent = true;
        Some(self.last_number.next())
    }

    /// What the session believes.
    pub fn belief(&self) -> Belief {
        Belief {
            confirmed: self.confirmed,
            usable: self.numbers.usable().duration(),
            retrying: self.retrying,
            uncertain: self.uncertain.map(|uncertain| uncertain.since),
        }
    }

    /// The last renewal that was sent.
    pub const fn last_number(&self) -> RenewalNumber {
        self.last_number
    }

    /// The last renewal that was confirmed.
    pub const fn confirmed_number(&self) -> RenewalNumber {
        self.confirmed_number
    }

    /// Whether an answer to a renewal is kept because items that arose before it are missing.
    pub fn keeps_an_answer(&self) -> bool {
        self.sendings.iter().any(|sending| sending.counts_after.is_some())
    }

    #[cfg(test)]
    pub(super) fn outstanding(&self) -> usize {
        self.sendings.len()
    }

    /// Notices time, and clocks that disagree.
    fn observe(&mut self, now: Reading) -> Reading {
        self.latest = self.latest.latest(now);
        if self.uncertain.is_none() && self.latest.since(self.confirmed).disagrees() {
            self.uncertain = Some(Uncertain { since: self.latest, needs: self.last_number.next() });
            self.urgent = true;
        }
        self.latest
    }

    fn sent_after_confirmed(&self) -> Duration {
        self.last_sent.since(self.confirmed).greater()
    }

    fn until_due(&self, now: Reading) -> Duration {
        if self.urgent && self.connected {
            return Duration::ZERO;
        }
        let timeout = self.numbers.request_timeout().duration();
        let due = match self.hinted {
            _ if self.awaiting => self.retry_after.max(self.patience()),
            Some(hinted) => hinted,
            None => self.interval.saturating_sub(self.sent_after_confirmed()).max(timeout),
        };
        due.saturating_sub(now.since(self.last_sent).greater())
    }

    /// How long an answer takes at most on a connection that is slower than its bound.
    fn patience(&self) -> Duration {
        let bound = self.numbers.round_trip().duration();
        if self.slow <= bound {
            return Duration::ZERO;
        }
        let length = self.slow.saturating_mul(TIMEOUT_ROUND_TRIPS);
        shortened(length.min(self.numbers.renew_every().duration() / 2), self.jitter)
    }

    fn place_of(&self, number: RenewalNumber) -> Result<usize, usize> {
        self.sendings.binary_search_by_key(&number, |sending| sending.number)
    }

    /// How long until another node is to be tried, if the schedule says so and the first attempt is unanswered.
    fn until_another_node(&self, now: Reading) -> Option<Duration> {
        let wanted = self.numbers.schedule() == Schedule::Halves
            && self.connected
            && self.awaiting
            && self.tried_another != Some(self.confirmed);
        let second = self.numbers.second_attempt().duration();
        wanted.then(|| second.saturating_sub(now.since(self.confirmed).greater()))
    }

    fn send(&mut self, now: Reading, jitter: Fraction) -> RenewalNumber {
        let repeats = planted(Bug::OneRenewalNumber) && self.awaiting;
        if !repeats {
            self.last_number = self.last_number.next();
        }
        self.last_sent = now;
        self.interval = interval(&self.numbers, jitter);
        self.retry_after = shortened(self.numbers.request_timeout().duration(), jitter);
        self.jitter = jitter;
        self.awaiting = true;
        self.urgent = false;
        self.again = false;
        self.hinted = None;
        if repeats && self.sendings.back().is_some_and(|last| last.number == self.last_number) {
            self.sendings.pop_back();
        }
        if self.sendings.len() >= MAX_OUTSTANDING {
            self.sendings.pop_front();
        }
        self.sendings.push_back(Sending { number: self.last_number, sent: now, counts_after: None });
        self.last_number
    }

    /// Confirms the newest sending whose answer counts by now.
    fn settle(&mut self, now: Reading) {
        let early = planted(Bug::CountedBeforeItems);
        let counts =
            |sending: &Sending| sending.counts_after.is_some_and(|after| early || after <= self.processed);
        let Some(place) = self.sendings.iter().rposition(counts) else { return };
        let Sending { number, sent, .. } = self.sendings[place];
        self.sendings.drain(..=place);
        self.confirmed = if planted(Bug::DeadlineFromReceipt) { now } else { sent };
        self.confirmed_number = number;
        self.awaiting = false;
        self.urgent |= core::mem::take(&mut self.again);
        self.retrying = None;
        if self.uncertain.is_some_and(|uncertain| number >= uncertain.needs) {
            self.uncertain = None;
        }
        // The clocks may have come apart again since this sending.
        self.observe(now);
    }
}

fn interval(numbers: &Numbers, jitter: Fraction) -> Duration {
    let interval = numbers.renew_every().duration();
    match numbers.schedule() {
        Schedule::Even | Schedule::Halves => shortened(interval, jitter),
        Schedule::Fixed => interval,
    }
}

fn shortened(length: Duration, jitter: Fraction) -> Duration {
    length - jitter.of(length * JITTER_PERCENT / 100)
}
