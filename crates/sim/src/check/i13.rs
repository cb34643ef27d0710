//! I13, durability: what any node applies lies synced on a quorum's disks, counted as the leader that decided it had to count: by the members that
//! it knew then, and in the middle of a change by those before and by those after, each for themselves. Nothing is answered before it is applied,
//! so nothing is answered before. Nodes that have come equally far count by the same members.
//!
//! The service changes one member at a time and is never in the middle of a change, so only made-up histories have that here.

use std::collections::BTreeMap;

use super::excuse::Span;
use super::{Id, Run, Violation};
use crate::record::{Committed, Event, LogId, NodeId, TrueTime, VoterSet};

/// What a disk had synced: who, which term, when.
type Copies = BTreeMap<(LogId, u64), Vec<(NodeId, u64, TrueTime)>>;

/// A stretch of time in which a node led and counted by one set. Its last moment is in it: in one turn a node decides by a set and takes
/// another, or decides and is deposed.
struct Reign<'r> {
    log: LogId,
    span: Span,
    set: &'r VoterSet,
}

/// Counts the copies of every entry at the last moment at which a leader may have decided it.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut copies: Copies = BTreeMap::new();
    let mut installed: BTreeMap<(LogId, NodeId), Vec<(u64, TrueTime)>> = BTreeMap::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Durable { log, node, first, last, term } => {
                for index in first..=last {
                    copies.entry((log, index)).or_default().push((node, term, *now));
                }
            }
            Event::Installed { log, node, index } => {
                installed.entry((log, node)).or_default().push((index, *now));
            }
            _ => {}
        }
    }
    let reigns = reigns(run);
    let mut found = counted_apart(run);
    for (log, life) in run.record.lives() {
        // They begin in the order of time, and those of one node end before its next one begins.
        let reigns: Vec<&Reign<'_>> = reigns.iter().filter(|reign| reign.log == log).collect();
        if reigns.is_empty() {
            continue;
        }
        let none = Vec::new();
        // What a new life begins with was written by no node.
        for entry in life.entries.iter().filter(|entry| entry.bytes != 0) {
            let copies = copies.get(&(log, entry.index)).unwrap_or(&none);
            let has = |node: &NodeId, moment: TrueTime| {
                copies.iter().any(|(of, term, at)| (of, *term) == (node, entry.term) && *at <= moment)
                    || installed.get(&(log, *node)).is_some_and(|installed| {
                        installed.iter().any(|(index, at)| *index >= entry.index && *at <= moment)
                    })
            };
            let begun = reigns.partition_point(|reign| reign.span.from <= entry.applied);
            if !reigns[..begun].iter().rev().any(|reign| decided(reign, entry, copies, has)) {
                let what =
                    format!("entry {} of term {} was applied and no quorum had it", entry.index, entry.term);
                found.push(Violation::new(Id::I13, entry.applied, what));
            }
        }
    }
    found
}

/// Whether an entry can have been decided in a reign: enough had it before the reign was over, and before it was applied.
fn decided(
    reign: &Reign<'_>,
    entry: &Committed,
    copies: &[(NodeId, u64, TrueTime)],
    has: impl Fn(&NodeId, TrueTime) -> bool,
) -> bool {
    let written = copies.iter().filter(|(_, term, _)| *term == entry.term).map(|(_, _, at)| *at).min();
    let moment = reign.span.to.min(entry.applied);
    let had = |node: &NodeId| has(node, moment);
    written.is_none_or(|written| written <= moment)
        && is_quorum(&reign.set.voters, had)
        && is_quorum(&reign.set.outgoing, had)
}

/// Who led when, and counted by whom, in the order in which that began.
fn reigns<'r>(run: Run<'r>) -> Vec<Reign<'r>> {
    let mut reigns: Vec<Reign<'r>> = Vec::new();
    let mut open: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut counts: BTreeMap<NodeId, (LogId, &VoterSet)> = BTreeMap::new();
    for (now, event) in &run.record.events {
        let (node, leads) = match *event {
            Event::Leads { node, .. } => (node, true),
            Event::Voters { log, node, set, .. } => {
                counts.insert(node, (log, &run.record.voter_sets[set as usize]));
                (node, open.contains_key(&node))
            }
            Event::LeadsNoMore { node, .. } | Event::Stopped { node, .. } => (node, false),
            _ => continue,
        };
        if let Some(place) = open.remove(&node) {
            reigns[place].span.to = *now;
        }
        if let Some((log, set)) = counts.get(&node).copied().filter(|_| leads) {
            open.insert(node, reigns.len());
            reigns.push(Reign { log, span: Span { from: *now, to: TrueTime::NEVER }, set });
        }
    }
    reigns
}

/// Nodes that count by others than those who have come equally far.
fn counted_apart(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut known: BTreeMap<(LogId, u64), (NodeId, u32)> = BTreeMap::new();
    for (now, event) in &run.record.events {
        let Event::Voters { log, node, index, set } = *event else { continue };
        let (other, before) = *known.entry((log, index)).or_insert((node, set));
        if before != set {
            let (one, two) = (&run.record.voter_sets[before as usize], &run.record.voter_sets[set as usize]);
            let what = format!(
                "behind entry {index} node {} counts by {two:?}, and node {} by {one:?}",
                node.0, other.0
            );
            found.push(Violation::new(Id::I13, *now, what));
        }
    }
    found
}

/// Whether more than half have it; of nobody, everybody has it.
fn is_quorum(members: &[NodeId], has: impl Fn(&NodeId) -> bool) -> bool {
    let count = members.iter().filter(|node| has(node)).count();
    members.is_empty() || count * 2 > members.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};

    fn stage() -> Stage {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage
    }

    #[test]
    fn two_of_three_are_enough_and_one_is_found() {
        let mut stage = stage();
        assert_eq!(stage.check(check), []);
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Durable { node, first, .. } if *node == NODES[0] && *first == last)
        });
        caught(&stage.check(check), "no quorum had it");
    }

    #[test]
    fn copies_that_come_later_or_of_another_term_do_not_count() {
        for change in [0, 1] {
            let mut stage = stage();
            let last = stage.index;
            for (now, event) in &mut stage.record.events {
                if let Event::Durable { node, first, term, .. } = event
                    && (*node, *first) == (NODES[0], last)
                {
                    *now = now.plus(change);
                    *term += 1 - change;
                }
            }
            caught(&stage.check(check), "no quorum had it");
        }
    }

    fn set(voters: &[u64], outgoing: &[u64]) -> VoterSet {
        let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect();
        VoterSet { voters: nodes(voters), outgoing: nodes(outgoing) }
    }

    /// The leader counts by this set from `millis` on, and an entry is written at 5 ms: synced by nodes 1 and 2, and by the others named.
    fn in_a_change(millis: u64, set: VoterSet, others: &[u64]) -> Vec<Violation> {
        let mut stage = stage();
        let (index, leader) = (stage.index, stage.leader);
        stage.at(millis);
        stage.record.voters(stage.now, (LogId(0), leader), index, set);
        stage.at(5);
        for node in others.iter().copied().map(NodeId) {
            let (log, first) = (LogId(0), index + 1);
            stage.push(Event::Durable { log, node, first, last: first, term: 1 });
        }
        stage.open(2);
        stage.record.events.sort_by_key(|(at, _)| *at);
        // What follows it is not looked at here.
        let mut found = stage.check(check);
        found.retain(|violation| violation.what.starts_with(&format!("entry {} ", index + 1)));
        found
    }

    #[test]
    fn both_halves_of_a_change_of_members_decide() {
        // Three leave at once and two come: each half needs its own majority.
        let joint = || set(&[1, 2, 5], &[1, 3, 4]);
        assert_eq!(in_a_change(4, joint(), &[3]), []);
        assert_eq!(in_a_change(4, joint(), &[4]), []);
        caught(&in_a_change(4, joint(), &[]), "no quorum had it");
        caught(&in_a_change(4, joint(), &[5]), "no quorum had it");
        // The old half alone is not enough either.
        caught(&in_a_change(4, set(&[5, 6, 7], &[1, 2, 3]), &[]), "no quorum had it");
        assert_eq!(in_a_change(4, set(&[5, 6, 7], &[1, 2, 3]), &[6, 7]), []);
    }

    #[test]
    fn a_change_that_begins_while_an_entry_is_on_its_way_counts_for_it() {
        // Nodes 1 and 2 have it at 5 ms, and it is applied then.
        assert_eq!(in_a_change(6, set(&[1, 4, 5], &[1, 2, 3]), &[]), []);
        let mut stage = stage();
        let (index, leader, log) = (stage.index + 1, stage.leader, LogId(0));
        stage.at(3).push(Event::Durable { log, node: NODES[0], first: index, last: index, term: 1 });
        let joint = set(&[1, 4, 5], &[1, 2, 3]);
        stage.at(4);
        stage.record.voters(stage.now, (log, leader), index - 1, joint);
        // Written under the members before, when it had one copy; the second comes too late for them.
        stage.at(5).open(2);
        caught(&stage.check(check), "no quorum had it");
    }

    #[test]
    fn a_leader_that_has_not_heard_of_a_change_counts_by_the_members_before() {
        let mut stage = stage();
        let (log, index) = (LogId(0), stage.index);
        // Another node has come further: it was told by a leader that is gone.
        stage.at(4);
        stage.record.voters(stage.now, (log, NODES[2]), index + 1, set(&[1, 2, 3, 4], &[]));
        stage.at(5).open(2);
        assert_eq!(stage.check(check), []);
        stage.at(6);
        stage.record.voters(stage.now, (log, NODES[0]), index + 1, set(&[1, 2, 3, 4], &[]));
        stage.at(7).open(3);
        caught(&stage.check(check), "no quorum had it");
    }

    #[test]
    fn who_counts_by_others_in_the_same_place_is_found() {
        let mut stage = stage();
        let log = LogId(0);
        for node in NODES {
            stage.record.voters(stage.now, (log, node), stage.index, set(&[1, 2, 3], &[]));
        }
        assert_eq!(stage.check(check), []);
        stage.record.voters(stage.now, (log, NODES[2]), stage.index, set(&[1, 3], &[]));
        caught(&stage.check(check), "node 3 counts by");
    }

    #[test]
    fn a_snapshot_is_a_copy() {
        let mut stage = stage();
        let last = stage.index;
        stage.record.events.retain(|(_, event)| {
            !matches!(event, Event::Durable { node, first, .. } if *node == NODES[0] && *first == last)
        });
        let installed = Event::Installed { log: LogId(0), node: NODES[2], index: last };
        stage.record.events.push((TrueTime::ZERO, installed));
        assert_eq!(stage.check(check), []);
    }
}
