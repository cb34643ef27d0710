//! What the promises do not cover: clocks beyond the bound, files set back, restores told wrongly.
//!
//! An excuse reaches as far as what was wrong can still be believed: a clock that was wrong up to some moment has touched what was
//! sent before that moment, and nobody believes in that for longer than the longest ttl.

use crate::record::{ClientId, Event, Fault, Machine, Record, TrueTime};

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
    /// From here on files were not what nodes had written.
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
                        excuses.files.get_or_insert(*now);
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
                Event::FaultsStopped => excuses.stopped = Some(*now),
                _ => {}
            }
        }
        let end = record.end();
        for fault in open {
            // Faults of one moment are never said to be over; a clock that stays wrong is wrong to the end.
            let to = if fault.1 == Fault::Clock { end } else { fault.2 };
            close(&mut excuses, fault, to);
        }
        excuses
    }

    /// Whether what a client believes at a moment is covered: its clocks, and those of the nodes, kept the bound.
    pub fn covers(&self, client: Option<ClientId>, moment: TrueTime) -> bool {
        let set_back = self.files.into_iter().chain(self.told_wrongly).any(|from| from <= moment);
        !set_back
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
        let set_back = self.files.into_iter().chain(self.told_wrongly).any(|from| from <= span.to);
        let of_nodes =
            self.clocks.iter().filter(|(machine, _)| matches!(machine, Machine::Node(_) | Machine::World));
        !set_back && !of_nodes.into_iter().any(|(_, wrong)| wrong.shared(span) > 0)
    }

    /// Whether files were what nodes had written, up to a moment.
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
