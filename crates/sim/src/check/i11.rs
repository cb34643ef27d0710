//! I11, events: what a node tells its watchers is what happened, in order, without gaps and without repetition; and no item reaches
//! a client before its entry was committed.

use std::collections::{BTreeMap, HashMap};

use leasehold_core::protocol::Change;

use super::{Id, Run, Violation};
use crate::record::{Event, LogId, NodeId, TrueTime};

/// One life of a node: between two starts, or snapshots that took the place of what it had.
type Life = (LogId, NodeId, TrueTime);

/// Checks what was published, and what was pushed.
pub fn check(run: Run<'_>) -> Vec<Violation> {
    let mut found = published(run);
    found.extend(too_early(run));
    found
}

fn published(run: Run<'_>) -> Vec<Violation> {
    let mut happened: BTreeMap<(LogId, u64), Vec<Change>> = BTreeMap::new();
    for step in &run.story.steps {
        let changes: Vec<Change> = step.outcome.events.iter().filter_map(Change::of).collect();
        if !changes.is_empty() {
            happened.insert((step.log, step.index), changes);
        }
    }
    let mut found = Vec::new();
    let mut lives: BTreeMap<Life, u64> = BTreeMap::new();
    for told in &run.record.published {
        let life = (told.log, told.node, told.since);
        let revision = told.changes.revision.get();
        let mut wrong = |what: String| found.push(Violation::new(Id::I11, told.at, what));
        let node = told.node.0;
        match happened.get(&(told.log, revision)) {
            Some(changes) if *changes == told.changes.changes => {}
            Some(_) => wrong(format!("node {node} told of other changes in entry {revision} than happened")),
            None => wrong(format!("node {node} told of changes in entry {revision}, which changed nothing")),
        }
        if let Some(last) = lives.insert(life, revision) {
            if revision <= last {
                wrong(format!("node {node} told of entry {revision} behind entry {last}"));
            } else if let Some(missing) = missing(&happened, told.log, last + 1, revision - 1) {
                wrong(format!("node {node} did not tell of entry {missing}"));
            }
        }
    }
    for ((log, node, since), last) in &lives {
        let (end, at) = applied_in_life(run, *log, *node, *since);
        if let Some(missing) = missing(&happened, *log, last + 1, end) {
            let what = format!("node {} applied entry {missing} and did not tell of it", node.0);
            found.push(Violation::new(Id::I11, at, what));
        }
    }
    found
}

fn missing<T>(happened: &BTreeMap<(LogId, u64), T>, log: LogId, first: u64, last: u64) -> Option<u64> {
    (first <= last).then(|| happened.range((log, first)..=(log, last)).next()).flatten().map(|(key, _)| key.1)
}

/// How far a node came in one of its lives, and when.
fn applied_in_life(run: Run<'_>, of: LogId, who: NodeId, since: TrueTime) -> (u64, TrueTime) {
    let mut last = (0, since);
    let from = run.record.events.partition_point(|(now, _)| *now < since);
    for (now, event) in &run.record.events[from..] {
        match event {
            Event::Applied { log, node, index, .. } if (*log, *node) == (of, who) => last = (*index, *now),
            Event::Started { node } | Event::Installed { node, .. } if *node == who && *now > since => break,
            _ => {}
        }
    }
    last
}

fn too_early(run: Run<'_>) -> Vec<Violation> {
    let mut arose = HashMap::new();
    for step in &run.story.steps {
        for (session, item) in &step.outcome.items {
            arose.entry((*session, item.number)).or_insert(step.applied);
        }
    }
    let early = run.record.items.iter().filter(|received| {
        arose.get(&(received.session, received.item.number)).is_some_and(|applied| received.at < *applied)
    });
    early
        .map(|received| {
            let (number, session) = (received.item.number, received.session);
            let what = format!("item {number} of session {session} arrived before its entry was committed");
            Violation::new(Id::I11, received.at, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{NODES, Stage, caught};
    use crate::check::story::Story;
    use crate::record::Published;
    use leasehold_core::Revision;
    use leasehold_core::protocol::Changes;
    use std::sync::Arc;

    /// Everything that happens is told by the first node.
    fn told() -> Stage {
        let mut stage = Stage::new();
        let session = stage.open(1);
        for _ in 0..3 {
            let token = stage.acquire(session).unwrap();
            stage.release(session, token);
        }
        let told: Vec<Published> = Story::of(&stage.record)
            .steps
            .iter()
            .filter_map(|step| {
                let changes: Vec<Change> = step.outcome.events.iter().filter_map(Change::of).collect();
                let revision = Revision::new(step.index);
                let changes = Arc::new(Changes { revision, changes });
                let (log, node, since, at) = (LogId(0), NODES[0], TrueTime::ZERO, step.applied);
                (!changes.changes.is_empty()).then_some(Published { log, node, since, at, changes })
            })
            .collect();
        stage.record.published = told;
        stage
    }

    #[test]
    fn what_happened_may_be_told() {
        assert_eq!(told().check(check), []);
    }

    #[test]
    fn what_is_told_wrongly_is_wrong_when_it_is_told() {
        let mut stage = told();
        let late = TrueTime(77_000_000);
        stage.record.published[1].at = late;
        stage.record.published[1].changes =
            Arc::new(Changes { revision: Revision::new(1_000), changes: Vec::new() });
        assert!(stage.check(check).iter().any(|wrong| wrong.at == late), "an excuse may begin in between");
    }

    #[test]
    fn gaps_repetitions_and_inventions_are_found() {
        let mut stage = told();
        stage.record.published.remove(2);
        caught(&stage.check(check), "did not tell of entry");
        let mut stage = told();
        stage.record.published.pop();
        caught(&stage.check(check), "applied entry");
        let mut stage = told();
        stage.record.published.swap(1, 2);
        caught(&stage.check(check), "behind entry");
        let mut stage = told();
        let again = stage.record.published[1].clone();
        stage.record.published.insert(2, again);
        caught(&stage.check(check), "behind entry");
        let mut stage = told();
        let mut other = (*stage.record.published[1].changes).clone();
        other.changes.pop();
        stage.record.published[1].changes = Arc::new(other);
        caught(&stage.check(check), "other changes");
    }

    #[test]
    fn a_grant_told_before_its_commit_is_found() {
        let mut stage = Stage::new();
        stage.at(10);
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage.record.items[0].at = TrueTime(1);
        caught(&stage.check(check), "before its entry was committed");
    }
}
