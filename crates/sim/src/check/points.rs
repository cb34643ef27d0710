//! Points of the logs that the replay must look at, because a node or a read said something about them.

use std::collections::{BTreeSet, HashMap};

use crate::record::{Event, LogId, Record};

/// Points of the logs about which somebody said something.
pub(super) struct Points {
    pub(super) states: BTreeSet<(LogId, u64)>,
    pub(super) reads: BTreeSet<(LogId, u64, u32)>,
}

impl Points {
    pub(super) fn of(record: &Record) -> Self {
        let mut points = Self { states: BTreeSet::new(), reads: BTreeSet::new() };
        let mut resources = HashMap::new();
        for (_, event) in &record.events {
            match event {
                Event::State { log, index, .. } => {
                    points.states.insert((*log, *index));
                }
                Event::ReadAsked { read, resource, .. } => {
                    resources.insert(*read, resource.0);
                }
                Event::ReadTold { read, log, revision, .. } => {
                    if let Some(resource) = resources.get(read) {
                        points.reads.insert((*log, *revision, *resource));
                    }
                }
                _ => {}
            }
        }
        points
    }
}
