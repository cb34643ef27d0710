//! Where a node's loop or disk stood still, counted here once more from what the rule says: a turn of the loop, and the time in which a
//! write or an entry is on its way, move log time by at most 100 ms each.

use leasehold_core::holder::Reading;
use leasehold_node::Input;

use crate::record::{Event, NodeId, TrueTime};
use crate::trace::{MICRO, MILLI};
use crate::world::World;

/// The most that one turn, or an entry on its way, moves log time.
const CAP: u64 = 100 * MILLI;
/// Less than this is the rounding of clocks.
const LEAST: u64 = MICRO;

/// What is known of a loop and what it has on its way to the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::world) struct Stalls {
    /// The last turn: in true time, and by its clocks.
    last: Option<(u64, Reading)>,
    /// Writes on their way to the disk.
    writes: u32,
    /// The entry that was stamped here and is not committed.
    entry: Option<u64>,
    /// What all that may still add.
    allowance: u64,
    /// Since when nothing is on its way.
    free: u64,
    /// Lost since this point and not told of yet.
    lost: Option<(u64, u64)>,
    /// Between the last two turns.
    idle: u64,
}

impl Stalls {
    const fn is_busy(&self) -> bool {
        self.writes > 0 || self.entry.is_some()
    }

    pub(super) const fn wrote(&mut self, now: u64) {
        if !self.is_busy() {
            self.allowance = CAP;
            // What takes long begins here, and so does what it costs.
            self.lost = Some((now, 0));
        }
        self.writes += 1;
    }

    pub(in crate::world) const fn free_and_idle(&self) -> (u64, u64) {
        (self.free, self.idle)
    }

    /// The loop wakes at `now`, or is seen to stand still.
    fn passes(&mut self, now: u64, reading: Reading, drift_ppm: u32) {
        let Some((last, before)) = self.last.replace((now, reading)) else { return };
        self.idle = now - last;
        let seen = u64::try_from(reading.since(before).smaller().as_nanos()).unwrap_or(u64::MAX);
        let most = if self.is_busy() { self.allowance } else { CAP };
        let counted = seen.min(most);
        if self.is_busy() {
            self.allowance -= counted;
        }
        // The slowest clock within the bound would have shown this much.
        let owed = u128::from(self.idle) * u128::from(1_000_000 - drift_ppm) / 1_000_000;
        let lost = u64::try_from(owed).unwrap_or(u64::MAX).saturating_sub(counted);
        if lost > LEAST {
            let (since, sum) = self.lost.unwrap_or((last, 0));
            self.lost = Some((since, sum + lost));
        }
    }
}

impl World {
    /// The loop of a node takes a turn with what is in its inbox.
    pub(super) fn count_turn(&mut self, at: usize) {
        let (now, drift) = (self.now, self.plan.drift_ppm);
        let own = &mut self.processes[at];
        let reading = own.clock.read(now);
        own.stalls.passes(now, reading, drift);
        let written = own.inbox.iter().filter(|input| matches!(input, Input::Written { .. })).count();
        if written > 0 {
            own.stalls.writes = own.stalls.writes.saturating_sub(u32::try_from(written).expect("a few"));
            if !own.stalls.is_busy() {
                own.stalls.free = now;
            }
        }
        if !own.stalls.is_busy() {
            self.tell_stall(at);
        }
    }

    /// A leader stamps an entry: whatever was on its way before has arrived.
    pub(in crate::world) fn count_stamp(&mut self, at: usize, index: u64) {
        if self.processes[at].stalls.entry.take().is_some() {
            self.processes[at].stalls.free = self.now;
        }
        self.tell_stall(at);
        let stalls = &mut self.processes[at].stalls;
        stalls.entry = Some(index);
        stalls.allowance = CAP;
        stalls.lost = Some((self.now, 0));
    }

    /// A turn is over: an entry that is applied, or that its leader has given up, is not on its way any more.
    pub(in crate::world) fn count_applied(&mut self, at: usize, applied: u64, leads: bool) {
        let stalls = &mut self.processes[at].stalls;
        if stalls.entry.is_some_and(|entry| entry <= applied || !leads) {
            stalls.entry = None;
            if !stalls.is_busy() {
                stalls.free = self.now;
                self.tell_stall(at);
            }
        }
    }

    /// The process is gone, or the run is over: what stood still until now is told.
    pub(in crate::world) fn end_stalls(&mut self, at: usize) {
        let (now, drift) = (self.now, self.plan.drift_ppm);
        let own = &mut self.processes[at];
        let reading = own.clock.read(now);
        own.stalls.passes(now, reading, drift);
        self.tell_stall(at);
        self.processes[at].stalls = Stalls::default();
    }

    fn tell_stall(&mut self, at: usize) {
        let own = &mut self.processes[at];
        let (node, now) = (NodeId(own.member.id.0), TrueTime(self.now));
        if let Some((since, lost)) = own.stalls.lost.take().filter(|(_, lost)| *lost > 0) {
            let since = TrueTime(since);
            self.notes.record.push(now, Event::Stood { node, since, lost });
        }
    }
}
