//! Members that come and go, under load and under one holder whose token must not change.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cluster::until;
use crate::report::{Figure, Report};
use crate::scenario::leader::nobody_lost;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// How long a change of members may take, with asking again.
const CHANGE: Duration = Duration::from_secs(15);
/// How long a change is on its way at most before the first node is killed.
const ON_ITS_WAY: Duration = Duration::from_millis(60);

/// One node becomes three in place. The first is killed while every step is on its way, and after it.
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
    let mut kills = 0;
    for new in 1..3 {
        stage.cluster.nodes[new].idle = false;
        stage.cluster.nodes[new].start()?;
        for step in [add, promote] {
            kills += killed_within(&mut stage, new, step)?;
            stage.cluster.whole(HEALING)?;
            stage.fault("kill -9 of n1 after the step, and a start");
            stage.cluster.nodes[0].kill()?;
            stage.cluster.nodes[0].start()?;
            kills += 1;
            stage.cluster.whole(HEALING)?;
            stage.pass(Duration::from_millis(500));
            stage.progress.step();
        }
    }
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    stage.figure(Figure::main("kills of the first node", kills.to_string()));
    Ok(stage.finished(&lines))
}

/// Asks for a step, kills the first node while it is on its way, and asks again until it is done.
fn killed_within(stage: &mut Stage, new: usize, step: fn(&mut Stage, usize) -> Result<()>) -> Result<usize> {
    let name = stage.cluster.nodes[new].name.clone();
    let member = format!("{name}={}", stage.cluster.nodes[new].address);
    let is_member = stage.cluster.status()?.members.iter().any(|member| member.name == name);
    let words = if is_member { ["cluster", "promote", &name] } else { ["cluster", "add", &member] };
    let mut command = stage.cluster.command();
    command.args(["--timeout", "3s"]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut asked = command.spawn().context("an operator's command does not start")?;
    let on_its_way = stage.random.between(&(Duration::ZERO..ON_ITS_WAY));
    stage.pass(on_its_way);
    stage.fault(&format!("kill -9 of n1 within {}, and a start", words.join(" ")));
    stage.cluster.nodes[0].kill()?;
    stage.cluster.nodes[0].start()?;
    asked.wait().context("an operator's command cannot be waited for")?;
    step(stage, new).map(|()| 1)
}

/// Starts a node with an empty directory and adds it as a learner.
pub(super) fn join(stage: &mut Stage, node: usize) -> Result<()> {
    stage.cluster.nodes[node].idle = false;
    stage.cluster.nodes[node].start()?;
    add(stage, node)
}

/// Adds a node that runs as a learner.
fn add(stage: &mut Stage, node: usize) -> Result<()> {
    let (name, address) = (stage.cluster.nodes[node].name.clone(), stage.cluster.nodes[node].address.clone());
    stage.fault(&format!("{name} joins"));
    again(stage, &["cluster", "add", &format!("{name}={address}")], |role| role.is_some())
}

/// Makes a learner a voter.
pub(super) fn promote(stage: &mut Stage, node: usize) -> Result<()> {
    let name = stage.cluster.nodes[node].name.clone();
    stage.fault(&format!("{name} becomes a voter"));
    again(stage, &["cluster", "promote", &name], |role| role == Some("voter"))
}

/// Removes a member; if it runs, it is left to stop by itself.
pub(super) fn remove(stage: &mut Stage, node: usize) -> Result<()> {
    let name = stage.cluster.nodes[node].name.clone();
    stage.fault(&format!("{name} is removed"));
    again(stage, &["cluster", "remove", &name], |role| role.is_none())?;
    stage.cluster.nodes[node].idle = true;
    Ok(())
}

/// Asks until the status says that it is done: an answer may be lost, or tell to ask again. `done` is given the role of the node that the
/// words name; no role is no member.
fn again(stage: &Stage, words: &[&str], done: fn(Option<&str>) -> bool) -> Result<()> {
    let name = words[2].split('=').next().unwrap_or_default();
    until(CHANGE, Duration::from_millis(100), || {
        let asked = stage.cluster.operate(words);
        if let Ok(status) = stage.cluster.status() {
            let member = status.members.iter().find(|member| member.name == name);
            if done(member.map(|member| member.role.as_str())) {
                return Ok(());
            }
        }
        asked?;
        bail!("leasehold {} says it is done, and the status says it is not", words.join(" "));
    })
}
