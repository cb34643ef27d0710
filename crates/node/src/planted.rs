//! What known bugs of the node keep in mind: see `leasehold_core::planted`. Without feature `planted` it stays empty.

use leasehold_core::holder::Reading;
use leasehold_core::planted::{Bug, planted};
use leasehold_core::{Due, LeaseTable, LogTime, Millis};

use crate::clock::{LogClock, STALL_CAP};

/// How long before its end a bug names a session that is to be tidied away.
const NAMED_AHEAD: Millis = Millis::new(100);

/// What a bug keeps that a node must discard.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The clock of a leadership that is over.
    clock: Option<LogClock>,
    /// The stamp for the next entry, taken when the one before was proposed.
    stamp: Option<LogTime>,
    /// Sessions that are to be tidied away, and the stamp at which that is proposed.
    named: Vec<(LogTime, Due)>,
}

impl Kept {
    /// A turn of a node that may not lead.
    pub(crate) fn turn(&mut self, now: Reading) {
        if keeps_clock()
            && let Some(clock) = &mut self.clock
        {
            clock.turn(now, STALL_CAP);
        }
    }

    /// A leadership is over.
    pub(crate) fn over(&mut self, clock: &LogClock) {
        self.stamp = None;
        self.named.clear();
        if keeps_clock() {
            self.clock = Some(clock.clone());
        }
    }

    /// The clock to lead with.
    pub(crate) fn clock(&mut self, right: LogClock) -> LogClock {
        if !planted(Bug::OldClockKept) {
            self.clock = None;
            return right;
        }
        self.clock.take().filter(|kept| kept.stamp() >= right.stamp()).unwrap_or(right)
    }

    /// The stamp of a leader that was deposed, once.
    pub(crate) fn deposed_stamp(&mut self) -> Option<LogTime> {
        if !planted(Bug::StampByDeposedLeader) {
            return None;
        }
        self.clock.take().map(|clock| clock.stamp())
    }

    /// The stamp for an entry that is proposed now.
    pub(crate) fn stamp(&mut self, right: LogTime) -> LogTime {
        if !planted(Bug::StampBeforeBatch) {
            return right;
        }
        self.stamp.replace(right).unwrap_or(right)
    }

    /// What is to be tidied away at `stamp`, though it was named some time ago and may have been renewed since.
    pub(crate) fn named(&mut self, table: &mut LeaseTable, stamp: LogTime) -> Vec<Due> {
        if !planted(Bug::ExpiryUnguarded) {
            return Vec::new();
        }
        let ahead = stamp.plus(NAMED_AHEAD);
        if table.next_due().is_some_and(|due| due < ahead) {
            let named = |due: &Due| self.named.iter().any(|(_, other)| other == due);
            let sessions = table.due(ahead).into_iter().filter(|due| matches!(due, Due::Session(_)));
            let new: Vec<Due> = sessions.filter(|due| !named(due)).collect();
            self.named.extend(new.into_iter().map(|due| (ahead, due)));
        }
        self.named.extract_if(.., |(at, _)| *at <= stamp).map(|(_, due)| due).collect()
    }
}

/// Whether a bug keeps the clock of a leadership that is over.
fn keeps_clock() -> bool {
    planted(Bug::OldClockKept) || planted(Bug::StampByDeposedLeader)
}
