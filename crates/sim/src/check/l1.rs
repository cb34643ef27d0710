//! L1: once no fault is under way there is a leader within the bound, and whenever one goes the next comes within it.

use std::collections::BTreeMap;

use super::{Id, Run, Violation};
use crate::record::{Event, NodeId, TrueTime};

/// Looks for times without a leader after the faults.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let Some(stopped) = run.excuses.stopped else { return Vec::new() };
    let mut found = Vec::new();
    let mut leaders: BTreeMap<NodeId, u64> = BTreeMap::new();
    let mut newest = 0;
    // Since when nobody leads in the newest term.
    let mut since = Some(TrueTime::ZERO);
    for (now, event) in &run.record.events {
        match *event {
            Event::Leads { node, term } => {
                leaders.insert(node, term);
                newest = newest.max(term);
            }
            Event::LeadsNoMore { node, term } if leaders.get(&node) == Some(&term) => {
                leaders.remove(&node);
            }
            Event::Stopped { node, .. } => {
                leaders.remove(&node);
            }
            // Terms of a new life begin anew.
            Event::Restored { .. } => {
                leaders.clear();
                newest = 0;
            }
            _ => {}
        }
        let led = leaders.values().any(|term| *term == newest);
        match (since, led) {
            (Some(from), true) => {
                found.extend(too_long(run, from.max(stopped), *now));
                since = None;
            }
            (None, false) => since = Some(*now),
            _ => {}
        }
    }
    found.extend(since.and_then(|from| too_long(run, from.max(stopped), run.record.end())));
    found
}

fn too_long(run: Run<'_>, from: TrueTime, to: TrueTime) -> Option<Violation> {
    let gap = to.since(from);
    (gap > run.record.bounds.leader).then(|| {
        let what = format!("nobody led for {} ms, with no fault under way", gap / 1_000_000);
        Violation::new(Id::L1, to, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};
    use crate::record::Stopped;

    /// The leader is killed at 1 s, faults stop at 2 s, and another leads at `then`.
    fn led_again(then: u64) -> Vec<Violation> {
        let mut stage = Stage::new();
        stage.at(1_000).push(Event::Stopped { node: NODES[0], why: Stopped::Crashed });
        stage.at(2_000).push(Event::FaultsStopped);
        stage.at(then).push(Event::Leads { node: NODES[1], term: 2 });
        stage.at(9_000).push(Event::Ended);
        stage.check(check)
    }

    #[test]
    fn a_leader_in_time_is_right_and_a_late_one_is_found() {
        assert_eq!(led_again(3_200), []);
        caught(&led_again(3_201), "nobody led for 1201 ms");
    }

    #[test]
    fn a_leader_that_goes_without_a_fault_is_followed_in_time() {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        stage.at(5_000).push(Event::LeadsNoMore { node: NODES[0], term: 1 });
        stage.at(5_100).push(Event::Ended);
        assert_eq!(stage.check(check), []);
        stage.at(9_000).push(Event::Ended);
        caught(&stage.check(check), "nobody led");
    }

    #[test]
    fn a_leader_of_an_older_term_does_not_count() {
        let mut stage = Stage::new();
        stage.push(Event::FaultsStopped);
        stage.at(100).push(Event::Leads { node: NODES[1], term: 2 });
        stage.at(200).push(Event::LeadsNoMore { node: NODES[1], term: 2 });
        stage.at(9_000).push(Event::Ended);
        caught(&stage.check(check), "nobody led");
    }
}
