//! Links that break, in one direction or both, and always in silence.

use std::time::Duration;

use anyhow::Result;

use crate::figures;
use crate::history::{At, Now};
use crate::net::Spot;
use crate::report::{Figure, Report};
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// How long a majority may take to serve when it can be reached by everybody.
const AGAIN: Duration = Duration::from_secs(3);
/// The same while links break and heal at the pace of elections.
const AGAIN_FLAPPING: Duration = Duration::from_secs(5);
/// Half a period of links that flap: around the election timeout, which is drawn between 300 and 600 ms.
const FLAP: std::ops::Range<Duration> = Duration::from_millis(200)..Duration::from_millis(800);

/// Nothing that one node sends to another arrives; the worst is a leader that still hears everybody.
pub(super) fn one_way(options: &Options) -> Result<Report> {
    rounds("one-way", options, |stage, round, leader| {
        let other = (leader + 1 + stage.random.below(2)) % 3;
        let (next, last) = ((leader + 1) % 3, (leader + 2) % 3);
        // In turn: the leader is not heard by anybody, hears nobody, is not heard by one, and does not hear one.
        let cuts: Vec<(usize, usize)> = match round % 4 {
            0 => vec![(leader, next), (leader, last)],
            1 => vec![(next, leader), (last, leader)],
            2 => vec![(leader, other)],
            _ => vec![(other, leader)],
        };
        let words: Vec<String> =
            cuts.iter().map(|(from, to)| format!("n{} to n{}", from + 1, to + 1)).collect();
        stage.fault(&format!("nothing arrives from {} (n{} leads)", words.join(", "), leader + 1));
        cuts.into_iter().try_for_each(|(from, to)| stage.cluster.net.cut(Spot::Node(from), Spot::Node(to)))
    })
}

/// Two nodes do not reach each other, and both reach the third; the leader is one of the two, or the third.
pub(super) fn bridge(options: &Options) -> Result<Report> {
    rounds("bridge", options, |stage, round, leader| {
        let (one, other) = match round % 2 {
            0 => (leader, (leader + 1 + stage.random.below(2)) % 3),
            _ => ((leader + 1) % 3, (leader + 2) % 3),
        };
        let words = format!("n{} and n{} do not reach each other", one + 1, other + 1);
        stage.fault(&format!("{words} (n{} leads)", leader + 1));
        stage.cluster.net.part(Spot::Node(one), Spot::Node(other))
    })
}

/// Links break in every round, for two ttls, and a majority that everybody reaches must serve.
fn rounds(
    name: &'static str,
    options: &Options,
    breaks: fn(&mut Stage, usize, usize) -> Result<()>,
) -> Result<Report> {
    let mut stage = Stage::new(name, options, 3, Shape::default())?;
    stage.begin()?;
    let length = stage.shape.ttl * 2;
    let rounds = options.rounds(12, 2);
    stage.progress.steps(rounds);
    for round in 0..rounds {
        let leader = stage.cluster.leader(HEALING)?;
        breaks(&mut stage, round, leader)?;
        stage.pass(length);
        stage.cluster.net.mend_all()?;
        stage.healed("all links are whole");
        stage.cluster.whole(HEALING)?;
        stage.pass(Duration::from_millis(500));
        stage.progress.step();
    }
    let lines = stage.heal()?;
    stage.figure(Figure::bounded("grants again, longest", figures::gaps(&lines).longest(), AGAIN));
    Ok(stage.finished(&lines))
}

/// Links break and heal. At first those of one node, at the pace of elections: the others are a majority and must serve. Then any
/// link, faster than anybody can settle: there may be no grants for long; nothing may go wrong.
pub(super) fn flap(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("flap", options, options.nodes, Shape::default())?;
    stage.begin()?;
    let changes = options.rounds(250, 40);
    stage.progress.steps(changes + changes / 5);
    let (from, to) = flap_one(&mut stage, changes / 5)?;
    stage.cluster.whole(HEALING)?;
    flap_any(&mut stage, changes)?;
    let lines = stage.heal()?;
    let gap = figures::longest_gap(&lines, from, to);
    stage.figure(Figure::bounded("grants again while one node flaps, longest", gap, AGAIN_FLAPPING));
    Ok(stage.finished(&lines))
}

/// All links of one node to the others flap: of the leader, whoever that is. Gives from when to when.
fn flap_one(stage: &mut Stage, changes: usize) -> Result<(At, At)> {
    let began = At::now();
    let nodes = stage.cluster.nodes.len();
    for _ in 0..changes {
        // Nobody may lead just now; then the one that was to be cut off is any.
        let node = stage.cluster.leader(Duration::ZERO).unwrap_or_else(|_| stage.random.below(nodes));
        let others: Vec<usize> = (0..nodes).filter(|other| *other != node).collect();
        // In one direction or in both.
        let way = stage.random.below(3);
        for other in others {
            if way != 1 {
                stage.cluster.net.cut(Spot::Node(node), Spot::Node(other))?;
            }
            if way != 0 {
                stage.cluster.net.cut(Spot::Node(other), Spot::Node(node))?;
            }
        }
        let words = ["nobody hears", "nobody is heard by", "nothing passes to or from"];
        stage.fault(&format!("{} n{}", words[way], node + 1));
        let pause = stage.random.between(&FLAP);
        stage.pass(pause);
        stage.cluster.net.mend_all()?;
        stage.healed("all links are whole");
        let pause = stage.random.between(&FLAP);
        stage.pass(pause);
        stage.progress.step();
    }
    Ok((began, At::now()))
}

fn flap_any(stage: &mut Stage, changes: usize) -> Result<()> {
    let nodes = stage.cluster.nodes.len();
    let spots: Vec<Spot> = (0..nodes).map(Spot::Node).chain([Spot::Clients]).collect();
    let mut cut = Vec::new();
    for _ in 0..changes {
        // Half of the links at most are broken at once.
        if cut.len() * 2 >= nodes * (nodes + 1) || (!cut.is_empty() && stage.random.below(2) == 0) {
            let (from, to) = cut.swap_remove(stage.random.below(cut.len()));
            stage.cluster.net.mend(from, to)?;
            stage.healed(&format!("mended: {from:?} to {to:?}"));
        } else {
            let from = spots[stage.random.below(spots.len())];
            let to = spots[stage.random.below(spots.len())];
            if from != to && !cut.contains(&(from, to)) {
                stage.cluster.net.cut(from, to)?;
                stage.fault(&format!("cut: {from:?} to {to:?}"));
                cut.push((from, to));
            }
        }
        let pause = stage.random.between(&(Duration::from_millis(30)..Duration::from_millis(300)));
        stage.pass(pause);
        stage.progress.step();
    }
    Ok(())
}
