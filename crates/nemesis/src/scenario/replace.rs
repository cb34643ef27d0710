//! Every node is replaced, and the old ones come back from their old directories: nothing is lost, and they influence nothing.

use std::time::Duration;

use anyhow::Result;

use crate::cluster::Status;
use crate::history::{At, Now};
use crate::net::Spot;
use crate::numbers;
use crate::report::{Figure, Report};
use crate::scenario::leader::nobody_lost;
use crate::scenario::members;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// What a node says that was removed.
const REMOVED: &str = "this node was removed from its cluster";
/// How long an old node may take to be told so and to stop.
const STOPPING: Duration = Duration::from_secs(10);
/// How long old nodes are left among themselves: many election timeouts.
const ALONE: Duration = Duration::from_secs(6);

/// What was found about nodes that came back.
#[derive(Debug, Default)]
struct Returns {
    count: usize,
    not_refused: Vec<String>,
    influence: Vec<String>,
}

/// Three nodes are replaced by three others, one after the other. The first and the third die before they are removed, so their
/// directories do not know of it; the second is removed while it runs. All that are gone come back after every step, and at the end
/// all together, at first cut off from the new ones.
pub(super) fn replace_all(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("replace-all", options, 3, Shape::default())?;
    for _ in 0..3 {
        let new = stage.cluster.add()?;
        stage.cluster.nodes[new].idle = true;
    }
    stage.begin()?;
    stage.progress.steps(4);
    let mut returns = Returns::default();
    for old in 0..3 {
        members::join(&mut stage, old + 3)?;
        members::promote(&mut stage, old + 3)?;
        if old == 1 {
            members::remove(&mut stage, old)?;
            stops(&mut stage, old, &mut returns);
        } else {
            let name = stage.cluster.nodes[old].name.clone();
            stage.fault(&format!("kill -9 of {name}, which is to be removed"));
            stage.cluster.nodes[old].kill()?;
            members::remove(&mut stage, old)?;
        }
        let gone: Vec<usize> = (0..=old).collect();
        come_back(&mut stage, &gone, &mut returns)?;
        stage.progress.step();
    }
    come_back_together(&mut stage, &mut returns)?;
    stage.progress.step();
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    let Returns { count, not_refused, influence } = returns;
    stage.figure(Figure::main("old nodes came back", format!("{count} times")));
    stage.judge("old nodes stop and say that they were removed", count, not_refused);
    stage.judge("old nodes influence nothing", count, influence);
    Ok(stage.finished(&lines))
}

/// Starts old nodes from their old directories, with every link whole.
fn come_back(stage: &mut Stage, old: &[usize], returns: &mut Returns) -> Result<()> {
    stage.cluster.whole(HEALING)?;
    let before = stage.cluster.status()?;
    start(stage, old)?;
    for node in old {
        stops(stage, *node, returns);
    }
    compare(stage, &before, returns)
}

/// Starts all old nodes at once while nothing passes between them and the new ones, and mends that after a while. Clients reach all.
fn come_back_together(stage: &mut Stage, returns: &mut Returns) -> Result<()> {
    stage.cluster.whole(HEALING)?;
    let before = stage.cluster.status()?;
    stage.fault("old and new nodes do not reach each other");
    for old in 0..3 {
        for new in 3..6 {
            stage.cluster.net.part(Spot::Node(old), Spot::Node(new))?;
        }
    }
    start(stage, &[0, 1, 2])?;
    let end = At::now().plus(ALONE);
    while At::now() < end {
        for old in 0..3 {
            let node = &stage.cluster.nodes[old];
            if numbers::ask(&node.address).is_ok_and(|numbers| numbers.serving) {
                returns.influence.push(format!("{} leads and answers after it was removed", node.name));
            }
        }
        stage.pass(Duration::from_millis(50));
    }
    stage.cluster.net.mend_all()?;
    stage.healed("old and new nodes reach each other");
    for old in 0..3 {
        stops(stage, old, returns);
    }
    compare(stage, &before, returns)
}

fn start(stage: &mut Stage, old: &[usize]) -> Result<()> {
    for old in old {
        let name = stage.cluster.nodes[*old].name.clone();
        stage.fault(&format!("{name} comes back from its old directory"));
        stage.cluster.nodes[*old].start()?;
    }
    Ok(())
}

/// An old node must stop by itself, and say why.
fn stops(stage: &mut Stage, old: usize, returns: &mut Returns) {
    returns.count += 1;
    let node = &mut stage.cluster.nodes[old];
    match node.ends_by_itself(STOPPING) {
        Some(said) if said.contains(REMOVED) => {}
        Some(said) => {
            let last = said.lines().last().unwrap_or("nothing").to_owned();
            returns.not_refused.push(format!("{} stopped and said: {last}", node.name));
        }
        None => {
            returns.not_refused.push(format!("{} still runs after {STOPPING:?}", node.name));
            // It must not run for the rest of the scenario.
            let _ = node.kill();
        }
    }
}

/// The cluster is what it was: the same members in the same life, and nobody was made to elect.
fn compare(stage: &Stage, before: &Status, returns: &mut Returns) -> Result<()> {
    let after = stage.cluster.status()?;
    for (what, was, is) in
        [("members", members_of(before), members_of(&after)), ("life", life_of(before), life_of(&after))]
    {
        if was != is {
            returns.influence.push(format!("the {what} were {was}, and are {is} after old nodes came back"));
        }
    }
    Ok(())
}

fn members_of(status: &Status) -> String {
    let all =
        status.members.iter().map(|one| format!("{} {} {} {}", one.name, one.id, one.role, one.address));
    let mut all: Vec<String> = all.collect();
    all.sort();
    all.join(", ")
}

fn life_of(status: &Status) -> String {
    format!("incarnation {}, epoch {}, term {}", status.incarnation, status.epoch, status.term)
}
