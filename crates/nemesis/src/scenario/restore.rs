//! States that are set back: a backup, restored after much was granted that it does not know of.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use leasehold::Token;

use crate::check::Rules;
use crate::cluster::until;
use crate::history::{At, Event, Line};
use crate::node::Beginning;
use crate::pile::{Pile, SESSION_ENDED};
use crate::report::{Figure, Report};
use crate::scenario::members;
use crate::stage::{HEALING, Options, Stage};
use crate::workload::Shape;

/// How long the grants after the backup may take.
const GRANTS: Duration = Duration::from_secs(300);
/// How soon the history is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Sessions of each kind that try to renew after the restore.
const OLD_HOLDERS: usize = 5;

/// A backup is taken, ten thousand grants later all directories are lost, and the backup is restored on new ones; and then once more.
pub(super) fn restore(options: &Options) -> Result<Report> {
    let max_ttl = options.pick(Duration::from_secs(20), Duration::from_secs(6));
    let shape = Shape { pulses: 6, pulse_pause: Duration::ZERO, ..Shape::default() };
    let mut stage = Stage::new("restore", options, 3, shape)?;
    for node in &mut stage.cluster.nodes {
        node.options.extend(["--max-ttl".to_owned(), format!("{}ms", max_ttl.as_millis())]);
    }
    stage.begin()?;
    stage.progress.steps(5);
    let node = stage.cluster.nodes[0].address.clone();
    // Their ttl is the longest there is: by their own clocks they still hold when the restored state is served.
    let in_file = stage.block_on(Pile::open(&node, "in-the-file", OLD_HOLDERS, max_ttl))?;
    let backup = stage.file("backup");
    stage.cluster.operate(&["backup", &backup.to_string_lossy()])?;
    stage.fault("a backup is taken");
    let behind = stage.block_on(Pile::open(&node, "behind-the-file", OLD_HOLDERS, max_ttl))?;
    stage.progress.step();
    let wanted = options.rounds(10_000, 500);
    grants_after(&stage, wanted)?;
    stage.progress.step();

    stage.fault("all directories are lost");
    for node in &mut stage.cluster.nodes {
        node.kill()?;
    }
    without_the_word(&mut stage, &backup)?;
    let first = begin_again(&mut stage, &backup, &["--first-restore"], 1)?;
    let renewed = stage.block_on(async { (in_file.statuses(&node).await, behind.statuses(&node).await) });
    let waited = waited(&mut stage, first, max_ttl)?;
    cannot_renew(&mut stage, &[renewed.0, renewed.1].concat());
    stage.progress.step();
    grow_again(&mut stage)?;
    grants_after(&stage, 100)?;
    stage.progress.step();

    stage.fault("all directories are lost once more");
    for node in &mut stage.cluster.nodes {
        node.kill()?;
    }
    // It is not the first any more: whoever restores again says above which token.
    without_the_word(&mut stage, &backup)?;
    let greatest = greatest(&stage)?;
    let words = ["--holders-are-stopped", "--above", &greatest];
    let second = begin_again(&mut stage, &backup, &words, 2)?;
    grow_again(&mut stage)?;
    stage.progress.step();
    let lines = stage.heal()?;
    let (compared, fell, renewed) = lives(&lines, &[first, second]);
    stage.judge("tokens are greater than all of the lives before", compared, fell);
    stage.judge("no lease of a life before is renewed", compared, renewed);
    stage.figure(Figure::main("grants between the backup and the restore", format!("at least {wanted}")));
    stage.figure(Figure::main("first grant after the restore", waited));
    let before = lines.partition_point(|line| line.at < first);
    // All leases end with a restore, so what was confirmed before is honoured up to it, and not over it.
    let rules = stage.rules();
    stage.judge_part(&lines[..before], Rules { healing: None, ..rules });
    Ok(stage.judged(&lines, Rules { honoured: false, exclusion: false, ..rules }))
}

/// Restores into new directories and starts the first node on it. Gives when it was started.
pub(super) fn begin_again(stage: &mut Stage, backup: &Path, words: &[&str], life: usize) -> Result<At> {
    for node in &mut stage.cluster.nodes {
        node.data = node.data.with_file_name(format!("data-{life}"));
        node.beginning = Beginning::Joins;
        node.idle = true;
    }
    let node = &mut stage.cluster.nodes[0];
    (node.beginning, node.idle) = (Beginning::Alone, false);
    let (name, address) = (node.name.clone(), node.address.clone());
    let (data, file) = (node.data.to_string_lossy().into_owned(), backup.to_string_lossy().into_owned());
    let place = ["data", "restore", &file, "--data", &data, "--name", &name, "--listen-address", &address];
    stage.cluster.operate(&[&place[..], words].concat())?;
    let started = stage.fault("the backup is restored and served");
    stage.cluster.nodes[0].start()?;
    stage.cluster.leader(HEALING)?;
    Ok(started)
}

/// The greatest token that anybody was granted.
fn greatest(stage: &Stage) -> Result<String> {
    let lines = stage.recorder.lines()?;
    let tokens = lines.iter().filter_map(|line| match &line.event {
        Event::Granted { token, .. } => Some(*token),
        _ => None,
    });
    let greatest = tokens.max().context("nothing was granted")?;
    Ok(greatest.to_string())
}

/// Adds the other two nodes.
pub(super) fn grow_again(stage: &mut Stage) -> Result<()> {
    for node in 1..3 {
        members::join(stage, node)?;
        members::promote(stage, node)?;
    }
    Ok(())
}

/// Waits for so many more grants.
fn grants_after(stage: &Stage, wanted: usize) -> Result<()> {
    let already = stage.recorder.grants();
    until(GRANTS, LOOK_AGAIN, || {
        let granted = stage.recorder.grants() - already;
        ensure!(granted >= wanted, "there were {granted} grants and not {wanted}");
        Ok(())
    })
}

/// A restore that says neither that it is the first nor above which token must be refused, and leave nothing behind.
fn without_the_word(stage: &mut Stage, backup: &Path) -> Result<()> {
    let data = stage.cluster.nodes[0].data.with_file_name("data-refused");
    let (file, place) = (backup.to_string_lossy().into_owned(), data.to_string_lossy().into_owned());
    let mut violations = Vec::new();
    match stage.cluster.operate(&["data", "restore", &file, "--data", &place]) {
        Ok(said) => violations.push(format!("a restore without --first-restore or --above was done: {said}")),
        Err(error) => {
            let said = format!("{error:#}");
            if !said.contains("--first-restore") {
                violations.push(format!("the refusal does not name the word that is needed: {said}"));
            }
        }
    }
    if data.exists() {
        violations.push(format!("{place} was made by a restore that was refused"));
    }
    stage.judge("a restore without the needed word is refused", 1, violations);
    Ok(())
}

/// Waits for the first grant of the new life, which may not come before the longest ttl has passed.
fn waited(stage: &mut Stage, restored: At, max_ttl: Duration) -> Result<String> {
    let first = until(max_ttl * 3 + HEALING, LOOK_AGAIN, || {
        let lines = stage.recorder.lines()?;
        let behind = &lines[lines.partition_point(|line| line.at <= restored)..];
        let granted = behind.iter().find(|line| matches!(line.event, Event::Granted { .. }));
        granted.map(|line| line.at).context("nothing was granted after the restore")
    })?;
    let (took, least) = (first.since(restored), stretched(max_ttl));
    let early =
        (took < least).then(|| format!("the first grant came {took:?} after the restore, before {least:?}"));
    stage.judge("nothing is granted before the longest ttl has passed", 1, early.into_iter().collect());
    Ok(format!("{:.3} s, may not be before {:.3} s", took.as_secs_f64(), least.as_secs_f64()))
}

/// A ttl with the default drift, 1000 in a million at either end.
fn stretched(ttl: Duration) -> Duration {
    Duration::from_nanos(u64::try_from(ttl.as_nanos() * 1_001_000 / 999_000).unwrap_or(u64::MAX))
}

fn cannot_renew(stage: &mut Stage, statuses: &[u16]) {
    let wrong = statuses.iter().filter(|status| **status != SESSION_ENDED);
    let wrong = wrong.map(|status| format!("a renewal of an old session was answered with status {status}"));
    stage.judge("old holders are told that their session has ended", statuses.len(), wrong.collect());
}

/// Every token of a life is greater than every one of the lives before, and no lease of a life before is confirmed in it. Gives how
/// many grants were compared, tokens that fell, and leases that were renewed.
fn lives(lines: &[Line<'_>], begins: &[At]) -> (usize, Vec<String>, Vec<String>) {
    let (mut compared, mut fell, mut renewed) = (0, Vec::new(), Vec::new());
    let mut greatest: Option<Token> = None;
    for (life, begin) in [At(0)].iter().chain(begins).enumerate() {
        let end = begins.get(life).copied().unwrap_or(At(u64::MAX));
        let known = greatest;
        for line in lines.iter().filter(|line| line.at >= *begin && line.at < end) {
            match &line.event {
                Event::Granted { client, token, .. } => {
                    compared += 1;
                    if known.is_some_and(|known| *token <= known) {
                        fell.push(format!("client {client} got token {token} in life {life}"));
                    }
                    greatest = greatest.max(Some(*token));
                }
                Event::Confirmed { client, token, .. } if known.is_some_and(|known| *token <= known) => {
                    renewed.push(format!("client {client} renewed token {token} in life {life}"));
                }
                _ => {}
            }
        }
    }
    (compared, fell, renewed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::planted::{confirmed, granted, ms};

    #[test]
    fn a_token_or_a_renewal_of_a_life_before_is_found() {
        let found = |lines: &[Line<'_>]| {
            let (_, fell, renewed) = lives(lines, &[ms(100), ms(200)]);
            (fell.len(), renewed.len())
        };
        let good =
            [granted(10, 1, "r", 5), confirmed(20, 1, 5), granted(110, 1, "r", 9), granted(210, 1, "r", 12)];
        assert_eq!(found(&good), (0, 0));
        assert_eq!(found(&[granted(10, 1, "r", 5), granted(110, 1, "r", 5)]), (1, 0));
        assert_eq!(
            found(&[granted(10, 1, "r", 5), granted(110, 1, "r", 9), granted(210, 1, "r", 7)]),
            (1, 0)
        );
        assert_eq!(found(&[granted(10, 1, "r", 5), confirmed(110, 1, 5)]), (0, 1));
    }

    #[test]
    fn the_drift_counts_at_both_ends() {
        let stretched = stretched(Duration::from_secs(10));
        assert!(stretched > Duration::from_millis(10_020) && stretched < Duration::from_millis(10_021));
    }
}
