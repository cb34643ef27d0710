//! I14, integrity: a damaged node never serves what is not so, and a node refuses its files only if somebody damaged them (a crash
//! alone leaves nothing that looks like damage).

use super::i12::is_true;
use super::{Id, Run, Violation};
use crate::record::{Event, Fault, Machine, Stopped};

/// Looks at damaged nodes, and at those that say they are.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::State { log, node, index, hash } => {
                let damaged = run.excuses.had(Machine::Node(node), Fault::Damage, *now);
                if damaged && !is_true(run, (log, index), hash) {
                    let what = format!("damaged node {} has another table behind entry {index}", node.0);
                    found.push(Violation::new(Id::I14, *now, what));
                }
            }
            Event::Stopped { node, why: Stopped::Damaged } => {
                let touched = [Fault::Damage, Fault::RolledBack, Fault::Wiped]
                    .into_iter()
                    .any(|fault| run.excuses.had(Machine::Node(node), fault, *now));
                if !touched {
                    let what = format!("node {} refuses files that nobody has damaged", node.0);
                    found.push(Violation::new(Id::I14, *now, what));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};
    use crate::record::{LogId, hash};

    fn damaged() -> Stage {
        let mut stage = Stage::new();
        stage.open(1);
        let (machine, what) = (Machine::Node(NODES[1]), Fault::Damage);
        stage.push(Event::Fault { machine, what, within: true, begins: true });
        stage
    }

    #[test]
    fn a_damaged_node_may_refuse_or_be_repaired_but_not_serve_something_else() {
        let mut stage = damaged();
        stage.at(1).push(Event::Stopped { node: NODES[1], why: Stopped::Damaged });
        let (node, index, hash) = (NODES[1], stage.index, hash(&stage.table.encode()));
        stage.push(Event::State { log: LogId(0), node, index, hash });
        assert_eq!(stage.check(check), []);
        stage.push(Event::State { log: LogId(0), node, index, hash: hash + 1 });
        caught(&stage.check(check), "has another table");
    }

    #[test]
    fn damage_that_nobody_did_is_found() {
        let mut stage = damaged();
        stage.at(1).push(Event::Stopped { node: NODES[2], why: Stopped::Damaged });
        caught(&stage.check(check), "nobody has damaged");
    }
}
