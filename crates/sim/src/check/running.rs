//! When the service ran: who stamped which entry when, where loops and disks stood still, and when leaderships ended. From this
//! follows how much of true time log time may have lost between two entries, and not a millisecond more.

use std::collections::{BTreeMap, HashMap};

use super::Run;
use crate::record::{Event, LogId, NodeId, TrueTime};
use crate::trace::MILLI;

/// A leader's loop wakes at least so often: 20 ms by a clock within the bound, and the time to wake.
pub const TURN: u64 = 22 * MILLI;
/// A handover is given up after two seconds of the leader's clock. Nothing is proposed meanwhile.
const LONGEST_HANDOVER: u64 = 2_200 * MILLI;

/// One committed entry with a time of its own.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Its place.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// Who stamped it.
    pub node: NodeId,
    /// When.
    pub at: TrueTime,
    /// Since when that node had nothing on its way to the disk.
    pub free: TrueTime,
    /// How long before that its loop had taken its last turn.
    pub idle: u64,
    /// When it was first applied anywhere.
    pub applied: TrueTime,
    /// Whether it is the first of its leadership.
    pub opening: bool,
}

/// A stretch in which a loop or a disk stood still.
#[derive(Debug, Clone, Copy)]
struct Stood {
    since: TrueTime,
    until: TrueTime,
    lost: u64,
}

/// Who stamped an entry, when, since when it was free to, and how long after its last turn.
type Stamped = (NodeId, TrueTime, TrueTime, u64);

/// When the service ran.
#[derive(Debug, Default)]
pub struct Running {
    stamps: BTreeMap<LogId, Vec<Stamp>>,
    /// Every sending of a leader to its log, committed or not.
    tried: HashMap<(LogId, u64), Vec<TrueTime>>,
    stood: HashMap<NodeId, Vec<Stood>>,
    /// When a node was gone, led no more or was asked to stop.
    ends: HashMap<NodeId, Vec<TrueTime>>,
    handovers: Vec<TrueTime>,
    /// When a node began to lead: from then on log time goes on.
    elected: HashMap<(NodeId, u64), TrueTime>,
}

impl Running {
    /// Reads a record.
    pub fn of(run: Run<'_>) -> Self {
        let mut running = Self::default();
        let mut stamped: HashMap<(LogId, u64, u64), Stamped> = HashMap::new();
        for (now, event) in &run.record.events {
            match *event {
                Event::Stamped { log, node, index, term, free, idle } => {
                    stamped.insert((log, index, term), (node, *now, free, idle));
                    running.tried.entry((log, term)).or_default().push(*now);
                }
                Event::Stood { node, since, lost } => {
                    let stood = Stood { since, until: *now, lost };
                    running.stood.entry(node).or_default().push(stood);
                }
                Event::Stopped { node, .. } | Event::LeadsNoMore { node, .. } | Event::Draining { node } => {
                    running.ends.entry(node).or_default().push(*now);
                }
                Event::HandingOver => running.handovers.push(*now),
                Event::Leads { node, term } => {
                    running.elected.insert((node, term), *now);
                }
                _ => {}
            }
        }
        for (id, log) in run.record.lives() {
            let mut stamps: Vec<Stamp> = Vec::new();
            for entry in log.entries.iter().filter(|entry| entry.entry.is_some()) {
                let (index, term, applied) = (entry.index, entry.term, entry.applied);
                let Some((node, at, free, idle)) = stamped.get(&(id, index, term)).copied() else { continue };
                let opening = stamps.last().is_none_or(|last| last.term != term);
                stamps.push(Stamp { index, term, node, at, free, idle, applied, opening });
            }
            running.stamps.insert(id, stamps);
        }
        running
    }

    /// The stamped entries of a log from one index to another, both included.
    pub fn stamps(&self, log: LogId, first: u64, last: u64) -> &[Stamp] {
        let Some(all) = self.stamps.get(&log) else { return &[] };
        let from = all.partition_point(|stamp| stamp.index < first);
        let to = all.partition_point(|stamp| stamp.index <= last);
        &all[from..to.max(from)]
    }

    /// Whether a node began to lead between two points.
    pub fn led_anew(&self, from: TrueTime, to: TrueTime) -> bool {
        self.elected.values().any(|at| from <= *at && *at <= to)
    }

    /// How much loops and disks stood still between two points, wherever it was too little to be told.
    pub fn small_stalls(&self, from: TrueTime, to: TrueTime, told: u64) -> u64 {
        let small = |stood: &&Stood| stood.lost < told && stood.until > from && stood.since < to;
        self.stood.values().flatten().filter(small).map(|stood| stood.lost).sum()
    }

    /// How much of the time between two entries that follow each other need not be in the log. `step` is the most that a leader
    /// leaves between two entries.
    pub fn excused(&self, log: LogId, one: &Stamp, two: &Stamp, step: u64) -> u64 {
        if one.term == two.term {
            return self.stood(one.node, one.at, two.at);
        }
        // Whoever is elected begins as soon as nothing is on its way to its disk, and does not wait until somebody asks for something.
        let elected = self.elected.get(&(two.node, two.term)).copied().unwrap_or(two.at);
        let mut able = elected.max(two.free).plus(TURN);
        if self.handing_over(elected, two.at) > 0 {
            able = two.at;
        }
        let able = able.min(two.at).max(one.at);
        self.down(log, one, able, step) + self.stood_across(two.node, able, two.at)
    }

    /// Time that a leader lost between two points because its loop or its disk stood still.
    pub fn stood(&self, node: NodeId, from: TrueTime, to: TrueTime) -> u64 {
        let own = self.stood.get(&node).map_or(&[][..], Vec::as_slice);
        own.iter().filter(|stood| stood.since >= from && stood.until <= to).map(|stood| stood.lost).sum()
    }

    /// The same, with stretches that began before.
    fn stood_across(&self, node: NodeId, from: TrueTime, to: TrueTime) -> u64 {
        let own = self.stood.get(&node).map_or(&[][..], Vec::as_slice);
        let lost = |stood: &Stood| stood.lost.min(stood.until.min(to).since(stood.since.max(from)));
        own.iter().filter(|stood| stood.until > from && stood.since < to).map(lost).sum()
    }

    /// A failover: the time in which the service was not running, and what the old leader may have left unwritten.
    fn down(&self, log: LogId, last: &Stamp, next: TrueTime, step: u64) -> u64 {
        let between = |moment: &TrueTime| *moment > last.at && *moment < next;
        let ended = self.ends.get(&last.node).into_iter().flatten().copied().find(between);
        // What it had sent to its log without success shows that it could do no more.
        let tried = self.tried.get(&(log, last.term)).into_iter().flatten().copied().find(between);
        // What was taken in is finished first: the last entry may be one of a leader that is about to hand over.
        let about_to = |began: &TrueTime| *began <= last.at && began.plus(LONGEST_HANDOVER) > last.at;
        let finishing = self.handovers.iter().any(about_to).then_some(last.at);
        let handed_over = finishing.or_else(|| self.handovers.iter().copied().find(between));
        let stalls = self.stood.get(&last.node).map_or(&[][..], Vec::as_slice);
        let stalls = stalls.iter().filter(|stood| stood.until > last.at && stood.since < next);
        let stalled = stalls.clone().filter(|stood| stood.until >= next).map(|stood| stood.since).min();
        let ran_until = [ended, tried, handed_over, stalled].into_iter().flatten().min().unwrap_or(next);
        let stood: u64 = stalls
            .filter(|stood| stood.since < ran_until)
            .map(|stood| stood.until.min(ran_until).since(stood.since.max(last.at)))
            .sum();
        let unwritten = step + TURN + last.applied.since(last.at);
        (next.since(ran_until) + stood + unwritten).min(next.since(last.at))
    }

    /// Time between two points in which leadership may have been on its way from one node to another.
    pub fn handing_over(&self, from: TrueTime, to: TrueTime) -> u64 {
        let parts = self.handovers.iter().map(|began| {
            let end = began.plus(LONGEST_HANDOVER);
            end.min(to).since((*began).max(from))
        });
        parts.max().unwrap_or(0)
    }
}
