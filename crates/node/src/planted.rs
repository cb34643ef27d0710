//! What known bugs of the node keep in mind: see `leasehold_core::planted`. Without feature `planted` it stays empty.

use leasehold_core::LogTime;
use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};

use crate::clock::{LogClock, STALL_CAP};

/// What a bug keeps that a node must discard.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The clock of a leadership that is over.
    clock: Option<LogClock>,
    /// The stamp for the next entry, taken when the one before was proposed.
    stamp: Option<LogTime>,
}

impl Kept {
    /// A turn of a node that may not lead.
    pub(crate) fn turn(&mut self, now: Reading) {
        if let Some(clock) = &mut self.clock {
            clock.turn(now, STALL_CAP);
        }
    }

    /// A leadership is over.
    pub(crate) fn over(&mut self, clock: &LogClock) {
        self.stamp = None;
        if planted(Bug::OldClockKept) || planted(Bug::StampByDeposedLeader) {
            self.clock = Some(clock.clone());
        }
    }

    /// The clock to lead with.
    pub(crate) fn clock(&mut self, right: LogClock) -> LogClock {
        let kept = self.clock.take().filter(|_| planted(Bug::OldClockKept));
        kept.filter(|kept| kept.stamp() >= right.stamp()).unwrap_or(right)
    }

    /// The stamp of a leader that was deposed, once.
    pub(crate) fn deposed_stamp(&mut self) -> Option<LogTime> {
        self.clock.take_if(|_| planted(Bug::StampByDeposedLeader)).map(|clock| clock.stamp())
    }

    /// The stamp for an entry that is proposed now.
    pub(crate) fn stamp(&mut self, right: LogTime) -> LogTime {
        if !planted(Bug::StampBeforeBatch) {
            return right;
        }
        self.stamp.replace(right).unwrap_or(right)
    }
}
