//! Directories that are damaged, and states that are set back.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::history::At;
use crate::random::Random;
use crate::report::{Figure, Report};
use crate::scenario::members;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// Every node in turn is killed, damaged in a place of its own, and started. It may mend itself from the others, or refuse to start
/// and be replaced; it may not serve what is wrong.
pub(super) fn damage(options: &Options) -> Result<Report> {
    let mut stage = Stage::new("damage", options, 3, Shape::default())?;
    stage.begin()?;
    let rounds = options.pick(9, 3);
    stage.progress.steps(rounds);
    let (mut mended, mut replaced) = (0, 0);
    for round in 0..rounds {
        let node = round % 3;
        let name = stage.cluster.nodes[node].name.clone();
        stage.pass(Duration::from_millis(500));
        stage.cluster.nodes[node].kill()?;
        let mut random = stage.random.split();
        let (file, place) = flip(&stage.cluster.nodes[node].data, &mut random)?;
        stage.fault(&format!("{name} is killed and a bit at {place} of its {file} is flipped"));
        stage.cluster.nodes[node].start()?;
        if refuses(&mut stage, node) {
            stage.cluster.nodes[node].forgive();
            stage.progress.say(&format!("{name} refuses to start and is replaced"));
            members::leave(&mut stage, node)?;
            stage.cluster.nodes[node].wipe()?;
            stage.cluster.nodes[node].beginning = crate::node::Beginning::Joins;
            members::join(&mut stage, node)?;
            members::promote(&mut stage, node)?;
            replaced += 1;
        } else {
            mended += 1;
        }
        stage.cluster.whole(HEALING)?;
        stage.progress.step();
    }
    let lines = stage.heal()?;
    stage.figure(Figure::told("damaged nodes that went on", format!("{mended}")));
    stage.figure(Figure::told("damaged nodes that refused and were replaced", format!("{replaced}")));
    let rules = stage.rules();
    Ok(stage.judged(&lines, rules))
}

/// A backup is taken, ten thousand grants later all nodes lose their directories, and the backup is restored. Tokens must go on
/// above every one that was given, and sessions of before must be over.
pub(super) fn restore(options: &Options) -> Result<Report> {
    let shape = Shape { pulses: 6, pulse_pause: Duration::ZERO, ..Shape::default() };
    let mut stage = Stage::new("restore", options, 3, shape)?;
    stage.begin()?;
    let backup = stage.file("backup");
    stage.cluster.operate(&["backup", &backup.to_string_lossy()])?;
    stage.fault("a backup is taken");
    let wanted = options.pick(10_000, 500);
    let end = At::now().plus(Duration::from_secs(300));
    while stage
        .recorder
        .lines()?
        .iter()
        .filter(|line| matches!(line.what, crate::history::What::Granted { .. }))
        .count()
        < wanted
    {
        if At::now() > end {
            bail!("there were not {wanted} grants within 300 s");
        }
        stage.pass(Duration::from_millis(500));
    }
    stage.fault("all directories are lost, and the backup is restored");
    for node in &mut stage.cluster.nodes {
        node.kill()?;
        node.wipe()?;
    }
    let (data, file) = (stage.cluster.nodes[0].data.clone(), backup.to_string_lossy().into_owned());
    let data = data.to_string_lossy().into_owned();
    let (name, address) = (stage.cluster.nodes[0].name.clone(), stage.cluster.nodes[0].address.clone());
    let how = ["--first-restore", "--holders-are-stopped", "--name", &name, "--listen-address", &address];
    stage.cluster.operate(&[&["restore", &file, "--data", &data][..], &how].concat())?;
    stage.cluster.nodes[0].beginning = crate::node::Beginning::Alone;
    stage.cluster.nodes[0].start()?;
    stage.cluster.leader(HEALING)?;
    for node in 1..3 {
        stage.cluster.nodes[node].beginning = crate::node::Beginning::Joins;
        members::join(&mut stage, node)?;
        members::promote(&mut stage, node)?;
    }
    let lines = stage.heal()?;
    // All leases end with a restore, so what was confirmed before is not honoured; the operator said that all holders are stopped.
    let rules = crate::check::Rules { honoured: false, exclusion: false, ..stage.rules() };
    Ok(stage.judged(&lines, rules))
}

/// Whether a node that was just started ends by itself.
fn refuses(stage: &mut Stage, node: usize) -> bool {
    let end = At::now().plus(Duration::from_secs(2));
    while At::now() < end {
        if !stage.cluster.nodes[node].is_running() {
            return true;
        }
        stage.pass(Duration::from_millis(20));
    }
    false
}

/// Flips a bit within what was written of one file of a directory. Gives the file's name and the place.
fn flip(directory: &Path, random: &mut Random) -> Result<(String, u64)> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.metadata()?.len() > 0 {
                files.push(path);
            }
        }
    }
    files.sort();
    // Only bytes that say something: a zero may lie beyond the end of the log, where nothing was written.
    let path = loop {
        if files.is_empty() {
            bail!("{} has nothing to damage", directory.display());
        }
        let path = files.swap_remove(random.below(files.len()));
        if std::fs::read(&path)?.iter().any(|byte| *byte != 0) {
            break path;
        }
    };
    let bytes = std::fs::read(&path)?;
    let written: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] != 0).collect();
    let place = written[random.below(written.len())];
    let file = OpenOptions::new().write(true).open(&path);
    let file = file.with_context(|| format!("{} cannot be opened", path.display()))?;
    let place_in_file = u64::try_from(place).expect("a place in a file");
    file.write_all_at(&[bytes[place] ^ (1 << random.below(8))], place_in_file)?;
    file.sync_all()?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok((name, place_in_file))
}
