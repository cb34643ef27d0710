//! I13, durability: what any node applies lies synced on a quorum's disks. Nothing is answered before it is applied, so nothing is
//! answered before.

use std::collections::BTreeMap;

use super::{Id, Run, Violation};
use crate::record::{Event, LogId, NodeId, TrueTime, VoterSet};

/// What a disk had synced: who, which term, when.
type Copies = BTreeMap<(LogId, u64), Vec<(NodeId, u64, TrueTime)>>;

/// Counts the copies of every entry at the moment it is first applied.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut copies: Copies = BTreeMap::new();
    let mut installed: BTreeMap<(LogId, NodeId), Vec<(u64, TrueTime)>> = BTreeMap::new();
    let mut voters: BTreeMap<LogId, Vec<(TrueTime, &VoterSet)>> = BTreeMap::new();
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
            Event::Voters { log, set } => {
                voters.entry(log).or_default().push((*now, &run.record.voter_sets[set as usize]));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (log, life) in (0_u16..).map(LogId).zip(&run.record.logs) {
        let Some(voters) = voters.get(&log) else { continue };
        let mut first_of_term: BTreeMap<u64, TrueTime> = BTreeMap::new();
        for entry in &life.entries {
            let first = first_of_term.entry(entry.term).or_insert(entry.applied);
            *first = entry.applied.min(*first);
        }
        // What a new life begins with was written by no node.
        for entry in life.entries.iter().filter(|entry| entry.bytes != 0) {
            let none = Vec::new();
            let copies = copies.get(&(log, entry.index)).unwrap_or(&none);
            let mine = copies.iter().filter(|(_, term, at)| *term == entry.term && *at <= entry.applied);
            let first = mine.clone().map(|(_, _, at)| *at).min().unwrap_or(TrueTime::ZERO);
            let has = |node: &NodeId| {
                mine.clone().any(|(of, ..)| of == node)
                    || installed.get(&(log, *node)).is_some_and(|installed| {
                        installed.iter().any(|(index, at)| *index >= entry.index && *at <= entry.applied)
                    })
            };
            // Any set that was in force between the first copy and the commit may have been the one that decided.
            // Whoever was elected without knowing that the last change is committed counts by the set before it, once: its first
            // commit tells it. (Never two changes behind: commit is written with entries.)
            let behind = usize::from(first_of_term.get(&entry.term) == Some(&entry.applied));
            let since = voters.partition_point(|(at, _)| *at <= first).saturating_sub(1 + behind);
            let mut sets = voters[since..].iter().take_while(|(at, _)| *at <= entry.applied);
            if !sets.any(|(_, set)| is_quorum(&set.voters, has) && is_quorum(&set.outgoing, has)) {
                let what =
                    format!("entry {} of term {} was applied and no quorum had it", entry.index, entry.term);
                found.push(Violation::new(Id::I13, entry.applied, what));
            }
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

    #[test]
    fn both_halves_of_a_change_of_members_decide() {
        let mut stage = stage();
        let voters = vec![NodeId(1), NodeId(2)];
        let outgoing = vec![NodeId(3), NodeId(4), NodeId(1)];
        stage.at(5).record.voters(TrueTime(4_000_000), LogId(0), VoterSet { voters, outgoing });
        let session = stage.open(2);
        caught(&stage.check(check), "no quorum had it");
        let _ = session;
    }

    #[test]
    fn the_first_commit_of_a_term_may_be_decided_by_the_set_before() {
        let mut stage = stage();
        let (voters, outgoing) = (vec![NodeId(7), NodeId(8), NodeId(9)], Vec::new());
        stage.at(5).record.voters(TrueTime(4_000_000), LogId(0), VoterSet { voters, outgoing });
        stage.term += 1;
        stage.open(2);
        assert_eq!(stage.check(check), []);
        stage.at(6).open(3);
        caught(&stage.check(check), "no quorum had it");
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
