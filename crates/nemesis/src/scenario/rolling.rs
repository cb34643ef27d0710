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
/// How long a request may wait, of 999 in a thousand and of all.
const MOST: Duration = Duration::from_millis(300);
const ALL: Duration = Duration::from_secs(1);

/// Every node is ended by SIGTERM and started again, one after the other, under one holder and a thousand leases that come and go.
pub(super) fn restart(options: &Options) -> Result<Report> {
    let crowds = options.pick(10, 2);
    let shape = Shape { keepers: 1, crowds, crowd_leases: options.pick(100, 50), ..Shape::default() };
    let mut stage = Stage::new("rolling", options, options.nodes, shape)?;
    stage.begin()?;
    let rounds = options.rounds(5, 1);
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
    let shape = stage.shape.clone();
    let requests = figures::requests(&lines, |client| shape.is_pulse(client) || shape.is_in_crowd(client));
    // The short form runs beside other tests.
    let slack = options.pick(1, 3);
    stage.figure(Figure::main("leases that come and go", (shape.crowds * shape.crowd_leases).to_string()));
    stage.figure(Figure::told("waits of acquires, releases and looks", requests.show()));
    stage.figure(Figure::bounded("  of them, p99.9", requests.per_mille(999), MOST * slack));
    stage.figure(Figure::bounded("  of them, longest", requests.longest(), ALL * slack));
    Ok(stage.finished(&lines))
}
