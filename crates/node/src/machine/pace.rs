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
