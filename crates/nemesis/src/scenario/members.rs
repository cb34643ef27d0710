//! Members that come and go, under load and under one holder whose token must not change.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::history::At;
use crate::report::Report;
use crate::scenario::leader::nobody_lost;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// How long a change of members may take, with asking again.
const CHANGE: Duration = Duration::from_secs(15);

/// Three nodes are replaced by three others, one after the other.
pub(super) fn replace_all(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("replace-all", options, 3, Shape::default())?;
    for _ in 0..3 {
        let new = stage.cluster.add()?;
        stage.cluster.nodes[new].idle = true;
    }
    stage.begin()?;
    stage.progress.steps(3);
    for old in 0..3 {
        let new = old + 3;
        join(&mut stage, new)?;
        promote(&mut stage, new)?;
        leave(&mut stage, old)?;
        stage.progress.step();
    }
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}

/// One node becomes three in place, and the first is killed at every step.
pub(super) fn grow(options: &Options) -> Result<Report> {
    // The only voter is away for a moment at each step, so leases must be longer than that.
    let mut stage =
        Stage::new("grow", options, 1, Shape { keeper_ttl: Duration::from_secs(5), ..Shape::default() })?;
    for _ in 0..2 {
        let new = stage.cluster.add()?;
        stage.cluster.nodes[new].idle = true;
    }
    stage.begin()?;
    stage.progress.steps(4);
    for new in 1..3 {
        for step in [join, promote] {
            step(&mut stage, new)?;
            stage.fault("kill -9 of n1, and a start");
            stage.cluster.nodes[0].kill()?;
            stage.cluster.nodes[0].start()?;
            stage.cluster.whole(HEALING)?;
            stage.pass(Duration::from_millis(500));
            stage.progress.step();
        }
    }
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}

/// Starts a node with an empty directory and adds it as a learner.
pub(super) fn join(stage: &mut Stage, node: usize) -> Result<()> {
    let (name, address) = (stage.cluster.nodes[node].name.clone(), stage.cluster.nodes[node].address.clone());
    stage.cluster.nodes[node].idle = false;
    stage.cluster.nodes[node].start()?;
    stage.fault(&format!("{name} joins"));
    again(stage, &["cluster", "add", &format!("{name}={address}")], |status_name, role| {
        status_name == name && role.is_some()
    })
}

/// Makes a learner a voter.
pub(super) fn promote(stage: &mut Stage, node: usize) -> Result<()> {
    let name = stage.cluster.nodes[node].name.clone();
    stage.fault(&format!("{name} becomes a voter"));
    again(stage, &["cluster", "promote", &name], |status_name, role| {
        status_name == name && role == Some("voter")
    })
}

/// Removes a member, which ends.
pub(super) fn leave(stage: &mut Stage, node: usize) -> Result<()> {
    let name = stage.cluster.nodes[node].name.clone();
    stage.fault(&format!("{name} is removed"));
    again(stage, &["cluster", "remove", &name], |status_name, role| status_name == name && role.is_none())?;
    stage.cluster.nodes[node].idle = true;
    stage.pass(Duration::from_millis(500));
    // A member that was removed stops by itself, or is stopped.
    stage.cluster.nodes[node].forgive();
    if stage.cluster.nodes[node].is_running() {
        stage.cluster.nodes[node].kill()?;
    }
    Ok(())
}

/// Asks until the status says that it is done: an answer may be lost, or tell to ask again. `done` is given a name and its role;
/// no role is no member.
fn again(stage: &mut Stage, words: &[&str], done: impl Fn(&str, Option<&str>) -> bool) -> Result<()> {
    let name = words[2].split('=').next().unwrap_or_default();
    let end = At::now().plus(CHANGE);
    loop {
        let asked = stage.cluster.operate(words);
        if let Ok(status) = stage.cluster.status() {
            let role =
                status.members.iter().find(|member| member.name == name).map(|member| member.role.as_str());
            if done(name, role) {
                return Ok(());
            }
        }
        if At::now() > end {
            asked.with_context(|| format!("not within {CHANGE:?}"))?;
            bail!("leasehold {} says it is done, and the status says it is not", words.join(" "));
        }
        stage.pass(Duration::from_millis(100));
    }
}
