//! What the promises do not cover: clocks beyond the bound, files rolled back, restores told wrongly.
//!
//! An excuse reaches as far as what was wrong can still be believed: a clock that was wrong up to some moment has touched what was
//! sent before that moment, and nobody believes in that for longer than the longest ttl.

use std::collections::BTreeMap;

use crate::record::{ClientId, Event, Fault, Machine, NodeId, Record, Stopped, TrueTime};

/// A stretch of true time, its end not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: TrueTime,
    /// Where it is over.
    pub to: TrueTime,
}

impl Span {
    /// Whether a moment lies in it.
    pub fn has(&self, moment: TrueTime) -> bool {
        self.from <= moment && moment < self.to
    }

    /// Nanoseconds that it shares with another.
    pub fn shared(&self, other: &Self) -> u64 {
        self.to.min(other.to).since(self.from.max(other.from))
    }
}

/// What is excused, and the faults themselves.
#[derive(Debug, Default)]
pub struct Excuses {
    clocks: Vec<(Machine, Span)>,
    /// From here on the files of a node were those of an earlier time.
    pub rolled_back: Option<TrueTime>,
    /// The same, if the log broke apart afterwards: see `note_split`.
    pub files: Option<TrueTime>,
    /// From here on an operator had said what was not so.
    pub told_wrongly: Option<TrueTime>,
    /// Every fault: to whom, what, when.
    pub faults: Vec<(Machine, Fault, Span)>,
    /// When the last fault was over, if it was said.
    pub stopped: Option<TrueTime>,
}

impl Excuses {
    /// Reads the faults of a record.
    pub fn of(record: &Record) -> Self {
        let mut excuses = Self::default();
        let mut open: Vec<(Machine, Fault, TrueTime, bool)> = Vec::new();
        // Beyond the longest belief that a clock within twice the bound can have.
        let reach = longest_belief(record);
        let close = |excuses: &mut Self, (machine, what, from, within): (_, _, _, bool), to: TrueTime| {
            excuses.faults.push((machine, what, Span { from, to }));
            if what == Fault::Clock && !within {
                excuses.clocks.push((machine, Span { from, to: to.plus(reach) }));
            }
        };
        for (now, event) in &record.events {
            match *event {
                Event::Fault { machine, what, within, begins } => {
                    if what == Fault::RolledBack && !within && begins {
                        excuses.rolled_back.get_or_insert(*now);
                    }
                    if begins {
                        open.push((machine, what, *now, within));
                    } else if let Some(place) = open.iter().rposition(|o| (o.0, o.1) == (machine, what)) {
                        close(&mut excuses, open.remove(place), *now);
                    }
                }
                Event::Restored { truthful: false, .. } => {
                    excuses.told_wrongly.get_or_insert(*now);
                }
                Event::FaultsStopped => {
                    excuses.stopped.get_or_insert(*now);
                }
                _ => {}
            }
        }
        let end = record.end();
        for fault in open {
            // Faults of one moment are never said to be over; a clock that stays wrong is wrong to the end.
            let to = if fault.1 == Fault::Clock { end } else { fault.2 };
            close(&mut excuses, fault, to);
        }
        excuses.note_split(record);
        excuses
    }

    /// A node that was rolled back has forgotten entries that it acknowledged and votes. Everything that clients are told comes from
    /// committed entries, so as long as there is one committed log, all that was promised still holds, and is judged. Where what
    /// was forgotten matters there are two, and that leaves traces: two leaders of one term, two entries applied in one place, or
    /// a node that finds it is not what the others are. Only then is everything excused, from the first roll-back on.
    ///
    /// Reads alone need no entry: see [`Excuses::covers_reads`].
    fn note_split(&mut self, record: &Record) {
        let Some(from) = self.rolled_back else { return };
        let mut leaders: BTreeMap<u64, NodeId> = BTreeMap::new();
        let split = record.events.iter().any(|(now, event)| match *event {
            Event::Leads { node, term } => *leaders.entry(term).or_insert(node) != node,
            // Terms of a new life have nothing to do with those before.
            Event::Restored { .. } => {
                leaders.clear();
                false
            }
            Event::Applied { log, index, term, bytes, .. } if *now >= from => {
                let known = record.logs[usize::from(log.0)].entry(index);
                known.is_some_and(|known| (known.term, known.bytes) != (term, bytes))
            }
            Event::Stopped { why: Stopped::Diverged, .. } => *now >= from,
            _ => false,
        });
        self.files = split.then_some(from);
    }

    /// Whether what a client believes at a moment is covered: its clocks, and those of the nodes, kept the bound.
    pub fn covers(&self, client: Option<ClientId>, moment: TrueTime) -> bool {
        self.covers_tokens(moment)
            && !self.clocks.iter().any(|(machine, span)| {
                let concerns = match machine {
                    Machine::Client(other) => client == Some(*other),
                    Machine::Node(_) | Machine::World => true,
                };
                concerns && span.has(moment)
            })
    }

    /// Whether the clocks of nodes kept the bound at a moment, and files were what nodes had written.
    pub fn covers_nodes(&self, moment: TrueTime) -> bool {
        self.covers(None, moment)
    }

    /// The same for a whole stretch of time: what was counted wrongly anywhere in it shows at its end.
    pub fn covers_nodes_during(&self, span: &Span) -> bool {
        let of_nodes =
            self.clocks.iter().filter(|(machine, _)| matches!(machine, Machine::Node(_) | Machine::World));
        self.covers_tokens(span.to) && !of_nodes.into_iter().any(|(_, wrong)| wrong.shared(span) > 0)
    }

    /// Whether a read at a moment is fresh: whoever was rolled back may have forgotten that there is a later leader, and confirms one that was
    /// deposed in its belief. After the faults everybody has heard of the later one again.
    pub fn covers_reads(&self, moment: TrueTime, healthy: Option<TrueTime>) -> bool {
        let fooled = self.rolled_back.is_some_and(|from| from <= moment);
        !fooled || healthy.is_some_and(|healthy| healthy <= moment)
    }

    /// Whether a token was given to one holder only, up to a moment: not where there were two logs with one epoch.
    pub fn covers_tokens(&self, moment: TrueTime) -> bool {
        !self.files.into_iter().chain(self.told_wrongly).any(|from| from <= moment)
    }

    /// Whether there was one committed log, up to a moment.
    pub fn covers_files(&self, moment: TrueTime) -> bool {
        self.files.is_none_or(|from| moment < from)
    }

    /// Whether a machine was ever under a fault of this kind up to a moment.
    pub fn had(&self, machine: Machine, what: Fault, moment: TrueTime) -> bool {
        self.faults.iter().any(|(of, fault, span)| (*of, *fault) == (machine, what) && span.from <= moment)
    }
}

/// The longest ttl of the run by a clock half as fast as it should be: nobody believes longer in what was sent.
fn longest_belief(record: &Record) -> u64 {
    let ttls = record.events.iter().filter_map(|(_, event)| match event {
        Event::SessionOpened { ttl_ms, .. } => Some(*ttl_ms),
        _ => None,
    });
    ttls.max().unwrap_or(0).saturating_mul(2 * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage};
    use crate::check::{Depth, Id, check};
    use crate::record::LogId;

    const FROM: TrueTime = TrueTime(10_000_000);

    fn rolled_back() -> Stage {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        let (machine, what) = (Machine::Node(NODES[1]), Fault::RolledBack);
        stage.at(10).push(Event::Fault { machine, what, within: false, begins: true });
        stage
    }

    fn split(stage: &Stage) -> Option<TrueTime> {
        Excuses::of(&stage.record).files
    }

    #[test]
    fn a_roll_back_that_changes_nothing_excuses_reads_alone() {
        let mut stage = rolled_back();
        stage.push(Event::Leads { node: NODES[1], term: 2 });
        stage.term = 2;
        stage.at(20).open(2);
        assert_eq!(split(&stage), None);
        let excuses = Excuses::of(&stage.record);
        assert!(excuses.covers_nodes(stage.now) && excuses.covers_tokens(stage.now));
        assert!(excuses.covers_reads(TrueTime::ZERO, None) && !excuses.covers_reads(FROM, None));
        assert!(excuses.covers_reads(stage.now, Some(stage.now)));
    }

    #[test]
    fn a_restore_that_is_told_wrongly_excuses_nothing_before_it() {
        for (restored, violations) in [(60_000, 1), (400, 0)] {
            let mut stage = Stage::new();
            let (first, second) = (stage.open(1), stage.open(2));
            let token = stage.acquire(first).unwrap();
            stage.acquire(second).unwrap_err();
            stage.at(500).renew(second, &[]);
            stage.release(first, token).unwrap();
            stage.believe(first, token, Some(TrueTime(800_000_000)));
            let log = stage.record.begin_log(LogId(0), stage.index);
            stage.at(restored).push(Event::Restored { log, epoch: 1, truthful: false });
            stage.record.events.sort_by_key(|(at, _)| *at);
            stage.at(60_001).push(Event::Ended);
            let found = check(&stage.record, Depth::Quick).violations;
            let overlaps = found.iter().filter(|violation| violation.id == Id::I1).count();
            assert_eq!(overlaps, violations, "restored at {restored} ms: {found:?}");
        }
    }

    #[test]
    fn every_trace_of_two_logs_is_seen() {
        let mut stage = rolled_back();
        stage.push(Event::Leads { node: NODES[1], term: 1 });
        assert_eq!(split(&stage), Some(FROM));
        let mut stage = rolled_back();
        stage.record.applied(stage.now, (LogId(0), NODES[2]), (stage.index, 2, 77), || None);
        assert_eq!(split(&stage), Some(FROM));
        let mut stage = rolled_back();
        stage.push(Event::Stopped { node: NODES[2], why: Stopped::Diverged });
        assert_eq!(split(&stage), Some(FROM));
    }

    #[test]
    fn two_logs_without_a_roll_back_are_nobodys_excuse() {
        let mut stage = Stage::new();
        stage.open(1);
        stage.record.applied(stage.now, (LogId(0), NODES[2]), (stage.index, 2, 77), || None);
        assert_eq!(split(&stage), None);
        assert_eq!(check(&stage.record, Depth::Quick).violations.len(), 1);
    }

    #[test]
    fn what_two_logs_break_is_counted_and_what_was_broken_before_stands() {
        let mut stage = rolled_back();
        stage.record.applied(stage.now, (LogId(0), NODES[2]), (stage.index, 2, 77), || None);
        let report = check(&stage.record, Depth::Quick);
        assert_eq!(
            (report.violations.as_slice(), report.excused),
            ([].as_slice(), 0),
            "I12 excuses it itself"
        );
        stage.push(Event::Stopped { node: NODES[0], why: Stopped::Damaged });
        let report = check(&stage.record, Depth::Quick);
        assert_eq!(report.violations.len(), 1, "nobody had touched those files: {:?}", report.violations);
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Durable { node, first, .. } if *node == NODES[0] && *first == last)
        });
        let report = check(&stage.record, Depth::Quick);
        assert_eq!(
            report.violations.len(),
            2,
            "before it a quorum must have had it: {:?}",
            report.violations
        );
    }
}
