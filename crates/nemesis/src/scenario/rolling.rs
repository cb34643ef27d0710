//! A rolling restart, as an upgrade does it: nobody but the operator should notice.

use std::time::Duration;

use anyhow::Result;

use crate::figures;
use crate::report::{Figure, Report};
use crate::scenario::leader::nobody_lost;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// How long a node may take to finish what is under way and hand over.
const ENDING: Duration = Duration::from_secs(10);

/// Every node is ended by SIGTERM and started again, one after the other.
pub(super) fn restart(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("rolling", options, options.nodes, Shape::default())?;
    stage.begin()?;
    let rounds = options.pick(5, 1);
    let nodes = stage.cluster.nodes.len();
    stage.progress.steps(rounds * nodes);
    for _ in 0..rounds {
        for node in 0..nodes {
            let name = stage.cluster.nodes[node].name.clone();
            stage.fault(&format!("SIGTERM to {name}"));
            stage.cluster.nodes[node].terminate(ENDING)?;
            stage.cluster.nodes[node].start()?;
            stage.healed(&format!("{name} starts again"));
            stage.cluster.whole(HEALING)?;
            stage.pass(Duration::from_millis(300));
            stage.progress.step();
        }
    }
    let lines = stage.heal()?;
    nobody_lost(&mut stage, &lines);
    let waits = figures::waits(&lines, |client| stage.shape.is_pulse(client));
    // The short form runs beside other tests.
    let slack = options.pick(1, 3);
    let (most, all) = (waits.per_mille(999), waits.longest());
    stage.figure(Figure::told("waits of calls that nobody contends for", waits.show()));
    stage.figure(Figure::bounded(
        "  of them, p99.9",
        format!("{most:?}"),
        most,
        Duration::from_millis(300) * slack,
    ));
    stage.figure(Figure::bounded(
        "  of them, longest",
        format!("{all:?}"),
        all,
        Duration::from_secs(1) * slack,
    ));
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}
