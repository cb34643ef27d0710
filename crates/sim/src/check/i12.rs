//! I12, determinism: every node applies the same entry at the same place and has the same table behind it; and the log's time
//! never falls (which replaying itself finds).

use super::{Id, Run, Violation};
use crate::record::{Event, Fault, Machine, Stopped};

/// Compares nodes with the log, and their tables with its replay.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        let mut wrong = |what: String| found.push(Violation::new(Id::I12, *now, what));
        match *event {
            Event::Applied { log, node, index, term, bytes } => {
                let Some(known) = run.record.logs[usize::from(log.0)].entry(index) else { continue };
                if (known.term, known.bytes) != (term, bytes) && run.excuses.covers_files(*now) {
                    let (node, other) = (node.0, known.term);
                    wrong(format!(
                        "two truths at entry {index}: term {other}, and term {term} on node {node}"
                    ));
                }
            }
            Event::State { log, node, index, hash } => {
                // A damaged node is I14's business.
                let damaged = run.excuses.had(Machine::Node(node), Fault::Damage, *now);
                if !damaged && run.excuses.covers_files(*now) && !is_true(run, (log, index), hash) {
                    wrong(format!(
                        "the table of node {} behind entry {index} is not what the log says",
                        node.0
                    ));
                }
            }
            Event::Stopped { node, why: Stopped::Diverged } if run.excuses.covers_files(*now) => {
                wrong(format!("node {} found that it is not what the others are", node.0));
            }
            _ => {}
        }
    }
    for stray in run.record.logs.iter().flat_map(|log| &log.stray) {
        let what = format!("entry {} was applied, and one before it by nobody", stray.index);
        found.push(Violation::new(Id::I12, stray.applied, what));
    }
    found
}

/// Whether the replay comes to the same. Where it stopped early, it has complained itself.
pub(super) fn is_true(run: Run<'_>, point: (crate::record::LogId, u64), hash: u64) -> bool {
    run.story.states.get(&point).is_none_or(|known| *known == hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};
    use crate::record::{LogId, hash};

    fn with_state(change: u64) -> Stage {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        let (node, index, hash) = (NODES[1], stage.index, hash(&stage.table.encode()) + change);
        stage.push(Event::State { log: LogId(0), node, index, hash });
        stage
    }

    #[test]
    fn the_same_table_is_right_and_another_is_found() {
        assert_eq!(with_state(0).check(check), []);
        caught(&with_state(1).check(check), "is not what the log says");
    }

    #[test]
    fn another_entry_in_the_same_place_is_found() {
        let mut stage = with_state(0);
        let (index, log) = (stage.index, stage.log);
        stage.record.applied(stage.now, (log, NODES[2]), (index, 2, 77), || None);
        caught(&stage.check(check), "two truths");
    }

    #[test]
    fn a_gap_and_a_node_that_gives_itself_up_are_found() {
        let mut stage = with_state(0);
        let (index, log) = (stage.index + 2, stage.log);
        stage.record.applied(stage.now, (log, NODES[2]), (index, 1, 77), || None);
        caught(&stage.check(check), "by nobody");
        let mut stage = with_state(0);
        stage.push(Event::Stopped { node: NODES[2], why: Stopped::Diverged });
        caught(&stage.check(check), "not what the others are");
        let mut stage = with_state(0);
        stage.push(Event::Stopped { node: NODES[2], why: Stopped::Crashed });
        assert_eq!(stage.check(check), []);
    }
}
