//! Leaders that die.

use std::time::Duration;

use anyhow::Result;

use crate::figures;
use crate::history::{ClientId, Event, Line};
use crate::report::{Figure, Report};
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// Nothing is broken, on one node: shows that the harness itself breaks nothing.
pub(super) fn calm(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("calm", options, 1, Shape::default())?;
    stage.begin()?;
    stage.pass(options.pick(Duration::from_secs(20), Duration::from_secs(3)));
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    Ok(stage.finished(&lines))
}

/// The leader is killed, again and again. No live holder may lose its lease: every outage is shorter than a ttl.
pub(super) fn kill(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("kill-leader", options, options.nodes, Shape::default())?;
    stage.begin()?;
    let kills = options.rounds(50, 6);
    stage.progress.steps(kills);
    for _ in 0..kills {
        let leader = stage.cluster.leader(HEALING)?;
        let name = stage.cluster.nodes[leader].name.clone();
        stage.fault(&format!("kill -9 of {name}, which leads"));
        stage.cluster.nodes[leader].kill()?;
        let away = stage.random.between(&(Duration::from_millis(50)..Duration::from_millis(1500)));
        stage.pass(away);
        stage.cluster.nodes[leader].start()?;
        stage.healed(&format!("{name} starts again"));
        // Two of three must run at any time, or the outage is the scenario's own.
        stage.cluster.whole(HEALING)?;
        let quiet = stage.random.between(&(Duration::from_millis(100)..Duration::from_millis(600)));
        stage.pass(quiet);
        stage.progress.step();
    }
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    let gaps = figures::gaps(&lines);
    // The short form runs beside other tests.
    let bound = options.pick(Duration::from_secs(1), Duration::from_secs(3));
    stage.figure(Figure::main("a new grant after a kill", gaps.show()));
    stage.figure(Figure::bounded("  of them, p99", gaps.per_mille(990), bound));
    Ok(stage.finished(&lines))
}

/// No client loses a lease, and a client that keeps one has it from the beginning to the end.
pub(super) fn nobody_lost(stage: &mut Stage, lines: &[Line<'_>]) {
    let mut violations = Vec::new();
    let mut kept = 0;
    for line in lines {
        match &line.event {
            Event::Lost { client, token, why, .. } if !stage.shape.is_stranded(ClientId::of(client)) => {
                let ms = line.at.0 / 1_000_000;
                violations.push(format!("client {client} lost token {token} at {ms} ms: {why}"));
            }
            Event::Granted { client, token, .. } if stage.shape.is_keeper(ClientId::of(client)) => {
                kept += 1;
                if kept > stage.shape.keepers {
                    violations.push(format!("client {client} had to ask again and got token {token}"));
                }
            }
            _ => {}
        }
    }
    let granted = figures::count(lines, |event| matches!(event, Event::Granted { .. }));
    stage.judge("no live holder loses its lease", granted, violations);
}
