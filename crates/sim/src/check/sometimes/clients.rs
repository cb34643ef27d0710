//! Situations that clients, receivers, nodes and faults show.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use leasehold_core::{Reply, SessionId, Token};

use super::{Situation, Sometimes};
use crate::check::Run;
use crate::check::unfenced::losses;
use crate::check::windows::windows;
use crate::record::{Event, Fault, LogId, Machine, NodeId, RequestKey, Stopped, TrueTime};

/// Counts what events show.
pub(super) fn observe(run: Run<'_>, sometimes: &mut Sometimes) {
    use Situation as S;
    let mut ran_out: BTreeMap<(SessionId, Token), TrueTime> = BTreeMap::new();
    for window in windows(run.record) {
        let key = (window.session, window.token);
        if ran_out.contains_key(&key) {
            sometimes.reach(S::HeldAgain);
        }
        if window.ran_out {
            ran_out.insert(key, window.span.to);
            sometimes.reach(S::Lapsed);
        }
    }
    sometimes.add(S::UnfencedLoss, losses(run));
    events(run, sometimes);
    tails(run, sometimes);
    renewals(run, sometimes);
}

fn events(run: Run<'_>, sometimes: &mut Sometimes) {
    use Situation as S;
    let mut up: BTreeSet<NodeId> = BTreeSet::new();
    let mut known: BTreeSet<NodeId> = BTreeSet::new();
    let (mut full_disks, mut terms, mut sets) = (0_u64, BTreeSet::new(), BTreeSet::new());
    for (now, event) in &run.record.events {
        match *event {
            Event::Write { fenced: true, accepted: false, .. } => sometimes.reach(S::StaleWriteRefused),
            Event::RequestFailed { definite: true, .. } if full_disks > 0 => {
                sometimes.reach(S::DiskFullRefusal);
            }
            Event::Fault { what: Fault::FullDisk, begins, .. } => {
                full_disks = if begins { full_disks + 1 } else { full_disks.saturating_sub(1) };
            }
            Event::Fault { what: Fault::Clock, within: false, begins: true, .. } => {
                sometimes.reach(S::ClockBeyond);
            }
            Event::Leads { term, .. } if terms.insert(term) && terms.len() > 1 => {
                sometimes.reach(S::LeaderChanged);
            }
            Event::Installed { .. } => sometimes.reach(S::SnapshotInstalled),
            Event::Started { node } => {
                if !known.insert(node) {
                    sometimes.reach(S::Restarted);
                }
                up.insert(node);
            }
            Event::Stopped { node, why } => {
                let had = |what| run.excuses.had(Machine::Node(node), what, *now);
                if why == Stopped::Damaged && had(Fault::Damage) {
                    sometimes.reach(S::DamageRefused);
                }
                if why == Stopped::Damaged && had(Fault::RolledBack) {
                    sometimes.reach(S::RollBackNoticed);
                }
                if up.remove(&node) && up.is_empty() {
                    sometimes.reach(S::AllDown);
                }
            }
            Event::Voters { set, .. } if sets.insert(set) && sets.len() > 1 => {
                sometimes.reach(S::MembersChanged);
            }
            Event::Died { client } => {
                let held = run.story.leases.iter().any(|lease| {
                    let owner = run.story.sessions.get(&lease.session);
                    owner.is_some_and(|owner| owner.client == Some(client) && owner.died == Some(*now))
                        && run.story.time(lease.step) <= *now
                        && lease.end.as_ref().is_none_or(|end| run.story.time(end.step) > *now)
                });
                sometimes.add(S::HolderDied, u64::from(held));
            }
            _ => {}
        }
    }
}

/// What deposed leaders had written.
fn tails(run: Run<'_>, sometimes: &mut Sometimes) {
    let mut superseded: BTreeSet<(LogId, u64, u64)> = BTreeSet::new();
    let mut elected: Vec<(TrueTime, u64)> = Vec::new();
    for (now, event) in &run.record.events {
        match *event {
            Event::Durable { log, first, last, term, .. } => {
                let life = &run.record.logs[usize::from(log.0)];
                for index in first..=last {
                    if life.entry(index).is_some_and(|entry| entry.term > term) {
                        superseded.insert((log, index, term));
                    }
                }
            }
            Event::Leads { term, .. } => elected.push((*now, term)),
            // Terms of a new life have nothing to do with those before.
            Event::Restored { .. } => elected.clear(),
            _ => {}
        }
    }
    sometimes.add(Situation::TailSuperseded, superseded.len() as u64);
    let Some(life) = run.record.logs.last() else { return };
    let revived = life.entries.iter().filter(|entry| {
        let before = elected.partition_point(|(at, _)| *at <= entry.applied);
        entry.bytes != 0 && elected[..before].iter().any(|(_, term)| *term > entry.term)
    });
    sometimes.add(Situation::TailRevived, revived.count() as u64);
}

/// Answers to renewals that overtook items.
fn renewals(run: Run<'_>, sometimes: &mut Sometimes) {
    let mut newest: HashMap<SessionId, u64> = HashMap::new();
    let mut items = run.record.items.iter().peekable();
    for replied in &run.record.replies {
        let (RequestKey::Renew(session, _), Reply::Renewed(renewed)) = (replied.key, &replied.reply) else {
            continue;
        };
        while let Some(received) = items.next_if(|received| received.at <= replied.at) {
            let newest = newest.entry(received.session).or_default();
            *newest = received.item.number.get().max(*newest);
        }
        if renewed.after.get() > newest.get(&session).copied().unwrap_or(0) {
            sometimes.reach(Situation::RenewalWaitsForItems);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::reached;
    use super::*;
    use crate::check::stage::{NODES, Stage};

    #[test]
    fn a_lapse_and_coming_back_are_seen() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        stage.at(950).renew(session, &[token]);
        assert_eq!(reached(&stage), [Situation::Lapsed]);
        stage.at(960).push(Event::Ended);
        assert_eq!(reached(&stage), [Situation::Lapsed, Situation::HeldAgain]);
    }

    #[test]
    fn tails_are_seen() {
        let mut stage = Stage::new();
        let (log, node, first) = (LogId(0), NODES[2], 2);
        stage.push(Event::Durable { log, node, first, last: first, term: 1 });
        stage.push(Event::Leads { node: NODES[1], term: 2 });
        stage.term = 2;
        stage.open(1);
        assert_eq!(reached(&stage), [Situation::LeaderChanged, Situation::TailSuperseded]);
        stage.term = 1;
        stage.open(2);
        assert!(reached(&stage).contains(&Situation::TailRevived));
    }

    #[test]
    fn an_answer_that_overtakes_an_item_is_seen() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        stage.record.items[0].at = TrueTime::NEVER;
        stage.at(100).renew(session, &[token]);
        assert_eq!(reached(&stage), [Situation::RenewalWaitsForItems]);
    }
}
