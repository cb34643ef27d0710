//! Clocks: times of day that jump, clocks that are ahead by years, clocks that run too fast.

use std::time::Duration;

use anyhow::Result;

use crate::check::story::Story;
use crate::check::{Rules, renewals};
use crate::clock_shim::{Shim, Wall};
use crate::report::{Figure, Report};
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// An hour and ten years, forwards and back.
const STEPS: [i64; 4] = [3600, -3600, 315_360_000, -315_360_000];

/// Every rate is within the bound, times of day jump, and one node's clocks are ahead: nothing may be noticed.
pub(super) fn within(options: &Options) -> Result<Report> {
    let (stage, lines) = turn(options, "clocks", [1.001, 0.999, 1.0])?;
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}

/// All clocks of the service run five percent too fast, fifty times the bound. Leases then end too early, so a renewal is not
/// honoured for its whole ttl; but the margin is a tenth of the ttl, so no two holders believe at once.
pub(super) fn beyond(options: &Options) -> Result<Report> {
    let (mut stage, lines) = turn(options, "fast-clocks", [1.05, 1.05, 1.05])?;
    // If nothing ended early, the clocks were right, and nothing was shown.
    let early = renewals::check(&Story::of(&lines)).violations.len();
    stage.figure(Figure::told("leases that ended early", early.to_string()));
    let none = (early == 0).then(|| "no lease ended early: the clocks were not too fast".to_owned());
    stage.judge("the clocks are too fast indeed", early, none.into_iter().collect());
    let rules = Rules { honoured: false, ..stage.rules() };
    Ok(stage.judged(&lines, rules))
}

fn turn(
    options: &Options,
    name: &'static str,
    rates: [f64; 3],
) -> Result<(Stage, Vec<crate::history::Line>)> {
    let shape = Shape { stranded: 2, ..Shape::default() };
    let mut stage = Stage::new(name, options, options.nodes, shape)?;
    let shim = Shim::compile(&stage.home)?;
    let nodes = stage.cluster.nodes.len();
    for number in 0..nodes {
        let rate = rates[number % rates.len()];
        let wall = Wall::create(stage.file(&format!("wall-{number}")))?;
        let node = &mut stage.cluster.nodes[number];
        node.use_shim(shim.clone());
        node.clocks.rate = (rate != 1.0).then_some(rate);
        node.clocks.wall = Some(wall);
    }
    // Eleven days: nobody compares the clocks of two machines.
    stage.cluster.nodes[nodes - 1].clocks.offset = 1_000_000;
    stage.begin()?;
    let rounds = options.pick(20, 4);
    stage.progress.steps(rounds);
    for _ in 0..rounds {
        let (node, step) = (stage.random.below(nodes), STEPS[stage.random.below(STEPS.len())]);
        stage.fault(&format!("the time of day of n{} is wrong by {step} s", node + 1));
        if let Some(wall) = &stage.cluster.nodes[node].clocks.wall {
            wall.step_to(step)?;
        }
        stage.pass(Duration::from_millis(700));
        let leader = stage.cluster.leader(HEALING)?;
        stage.fault(&format!("kill -9 of n{}, which leads, and a start", leader + 1));
        stage.cluster.nodes[leader].kill()?;
        stage.cluster.nodes[leader].start()?;
        stage.cluster.whole(HEALING)?;
        stage.pass(Duration::from_millis(1500));
        stage.progress.step();
    }
    let lines = stage.heal()?;
    Ok((stage, lines))
}
