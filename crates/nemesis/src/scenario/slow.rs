//! Leaders that stand still: the process, or its disk.

use std::time::Duration;

use anyhow::Result;

use crate::disk::Disk;
use crate::figures;
use crate::report::{Figure, Report};
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// The leader is stopped for three ttls and goes on with its sockets full of what was said meanwhile.
pub(super) fn stop(options: &Options) -> Result<Report> {
    let shape = Shape { ttl: Duration::from_secs(1), ..Shape::default() };
    let still = shape.ttl * 3;
    let mut stage = Stage::new("stop-leader", options, options.nodes, shape)?;
    stage.begin()?;
    let rounds = options.pick(10, 2);
    stage.progress.steps(rounds);
    for _ in 0..rounds {
        let leader = stage.cluster.leader(HEALING)?;
        let name = stage.cluster.nodes[leader].name.clone();
        stage.fault(&format!("{name}, which leads, stands still"));
        stage.cluster.nodes[leader].stop()?;
        stage.pass(still);
        stage.cluster.nodes[leader].cont()?;
        stage.healed(&format!("{name} goes on"));
        stage.cluster.whole(HEALING)?;
        stage.pass(Duration::from_millis(500));
        stage.progress.step();
    }
    let lines = stage.heal()?;
    let gaps = figures::gaps(&lines);
    stage.figure(Figure::bounded(
        "grants again, longest",
        format!("{:?}", gaps.longest()),
        gaps.longest(),
        still,
    ));
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
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
    let rounds = options.pick(8, 2);
    stage.progress.steps(rounds);
    for _ in 0..rounds {
        let leader = stage.cluster.leader(HEALING)?;
        let name = stage.cluster.nodes[leader].name.clone();
        stage.fault(&format!("the disk of {name}, which leads, stands still"));
        disks[leader].freeze()?;
        stage.pass(still);
        disks[leader].thaw()?;
        stage.healed(&format!("the disk of {name} goes on"));
        stage.cluster.whole(HEALING)?;
        stage.pass(Duration::from_millis(500));
        stage.progress.step();
    }
    let lines = stage.heal()?;
    let gaps = figures::gaps(&lines);
    stage.figure(Figure::bounded(
        "grants again, longest",
        format!("{:?}", gaps.longest()),
        gaps.longest(),
        still / 2,
    ));
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}
