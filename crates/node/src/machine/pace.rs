//! When log time stood where it stands, by the clocks of this machine.
//!
//! What others sent while this process stood still is taken in afterwards, as if it had just been sent: that a leader was heard says
//! nothing then of when it led. Entries that came on time do: what has passed since one of them, less what log time moved since,
//! is how long log time has stood still. What a process that has just begun is sent first may be old: until it has seen some seconds of log
//! time it knows the least that this can have been.

use leasehold_core::holder::Reading;
use leasehold_core::{LogTime, Millis};

/// Entries that came on time are compared with for so long: log time falls behind a little all the time, and leaders change.
const COMPARED: Millis = Millis::new(5_000);

/// The entries of late that came earliest for their stamp, and when: of these seconds of log time, and of those before.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// What was there when this began, and when that was.
    first: Option<(LogTime, Reading)>,
    /// Since this process began, or was sent a snapshot: none of the entries seen so far need have come on time.
    unsure_since: Option<Reading>,
    newest: LogTime,
    since: LogTime,
    now: Option<(LogTime, Reading)>,
    before: Option<(LogTime, Reading)>,
}

impl Pace {
    /// Entries up to this stamp are there now, whenever they came.
    pub(super) fn begun(stamp: LogTime, now: Reading) -> Self {
        Self {
            first: Some((stamp, now)),
            unsure_since: Some(now),
            newest: stamp,
            since: stamp,
            ..Self::default()
        }
    }

    /// An entry with this stamp has been applied now.
    pub(super) fn note(&mut self, stamp: LogTime, now: Reading) {
        if stamp.since(self.since) > COMPARED {
            // What is sent first is old, however many seconds of log time it has.
            let came_late = |began: &Reading| {
                let seen = self.now.map(|(_, then)| Millis::from_duration(then.since(*began).smaller()));
                seen.is_none_or(|seen| seen < COMPARED)
            };
            self.unsure_since = self.unsure_since.filter(came_late);
            (self.since, self.before, self.now) = (stamp, self.now, None);
        }
        if self.now.is_none_or(|on_time| stood_still(on_time, stamp, now) == Millis::ZERO) {
            self.now = Some((stamp, now));
        }
        self.newest = self.newest.max(stamp);
    }

    /// The log says that log time stood still before this point.
    pub(super) fn shift(&mut self, length: Option<Millis>) {
        let Some(length) = length else {
            let Self { unsure_since, newest, .. } = *self;
            *self = Self { unsure_since, newest, since: newest, ..Self::default() };
            return;
        };
        for (_, then) in self.first.iter_mut().chain(&mut self.now).chain(&mut self.before) {
            *then = then.plus(length.duration());
        }
    }

    /// For how long log time has stood at `stamp`, at least; nothing if no entry was seen on its way.
    pub(super) fn stood_still(&self, stamp: LogTime, now: Reading) -> Option<Millis> {
        let seen = self.first.into_iter().chain(self.now).chain(self.before);
        seen.map(|on_time| stood_still(on_time, stamp, now)).max()
    }

    /// Whether that is all: one of the entries came on time.
    pub(super) fn is_sure(&self) -> bool {
        self.unsure_since.is_none()
    }
}

fn stood_still((at, then): (LogTime, Reading), stamp: LogTime, now: Reading) -> Millis {
    Millis::from_duration(now.since(then).smaller()).saturating_sub(stamp.since(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Reading {
        Reading { boot: millis * 1_000_000, raw: millis * 1_000_000 }
    }

    fn stood(pace: &Pace, stamp: u64, now: u64) -> Option<u64> {
        pace.stood_still(LogTime::new(stamp), at(now)).map(Millis::get)
    }

    #[test]
    fn what_comes_in_a_burst_does_not_hide_for_how_long_it_was_on_its_way() {
        let mut pace = Pace::default();
        assert_eq!(stood(&pace, 0, 0), None);
        (1..=3).for_each(|second| pace.note(LogTime::new(second * 1_000), at(second * 1_000 + 5)));
        // This process stood still, and what was sent meanwhile comes at once.
        (4..=7).for_each(|second| pace.note(LogTime::new(second * 1_000), at(12_000)));
        assert_eq!(stood(&pace, 7_000, 12_000), Some(4_995));
        assert_eq!(stood(&pace, 7_000, 12_500), Some(5_495));
        assert!(pace.is_sure());
    }

    #[test]
    fn a_process_that_has_just_begun_knows_the_least_that_it_was() {
        let mut pace = Pace::begun(LogTime::new(7_000), at(1_000));
        assert_eq!((stood(&pace, 7_000, 3_000), pace.is_sure()), (Some(2_000), false));
        // What it is sent first was stamped before it began.
        pace.note(LogTime::new(7_500), at(3_000));
        assert_eq!((stood(&pace, 7_500, 4_000), pace.is_sure()), (Some(2_500), false));
        (8..=13).for_each(|second| pace.note(LogTime::new(second * 1_000), at(second * 1_000 - 5_000)));
        assert!(pace.is_sure());
    }

    #[test]
    fn what_the_log_tells_is_not_told_again() {
        let mut pace = Pace::default();
        pace.note(LogTime::new(1_000), at(1_000));
        pace.shift(Some(Millis::new(5_000)));
        pace.note(LogTime::new(1_100), at(6_100));
        assert_eq!(stood(&pace, 1_100, 6_200), Some(100));
        pace.shift(None);
        assert_eq!(stood(&pace, 1_100, 6_200), None, "nobody knows how long that was");
    }
}
