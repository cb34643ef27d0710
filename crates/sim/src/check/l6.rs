//! L6: everything recovers by itself. After the faults every node runs and has caught up; and none ever stops for a reason that
//! nothing done to it explains.

use std::collections::{BTreeMap, BTreeSet};

use super::{Id, Run, Violation};
use crate::record::{Event, Fault, LogId, Machine, NodeId, Stopped};

/// Looks at where nodes stand at the end, and why they stopped.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut applied: BTreeMap<NodeId, (LogId, u64)> = BTreeMap::new();
    let mut stopped: BTreeMap<NodeId, Stopped> = BTreeMap::new();
    let mut wiped: BTreeSet<NodeId> = BTreeSet::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Applied { log, node, index, .. } | Event::Installed { log, node, index } => {
                applied.insert(node, (log, index));
            }
            Event::Started { node } => {
                stopped.remove(&node);
            }
            // Whoever lost its files comes back under another id.
            Event::Fault { machine: Machine::Node(node), what: Fault::Wiped, begins: true, .. } => {
                wiped.insert(node);
            }
            Event::Stopped { node, why } => {
                stopped.insert(node, why);
                if why == Stopped::Failed && run.excuses.covers_files(*now) {
                    let what = format!("node {} failed, and nothing done to it explains that", node.0);
                    found.push(Violation::new(Id::L6, *now, what));
                }
            }
            _ => {}
        }
    }
    applied.retain(|node, _| !wiped.contains(node));
    if run.healthy().is_some_and(|healthy| healthy <= run.record.end()) {
        found.extend(behind(run, &applied, &stopped));
    }
    found
}

fn behind(
    run: Run<'_>,
    applied: &BTreeMap<NodeId, (LogId, u64)>,
    stopped: &BTreeMap<NodeId, Stopped>,
) -> Vec<Violation> {
    let end = run.record.end();
    let Some((log, life)) = run.record.lives().next_back() else { return Vec::new() };
    let entries = &life.entries;
    // Whatever was committed so long ago has reached everybody.
    let long_ago = entries.partition_point(|entry| end.since(entry.applied) > run.record.bounds.recovery);
    let Some(wanted) = long_ago.checked_sub(1).map(|last| entries[last].index) else { return Vec::new() };
    let mut found = Vec::new();
    for (node, (of, index)) in applied {
        let gone = match stopped.get(node) {
            Some(Stopped::Removed | Stopped::Drained | Stopped::Damaged) => true,
            // Wiped, and back under another id.
            Some(Stopped::Diverged) => !run.excuses.covers_files(end),
            _ => false,
        };
        if *of != log || gone {
            continue;
        }
        if let Some(why) = stopped.get(node) {
            let what = format!("node {} stands still at the end: {why:?}", node.0);
            found.push(Violation::new(Id::L6, end, what));
        } else if *index < wanted {
            let what = format!(
                "node {} is at entry {index} at the end, and {wanted} is long since committed",
                node.0
            );
            found.push(Violation::new(Id::L6, end, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};

    fn stage() -> Stage {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        stage.open(1);
        stage.at(100_000).push(Event::Ended);
        stage
    }

    #[test]
    fn a_node_that_stays_behind_is_found() {
        let mut stage = stage();
        assert_eq!(stage.check(check), []);
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Applied { node, index, .. } if *node == NODES[2] && *index == last)
        });
        caught(&stage.check(check), "node 3 is at entry");
    }

    #[test]
    fn a_node_that_stays_away_is_found_unless_it_was_asked_to() {
        for (why, count) in [(Stopped::Crashed, 1), (Stopped::Removed, 0), (Stopped::Failed, 2)] {
            let mut stage = stage();
            stage.push(Event::Stopped { node: NODES[2], why });
            assert_eq!(stage.check(check).len(), count, "{why:?}");
        }
    }

    #[test]
    fn a_node_that_lost_its_files_comes_back_under_another_id() {
        let mut stage = stage();
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Applied { node, index, .. } if *node == NODES[2] && *index == last)
        });
        let (machine, what) = (Machine::Node(NODES[2]), Fault::Wiped);
        stage.push(Event::Fault { machine, what, within: true, begins: true });
        assert_eq!(stage.check(check), []);
    }

    #[test]
    fn what_was_just_committed_may_still_be_on_its_way() {
        let mut stage = stage();
        stage.at(101_000).open(2);
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Applied { node, index, .. } if *node == NODES[2] && *index + 1 >= last)
        });
        assert_eq!(stage.check(check), []);
    }
}
