//! When log time stood where it stands, by the clocks of this machine.
//!
//! What others sent while this process stood still is taken in afterwards, as if it had just been sent: that a leader was heard says
//! nothing then of when it led. Entries that came on time do: what has passed since one of them, less what log time moved since,
//! is how long log time has stood still.

use leasehold_core::holder::Reading;
use leasehold_core::{LogTime, Millis};

/// Entries that came on time are compared with for so long: log time falls behind a little all the time, and leaders change.
const COMPARED: Millis = Millis::new(5_000);

/// The entries of late that came earliest for their stamp, and when: of these seconds of log time, and of those before.
#[derive(Debug, Default)]
pub(super) struct Pace {
    since: LogTime,
    now: Option<(LogTime, Reading)>,
    before: Option<(LogTime, Reading)>,
}

impl Pace {
    /// An entry with this stamp has been applied now.
    pub(super) fn note(&mut self, stamp: LogTime, now: Reading) {
        if stamp.since(self.since) > COMPARED {
            (self.since, self.before, self.now) = (stamp, self.now, None);
        }
        if self.now.is_none_or(|on_time| stood_still(on_time, stamp, now) == Millis::ZERO) {
            self.now = Some((stamp, now));
        }
    }

    /// The log says that log time stood still before this point.
    pub(super) fn shift(&mut self, length: Option<Millis>) {
        let Some(length) = length else {
            *self = Self::default();
            return;
        };
        for (_, then) in self.now.iter_mut().chain(&mut self.before) {
            *then = then.plus(length.duration());
        }
    }

    /// For how long log time has stood at `stamp`; nothing if no entry was seen on its way.
    pub(super) fn stood_still(&self, stamp: LogTime, now: Reading) -> Option<Millis> {
        self.now.into_iter().chain(self.before).map(|on_time| stood_still(on_time, stamp, now)).max()
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
