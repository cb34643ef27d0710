//! What a driver measures of itself, of its connection and of the clocks, all the time.
//!
//! Everything here costs the same however much was measured, and the lock is held for copies and sums alone: an application that looks at
//! its figures does not keep a renewal waiting. Nothing here is asked by whoever decides.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::holder::{Reading, Standing};
use leasehold_core::measure::{Broken, ClockRates, Pauses, RoundTrips, Said, judge};
use leasehold_core::numbers::Numbers;
use tokio::sync::broadcast;

use crate::figures::{Figures, Quantiles};
use crate::time::Time;

/// Live figures are of the last one to two times this: long enough for a dozen renewals of the default ttl, short enough to see what has become
/// good again.
pub(crate) const GENERATION: Duration = Duration::from_secs(60);
/// How often the clocks are compared and the figures judged.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Sets of numbers that are judged. A program has one or two; one that has very many has sessions of every kind among the first.
const MAX_JUDGED: usize = 16;
/// Warnings that a slow reader may be behind.
const WARNINGS_KEPT: usize = 16;
/// A round trip during which this process stood still for longer than this, and for more than half of it, says nothing of the store.
const OWN_PAUSE: Duration = Duration::from_millis(10);

/// The figures of one driver, for it and for its handles.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    shared: Arc<Mutex<Gauges>>,
    looked: Reading,
}

/// When a renewal was sent, and for how long this process had stood still by then in all.
#[derive(Debug, Clone, Copy)]
pub(in crate::driver) struct Sent {
    at: Reading,
    paused: Duration,
}

impl Sent {
    /// How long ago that was.
    pub(super) fn ago(self, now: Reading) -> Duration {
        now.since(self.at).greater()
    }
}

/// How a session stands that does not stand well, and since when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stood {
    kind: Option<Unwell>,
    since: Reading,
}

/// In the order of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unwell {
    Retrying,
    Uncertain,
    Lapsed,
}

#[derive(Debug)]
struct Gauges {
    round_trips: RoundTrips,
    pauses: Pauses,
    clocks: ClockRates,
    sent: u64,
    confirmed: u64,
    lost: u64,
    /// The first renewal since one was last answered.
    waiting: Option<Sent>,
    /// The longest that one waited in vain.
    unanswered: Duration,
    /// How many sessions stand how now, and how long all did, up to a moment.
    standing: [u32; 3],
    stood: [Duration; 3],
    counted: Reading,
    /// Numbers of the sessions, and how many have them.
    in_use: Vec<(Numbers, u32)>,
    said: [Said; Broken::NAMES.len()],
    last_warning: Option<Broken>,
    /// Gone with the driver.
    warnings: Option<broadcast::Sender<Broken>>,
}

impl Meter {
    pub(crate) fn new(time: &Time, generation: Duration) -> Self {
        let clocks = time.measure();
        let now = clocks.reading;
        let gauges = Gauges {
            round_trips: RoundTrips::new(generation, now),
            pauses: Pauses::new(generation, now),
            clocks: ClockRates::new(clocks),
            sent: 0,
            confirmed: 0,
            lost: 0,
            waiting: None,
            unanswered: Duration::ZERO,
            standing: [0; 3],
            stood: [Duration::ZERO; 3],
            counted: now,
            in_use: Vec::new(),
            said: Default::default(),
            last_warning: None,
            warnings: Some(broadcast::Sender::new(WARNINGS_KEPT)),
        };
        Self { shared: Arc::new(Mutex::new(gauges)), looked: now }
    }

    /// The driver slept since a reading and was to wake after `asked`, or sooner for a message.
    pub(super) fn woke(&self, since: Reading, asked: Duration, now: Reading) {
        self.lock().pauses.slept(asked, now.since(since).greater(), now);
    }

    /// A renewal is sent.
    pub(super) fn sent(&self, now: Reading) -> Sent {
        let mut gauges = self.lock();
        gauges.sent += 1;
        let sent = Sent { at: now, paused: gauges.pauses.total() };
        gauges.waiting.get_or_insert(sent);
        sent
    }

    /// The renewal was confirmed.
    pub(super) fn confirmed(&self, sent: Sent, now: Reading) {
        let mut gauges = self.lock();
        gauges.confirmed += 1;
        gauges.answered(sent, now);
        if let Some(took) = gauges.waited(sent, now) {
            gauges.round_trips.add(took, now);
        }
    }

    /// The renewal was answered otherwise.
    pub(super) fn answered(&self, sent: Sent, now: Reading) {
        self.lock().answered(sent, now);
    }

    /// So many renewals will not be answered.
    pub(super) fn lost(&self, count: usize) {
        self.lock().lost += u64::try_from(count).unwrap_or(u64::MAX);
    }

    /// A session with these numbers is opened.
    pub(super) fn opened(&self, numbers: &Numbers) {
        let mut gauges = self.lock();
        if let Some((_, count)) = gauges.in_use.iter_mut().find(|(known, _)| known == numbers) {
            *count += 1;
        } else if gauges.in_use.len() < MAX_JUDGED {
            gauges.in_use.push((*numbers, 1));
        }
    }

    /// A session with these numbers is over.
    pub(super) fn closed(&self, numbers: &Numbers, stood: Option<Stood>, now: Reading) {
        let mut gauges = self.lock();
        if let Some(place) = gauges.in_use.iter().position(|(known, _)| known == numbers) {
            gauges.in_use[place].1 -= 1;
            if gauges.in_use[place].1 == 0 {
                gauges.in_use.swap_remove(place);
            }
        }
        if gauges.in_use.is_empty() {
            // Nobody renews any more.
            gauges.stop_waiting(now);
        }
        gauges.count_until(now);
        gauges.leave(stood);
    }

    /// A session stands differently.
    pub(super) fn stands(&self, before: Option<Stood>, standing: &Standing, now: Reading) -> Stood {
        let (kind, noticed) = match standing {
            Standing::Held { .. } => (None, now),
            Standing::Retrying { since, .. } => (Some(Unwell::Retrying), *since),
            Standing::Uncertain { since } => (Some(Unwell::Uncertain), *since),
            Standing::Lapsed { since } => (Some(Unwell::Lapsed), *since),
        };
        let mut gauges = self.lock();
        gauges.count_until(now);
        gauges.leave(before);
        // It may be noticed late, by a process that was stopped: what was counted for the state before belongs to this one.
        let since = before.map_or(noticed, |before| noticed.latest(before.since));
        let late = now.since(since).smaller();
        if let Some(before) = before.and_then(|before| before.kind) {
            let stood = &mut gauges.stood[before as usize];
            *stood = stood.saturating_sub(late);
        }
        if let Some(kind) = kind {
            gauges.standing[kind as usize] += 1;
            gauges.stood[kind as usize] += late;
        }
        Stood { kind, since }
    }

    /// Brings everything up to date; once a second the clocks are compared and the figures judged.
    pub(super) fn look(&mut self, time: &Time, now: Reading) {
        let mut gauges = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        gauges.count_until(now);
        if now.since(self.looked).greater() < LOOK_EVERY {
            return;
        }
        self.looked = now;
        gauges.clocks.look(time.measure());
        gauges.round_trips.age(now);
        gauges.pauses.age(now);
        gauges.warn(now);
    }

    pub(crate) fn figures(&self) -> Figures {
        self.lock().figures()
    }

    /// Warnings from now on; nothing if the driver is gone.
    pub(crate) fn warnings(&self) -> Option<broadcast::Receiver<Broken>> {
        self.lock().warnings.as_ref().map(broadcast::Sender::subscribe)
    }

    /// The driver is gone: nobody warns any more.
    pub(super) fn end(&self) {
        self.lock().warnings = None;
    }

    fn lock(&self) -> MutexGuard<'_, Gauges> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gauges {
    /// Counts how long sessions stood, all of them in one step.
    fn count_until(&mut self, now: Reading) {
        let passed = now.since(self.counted).smaller();
        for (stood, sessions) in self.stood.iter_mut().zip(self.standing) {
            *stood = stood.saturating_add(passed.saturating_mul(sessions));
        }
        self.counted = self.counted.latest(now);
    }

    /// How long a renewal has waited for the store, unless it was this process that stood still.
    fn waited(&self, sent: Sent, now: Reading) -> Option<Duration> {
        let waited = now.since(sent.at).greater();
        let own = self.pauses.total().saturating_sub(sent.paused);
        (own <= OWN_PAUSE || own <= waited / 2).then_some(waited)
    }

    /// A renewal was answered. If an earlier one was not, that one has waited until now.
    fn answered(&mut self, sent: Sent, now: Reading) {
        if self.waiting.is_some_and(|waiting| waiting.at == sent.at) {
            self.waiting = None;
        } else {
            self.stop_waiting(now);
        }
    }

    fn stop_waiting(&mut self, now: Reading) {
        let waited = self.waiting.take().and_then(|waiting| self.waited(waiting, now));
        self.unanswered = self.unanswered.max(waited.unwrap_or_default());
    }

    fn leave(&mut self, stood: Option<Stood>) {
        if let Some(kind) = stood.and_then(|stood| stood.kind) {
            let count = &mut self.standing[kind as usize];
            *count = count.saturating_sub(1);
        }
    }

    /// Says what is broken now and was not before.
    fn warn(&mut self, now: Reading) {
        let measured = self.figures().measured();
        let mut broken: [Option<Broken>; Broken::NAMES.len()] = [None; Broken::NAMES.len()];
        for (numbers, _) in &self.in_use {
            for found in judge(numbers, &measured) {
                broken[found.kind()].get_or_insert(found);
            }
        }
        for (said, broken) in self.said.iter_mut().zip(broken) {
            if said.look(broken.is_some(), now)
                && let Some(broken) = broken
            {
                self.last_warning = Some(broken);
                if let Some(warnings) = &self.warnings {
                    let _ = warnings.send(broken);
                }
            }
        }
    }

    fn figures(&self) -> Figures {
        let trips = &self.round_trips;
        let [retrying, uncertain, lapsed] = self.stood;
        let waiting = self.waiting.and_then(|waiting| self.waited(waiting, self.counted));
        Figures {
            round_trips: Quantiles::of(trips),
            round_trips_total: trips.total(),
            round_trips_time: trips.total_time(),
            longest_pause: self.pauses.longest(),
            longest_pause_ever: self.pauses.longest_ever(),
            pauses_over: self.pauses.over(),
            rates: self.clocks.rates(),
            wall_steps: self.clocks.steps(),
            wall_stepped: self.clocks.stepped(),
            last_wall_step: self.clocks.last_step(),
            suspended: self.clocks.suspended(),
            longest_unanswered: self.unanswered.max(waiting.unwrap_or_default()),
            renewals_sent: self.sent,
            renewals_confirmed: self.confirmed,
            renewals_lost: self.lost,
            retrying,
            uncertain,
            lapsed,
            last_warning: self.last_warning,
        }
    }
}
