//! Directories that are damaged: repaired from the others or refused with the place, never served.

use std::time::Duration;

use anyhow::Result;

use crate::check::Rules;
use crate::history::At;
use crate::numbers;
use crate::report::{Figure, Report};
use crate::scenario::{members, restore};
use crate::stage::{HEALING, Options, Stage};
use crate::vandal::{self, Damage, Kind};
use crate::workload::Shape;

/// How long a damaged node has to refuse.
const REFUSING: Duration = Duration::from_secs(3);

/// What became of damaged nodes.
#[derive(Debug, Default)]
struct Fates {
    went_on: usize,
    refused: usize,
    without_place: Vec<String>,
    served: Vec<String>,
}

/// Every node in turn is killed, damaged in another way, and started; one that refuses is replaced. At the end all three are damaged
/// at once, each in another way, and what is left is a backup.
pub(super) fn damage(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("damage", options, 3, Shape::default())?;
    stage.begin()?;
    let rounds = options.rounds(12, 3);
    stage.progress.steps(rounds + 1);
    let mut fates = Fates::default();
    for round in 0..rounds {
        let node = round % 3;
        stage.pass(Duration::from_millis(500));
        let kind = Kind::ALL[round % Kind::ALL.len()];
        stage.cluster.nodes[node].kill()?;
        let damage = strike(&mut stage, node, kind)?;
        stage.cluster.nodes[node].start()?;
        if refuses(&mut stage, node, &damage, &mut fates) {
            stage.progress.say(&format!("{} is replaced", stage.cluster.nodes[node].name));
            members::remove(&mut stage, node)?;
            stage.cluster.nodes[node].wipe()?;
            stage.cluster.nodes[node].beginning = crate::node::Beginning::Joins;
            members::join(&mut stage, node)?;
            members::promote(&mut stage, node)?;
        }
        stage.cluster.whole(HEALING)?;
        stage.progress.step();
    }
    let last = all_at_once(&mut stage, &mut fates)?;
    stage.progress.step();
    let lines = stage.heal()?;
    let Fates { went_on, refused, without_place, served } = fates;
    stage.figure(Figure::main("damaged nodes that went on", went_on.to_string()));
    stage.figure(Figure::main("damaged nodes that refused", refused.to_string()));
    stage.judge("a node that refuses names the place", refused, without_place);
    stage.judge("what is damaged is not served", 1, served);
    // The restore at the end is another life; everything before it keeps every rule.
    let rules = stage.rules();
    let before = lines.partition_point(|line| line.at < last);
    stage.judge_part(&lines[..before], Rules { healing: None, ..rules });
    Ok(stage.judged(&lines, Rules { honoured: false, exclusion: false, ..rules }))
}

/// All three logs are damaged at once. A majority must not go on as if nothing had happened; then the backup is restored. Gives
/// when the damage began.
fn all_at_once(stage: &mut Stage, fates: &mut Fates) -> Result<At> {
    let backup = stage.file("backup");
    stage.cluster.operate(&["backup", &backup.to_string_lossy()])?;
    let began = stage.fault("all nodes are killed and damaged");
    let mut damages = Vec::new();
    for node in 0..3 {
        stage.cluster.nodes[node].kill()?;
        damages.push(strike(stage, node, Kind::OF_LOGS[node])?);
    }
    for node in 0..3 {
        stage.cluster.nodes[node].start()?;
    }
    let mut running = Vec::new();
    for (node, damage) in damages.iter().enumerate() {
        if !refuses(stage, node, damage, fates) {
            running.push(node);
        }
    }
    for node in &running {
        let node = &stage.cluster.nodes[*node];
        if running.len() < 2 && numbers::ask(&node.address).is_ok_and(|numbers| numbers.serving) {
            fates.served.push(format!("{} leads and answers without a majority", node.name));
        }
    }
    for node in running {
        stage.cluster.nodes[node].kill()?;
    }
    restore::begin_again(stage, &backup, &["--first-restore", "--holders-are-stopped"], 1)?;
    restore::grow_again(stage)?;
    Ok(began)
}

fn strike(stage: &mut Stage, node: usize, kind: Kind) -> Result<Damage> {
    let mut random = stage.random.split();
    let damage = vandal::strike(&stage.cluster.nodes[node].data, kind, &mut random)?;
    stage.fault(&format!("{} was killed, and {damage}", stage.cluster.nodes[node].name));
    Ok(damage)
}

/// Whether a damaged node that was just started ends by itself. If it does, it must say which file is damaged.
fn refuses(stage: &mut Stage, node: usize, damage: &Damage, fates: &mut Fates) -> bool {
    let node = &mut stage.cluster.nodes[node];
    let Some(said) = node.ends_by_itself(REFUSING) else {
        fates.went_on += 1;
        return false;
    };
    fates.refused += 1;
    let last = said.lines().last().unwrap_or("nothing").to_owned();
    // A small file is a place of its own.
    let names_place = damage.kind == Kind::FlipAny || said.contains("at byte ");
    if !said.contains(&damage.file) || !names_place {
        fates.without_place.push(format!("{}: {damage}, and it said: {last}", node.name));
    }
    let name = node.name.clone();
    stage.progress.say(&format!("{name} refuses: {last}"));
    true
}
