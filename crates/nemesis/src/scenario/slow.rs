//! Leaders that stand still: the process, or its disk. What reaches them meanwhile must come to nothing, and nobody who renews elsewhere
//! may notice.

use std::time::Duration;

use anyhow::Result;

use crate::disk::Disk;
use crate::figures::{self, Lengths};
use crate::history::{At, Now};
use crate::numbers;
use crate::pile::{Answer, Fate, Keepers, Pile};
use crate::report::{Figure, Report};
use crate::scenario::leader::nobody_lost;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// Two election timeouts; one is drawn between 300 and 600 ms.
const HANDOVER: Duration = Duration::from_millis(1200);
/// Sessions of each kind that renew at the leader that stands still.
const PILED: usize = 20;

/// What was found in all rounds.
#[derive(Debug, Default)]
struct Found {
    handovers: Vec<Duration>,
    piled: usize,
    acknowledged: Vec<String>,
    fates: Vec<Fate>,
}

/// What may not be confirmed of what was sent to a leader that stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dead {
    /// Renewals of sessions that renew nowhere else: they have ended long before it goes on.
    WhoeverRenewsOnlyThere,
    /// Everything, once it goes on: it ran all the time, so what it had taken in was answered before, or not at all.
    WhatIsAnsweredLate,
}

/// The leader is stopped for three ttls and goes on with its sockets full of what was said meanwhile.
pub(super) fn stop(options: &Options) -> Result<Report> {
    let shape = Shape { ttl: Duration::from_secs(1), ..Shape::default() };
    let still = shape.ttl * 3;
    let mut stage = Stage::new("stop-leader", options, options.nodes, shape)?;
    stage.begin()?;
    let rounds = options.rounds(10, 2);
    stage.progress.steps(rounds);
    let mut found = Found::default();
    for round in 0..rounds {
        let leader = stage.cluster.leader(HEALING)?;
        let mut piles = Piles::open(&stage, leader, round)?;
        let began = stage.fault(&format!("n{}, which leads, stands still", leader + 1));
        stage.cluster.nodes[leader].stop()?;
        piles.grow(&stage, leader, began, still, &mut found);
        stage.cluster.nodes[leader].cont()?;
        let went_on = stage.healed(&format!("n{} goes on", leader + 1));
        stage.cluster.whole(HEALING)?;
        piles.judge(&stage, leader, went_on, Dead::WhoeverRenewsOnlyThere, &mut found)?;
        stage.pass(Duration::from_millis(500));
        stage.progress.step();
    }
    finish(stage, found, still)
}

/// The disk of the leader stands still for four ttls: it must hand over, and go on as a follower.
pub(super) fn freeze(options: &Options) -> Result<Report> {
    let shape = Shape { ttl: Duration::from_secs(1), ..Shape::default() };
    let still = shape.ttl * 4;
    let mut stage = Stage::new("freeze-disk", options, options.nodes, shape)?;
    let mut disks = Vec::new();
    for node in &mut stage.cluster.nodes {
        let place = node.data.with_file_name("disk");
        disks.push(Disk::mount(&place)?);
        node.data = place.join("data");
    }
    stage.begin()?;
    let rounds = options.rounds(8, 2);
    stage.progress.steps(rounds);
    let mut found = Found::default();
    for round in 0..rounds {
        let leader = stage.cluster.leader(HEALING)?;
        let mut piles = Piles::open(&stage, leader, round)?;
        stage.fault(&format!("the disk of n{}, which leads, stands still", leader + 1));
        disks[leader].freeze()?;
        let began = At::now();
        piles.grow(&stage, leader, began, still, &mut found);
        // Taken just before: what is answered after it may have been written because of the thaw.
        let thaw = At::now();
        disks[leader].thaw()?;
        stage.healed(&format!("the disk of n{} goes on", leader + 1));
        stage.cluster.whole(HEALING)?;
        piles.judge(&stage, leader, thaw, Dead::WhatIsAnsweredLate, &mut found)?;
        stage.pass(Duration::from_millis(500));
        stage.progress.step();
    }
    finish(stage, found, still / 2)
}

fn finish(mut stage: Stage, found: Found, longest: Duration) -> Result<Report> {
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    // The short form runs beside other tests.
    let slack = stage.options.pick(1, 3);
    let handovers = Lengths::of(found.handovers);
    let bounded = Figure::bounded("another leads after", handovers.longest(), HANDOVER * slack);
    stage.figure(Figure { value: handovers.show(), ..bounded });
    stage.figure(Figure::bounded("grants again, longest", figures::gaps(&lines).longest(), longest));
    stage.figure(Figure::main("renewals sent to it meanwhile", found.piled.to_string()));
    stage.judge("what reached it while it stood still is not confirmed", found.piled, found.acknowledged);
    let lost = found.fates.iter().filter_map(|fate| match fate {
        Fate::Lost(why) => Some(why.clone()),
        Fate::Kept | Fate::Starved => None,
    });
    let mut lost: Vec<String> = lost.collect();
    let kept = found.fates.iter().filter(|fate| **fate == Fate::Kept).count();
    if kept == 0 {
        lost.push("no lease was renewed elsewhere all the time: nothing was shown".to_owned());
    }
    let all = found.fates.len();
    stage.figure(Figure::main("leases renewed elsewhere and kept", format!("{kept} of {all}")));
    stage.judge("no lease that was renewed elsewhere is lost", all, lost);
    Ok(stage.finished(&lines))
}

/// What was confirmed and may not be.
fn acknowledged(answers: &[Answer], name: &str, went_on: At, dead: Dead) -> Vec<String> {
    let confirmed = answers.iter().filter(|answer| answer.confirmed);
    let wrong = confirmed.filter(|answer| dead == Dead::WhoeverRenewsOnlyThere || answer.answered > went_on);
    wrong
        .map(|answer| {
            format!(
                "{}: a renewal sent to {name} {:?} before it went on was confirmed {:?} after that",
                answer.resource,
                went_on.since(answer.sent),
                answer.answered.since(went_on)
            )
        })
        .collect()
}

/// Sessions that renew only at the leader that stands still, and sessions that renew only elsewhere.
struct Piles {
    there: Pile,
    elsewhere: Keepers,
    others: Vec<String>,
}

impl Piles {
    fn open(stage: &Stage, leader: usize, round: usize) -> Result<Self> {
        let (ttl, node) = (stage.shape.ttl, stage.cluster.nodes[leader].address.clone());
        let others = (0..stage.cluster.nodes.len()).filter(|other| *other != leader);
        let others: Vec<String> = others.map(|other| stage.cluster.nodes[other].address.clone()).collect();
        let nodes = [std::slice::from_ref(&node), &others[..]].concat();
        stage.block_on(async {
            let elsewhere = Keepers::open(&nodes, &format!("elsewhere/{round}"), PILED, ttl).await?;
            let there = Pile::open(&node, &format!("only-there/{round}"), PILED, ttl).await?;
            Ok(Self { there, elsewhere, others })
        })
    }

    /// Sends renewals for as long as the leader stands still, and notes when another one leads.
    fn grow(&mut self, stage: &Stage, leader: usize, began: At, still: Duration, found: &mut Found) {
        let (every, node) = (stage.shape.ttl / 4, stage.cluster.nodes[leader].address.clone());
        let (mut handover, mut next) = (None, began);
        // What is sent in the last moment may rightly be answered after it.
        let last = began.plus(still - stage.shape.ttl);
        while At::now() < began.plus(still) {
            if At::now() >= next && At::now() < last {
                next = next.plus(every);
                self.there.send(stage.runtime(), &node);
                found.piled += self.there.count();
            }
            let leads = |node: &String| numbers::ask(node).is_ok_and(|numbers| numbers.serving);
            if handover.is_none() && self.others.iter().any(leads) {
                handover = Some(At::now().since(began));
            }
            stage.pass(Duration::from_millis(5));
        }
        found.handovers.push(handover.unwrap_or(still));
    }

    /// Looks at what came of it all.
    fn judge(
        mut self,
        stage: &Stage,
        leader: usize,
        went_on: At,
        dead: Dead,
        found: &mut Found,
    ) -> Result<()> {
        let name = stage.cluster.nodes[leader].name.clone();
        stage.block_on(async {
            found.fates.extend(self.elsewhere.fates().await?);
            let answers = self.there.answers().await?;
            found.acknowledged.extend(acknowledged(&answers, &name, went_on, dead));
            self.there.close(&self.others[0]).await;
            anyhow::Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_that_may_not_be_is_found() {
        let answer = |sent, answered, confirmed| Answer {
            resource: "r".into(),
            sent: At(sent),
            answered: At(answered),
            confirmed,
        };
        let count = |answer: Answer, dead| acknowledged(&[answer], "n1", At(100), dead).len();
        assert_eq!(count(answer(50, 120, true), Dead::WhoeverRenewsOnlyThere), 1);
        assert_eq!(count(answer(50, 120, false), Dead::WhoeverRenewsOnlyThere), 0);
        assert_eq!(count(answer(50, 120, true), Dead::WhatIsAnsweredLate), 1);
        assert_eq!(count(answer(50, 60, true), Dead::WhatIsAnsweredLate), 0);
        assert_eq!(count(answer(50, 120, false), Dead::WhatIsAnsweredLate), 0);
    }
}
