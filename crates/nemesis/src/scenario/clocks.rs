//! Clocks: times of day that jump and run, clocks that are ahead by days, clocks that run too fast.

use std::time::Duration;

use anyhow::Result;

use leasehold_history::check::{Knowledge, renewals, writes};

use crate::check::{self, Rules};
use crate::clock_shim::{Shim, Wall};
use crate::history::{At, Line, Now};
use crate::numbers;
use crate::report::{Figure, Report};
use crate::scenario::leader::nobody_lost;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// An hour and ten years, forwards and back.
const STEPS: [i64; 4] = [3600, -3600, 315_360_000, -315_360_000];
/// How fast the time of day runs on each node.
const WALL_RATES: [f64; 3] = [2.0, 0.5, 1.0];
/// By how many seconds the clocks of each node are ahead, each in a time namespace of its own: nobody compares those of two machines.
const AHEAD: [u64; 3] = [0, 5_000, 1_000_000];
/// What counts as a clock that a metric shows to be wrong, or right.
const SHOWN: f64 = 0.03;

/// Every rate is within the bound, times of day jump and run at any speed, and clocks are ahead: nothing may be noticed.
pub(super) fn within(options: &Options) -> Result<Report> {
    let shape = Shape { stranded: 2, ..Shape::default() };
    let (mut stage, lines, rate) = turn(options, "clocks", [1.001, 0.999, 1.0], shape)?;
    nobody_lost(&mut stage, &lines);
    let wrong = (rate - 1.0).abs() > SHOWN;
    let wrong = wrong.then(|| format!("log time runs at {rate:.4} although clocks are within the bound"));
    stage.judge("log time runs as it should", 1, wrong.into_iter().collect());
    Ok(stage.finished(&lines))
}

/// All clocks of the service run five percent too fast, fifty times the bound. Leases then end too early, so a renewal is not
/// honoured for its whole ttl; but the margin is a tenth of the ttl, so no two holders believe at once. No register takes a stale
/// write, and a metric shows the clock.
pub(super) fn beyond(options: &Options) -> Result<Report> {
    let shape = Shape { stranded: 2, callers: 6, writes: true, ..Shape::default() };
    let (mut stage, lines, rate) = turn(options, "fast-clocks", [1.05, 1.05, 1.05], shape)?;
    let story = check::story(&lines);
    // If nothing ended early, the clocks were right, and nothing was shown.
    let early = usize::try_from(renewals::check(&story, Knowledge::default()).found).unwrap_or(usize::MAX);
    stage.figure(Figure::main("leases that ended early", early.to_string()));
    let none = (early == 0).then(|| "no lease ended early: the clocks were not too fast".to_owned());
    stage.judge("the clocks are too fast indeed", early, none.into_iter().collect());
    let (stale, writes) = (writes::fenced_off(&story), story.writes.len());
    stage.figure(Figure::main("writes to registers", format!("{writes}, refused by their token {stale}")));
    let none = (stale == 0).then(|| "no stale write reached the fence: it had nothing to refuse".to_owned());
    stage.judge("stale writes reach the fence", stale, none.into_iter().collect());
    let hidden = (rate - 1.0 < SHOWN).then(|| format!("log time runs at {rate:.4}, which shows nothing"));
    stage.judge("a metric shows the clock", 1, hidden.into_iter().collect());
    let rules = Rules { honoured: false, ..stage.rules() };
    Ok(stage.judged(&lines, rules))
}

/// Gives the stage, the history, and how fast log time ran.
fn turn(
    options: &Options,
    name: &'static str,
    rates: [f64; 3],
    shape: Shape,
) -> Result<(Stage, Vec<Line<'static>>, f64)> {
    let mut stage = Stage::new(name, options, options.nodes, shape)?;
    let shim = Shim::compile(&stage.home)?;
    let nodes = stage.cluster.nodes.len();
    for number in 0..nodes {
        let rate = rates[number % rates.len()];
        let wall =
            Wall::create(stage.file(&format!("wall-{number}")), WALL_RATES[number % WALL_RATES.len()])?;
        let node = &mut stage.cluster.nodes[number];
        node.use_shim(shim.clone());
        node.clocks.rate = (rate != 1.0).then_some(rate);
        node.clocks.wall = Some(wall);
        node.clocks.offset = AHEAD[number % AHEAD.len()];
    }
    stage.begin()?;
    let rounds = options.rounds(20, 4);
    stage.progress.steps(rounds + 1);
    let rate = log_time_rate(&stage, options.pick(Duration::from_secs(20), Duration::from_secs(5)))?;
    stage.figure(Figure::main("seconds of log time in a second", format!("{rate:.4}")));
    stage.progress.step();
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
    Ok((stage, lines, rate))
}

/// How fast log time runs, as the metrics of the leader say to somebody whose clock is right. What was cut from it counts: that is
/// said too, and a machine that stands still is not one whose clock is wrong.
fn log_time_rate(stage: &Stage, length: Duration) -> Result<f64> {
    let node = stage.cluster.nodes[stage.cluster.leader(HEALING)?].address.clone();
    let read = || -> Result<(At, f64)> {
        let time = numbers::metric(&node, "leasehold_log_time_seconds")?;
        let at = At::now();
        Ok((at, time + numbers::metric(&node, "leasehold_log_time_cut_seconds_total")?))
    };
    let (from, before) = read()?;
    stage.pass(length);
    let (to, after) = read()?;
    Ok((after - before) / to.since(from).as_secs_f64())
}
