//! All systems in one run: the same load on each, in turn, every result kept as soon as it is there.
//!
//! Promises: repeats alternate between systems, in turned order every second time; a run that was interrupted goes on behind its last result; a
//! system that fails is named with its reason and does not end the others' run.
//!
//! What it deliberately does not do: it judges no figure. The report puts them side by side and says which can be told apart.

mod legend;
pub mod machine;
pub mod medians;
pub mod plan;
pub mod plot;
pub mod quiet;
pub mod report;
pub mod results;
pub mod shown;
mod summary;
mod verdict;
pub mod when;

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::clock::now_ns;
use crate::peers::{Peer, Running, Tools, usage};
use crate::workloads::{Figures, Spec, Work};
pub use medians::table;
use plan::{Plan, Round};
use quiet::Quiet;
use results::{Kept, Key, Line, Outcome};

/// What is to be done, and with what.
#[derive(Debug, Clone)]
pub struct Contest {
    /// What is measured.
    pub plan: Plan,
    /// Where programs are and data goes.
    pub tools: Tools,
    /// This program, to put load with.
    pub load: PathBuf,
}

/// Runs what is not among the results yet.
///
/// # Errors
/// When results cannot be kept. A system that fails is a result.
pub fn run(contest: &Contest, kept: &mut Kept) -> Result<()> {
    let rounds = contest.plan.rounds();
    let all: usize = rounds.iter().map(|round| round.works.len()).sum();
    let (mut done, begun) = (0, now_ns());
    let commit = when::commit();
    let mut disk = Quiet::learn(&contest.tools.data)?;
    for round in rounds {
        let left: Vec<Work> =
            round.works.iter().copied().filter(|work| !kept.has(&key(&round, *work))).collect();
        let here = round.works.len() - left.len();
        done += here;
        if left.is_empty() {
            continue;
        }
        let mut running = contest.start(&round);
        for work in left {
            show(done, all, begun, &round, work);
            let outcome = match &mut running {
                Ok(running) => contest.measure(running, &round, work, &mut disk),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            let outcome =
                outcome.map_or_else(|error| Outcome::Failed(format!("{error:#}")), Outcome::Measured);
            if let Outcome::Failed(why) = &outcome {
                eprintln!("\n{} {}: {why}", round.peer.name(), work.size());
            }
            let (version, settings) = match &running {
                Ok(running) => (running.version.clone(), running.settings.clone()),
                Err(_) => Default::default(),
            };
            let (key, day, commit) = (key(&round, work), Some(when::today()), commit.clone());
            kept.add(Line { key, version, settings, outcome, day, commit })?;
            done += 1;
        }
    }
    show_end(all, begun);
    Ok(())
}

fn key(round: &Round, work: Work) -> Key {
    Key { peer: round.peer, nodes: round.nodes, repeat: round.repeat, work }
}

impl Contest {
    fn start(&self, round: &Round) -> Result<Running> {
        round.peer.start(&self.tools, round.nodes)
    }

    fn measure(&self, running: &mut Running, round: &Round, work: Work, disk: &mut Quiet) -> Result<Figures> {
        let (warm_up_ms, window_ms) = self.plan.times();
        let sync_us = disk.wait()?;
        let since_ns = now_ns();
        if matches!(work, Work::Restart { .. }) {
            running.restart()?;
        }
        let url = match (work, &running.beside_leader) {
            (Work::Expiry { kill_leader: true, .. }, Some(beside)) => beside.clone(),
            _ => running.url.clone(),
        };
        let pids = running.pids();
        let leader = running.nodes[running.leader].pid();
        let disk = usage::disk_of(&self.tools.data).ok();
        let spec = Spec { peer: round.peer, url, pids, work, disk, leader, since_ns, warm_up_ms, window_ms };
        let mut load = Command::new(&self.load);
        let load = within(LONGEST, load.args(["load", &serde_json::to_string(&spec)?]))?;
        let said = String::from_utf8_lossy(&load.stderr);
        ensure!(load.status.success(), "the load ended with {}: {}", load.status, said.trim());
        let figures: Figures =
            serde_json::from_slice(&load.stdout).context("the load says something else than figures")?;
        Ok(figures.with("disk_sync_before_us", sync_us))
    }
}

/// A size that needs longer is cut, and the report says so.
const LONGEST: Duration = Duration::from_secs(300);
/// How often somebody looks whether the load has ended: seldom enough to cost nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a program says that ends in time. It must not say more than a pipe holds.
fn within(longest: Duration, command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("the load does not start")?;
    let give_up = now_ns() + u64::try_from(longest.as_nanos())?;
    while child.try_wait()?.is_none() {
        if now_ns() > give_up {
            // It is gone already, or it is not.
            let _ = child.kill();
            child.wait()?;
            bail!("cut: it would take more than {} s", longest.as_secs());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(child.wait_with_output()?)
}

/// A bar on a terminal, a line elsewhere.
fn show(done: usize, all: usize, begun: u64, round: &Round, work: Work) {
    const WIDTH: usize = 24;
    let full = done * WIDTH / all.max(1);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
    let minutes = (now_ns() - begun) / 60_000_000_000;
    let Round { peer, nodes, repeat, .. } = round;
    let what = format!(
        "{done}/{all} {minutes} min: {} {}, {nodes} nodes, {}, repeat {}",
        peer.name(),
        work.letter(),
        work.size(),
        repeat + 1
    );
    let mut out = std::io::stderr();
    // A display that is gone stops nothing.
    let _ = if out.is_terminal() { write!(out, "\r\x1b[K{bar} {what}") } else { writeln!(out, "{what}") };
    let _ = out.flush();
}

fn show_end(all: usize, begun: u64) {
    let minutes = (now_ns() - begun) / 60_000_000_000;
    eprintln!("\n{all} measurements, {minutes} min in this run");
}

/// Systems that are asked for by name, or all.
pub fn peers(named: &[Peer]) -> Vec<Peer> {
    let mut all: Vec<Peer> = std::iter::once(Peer::Leasehold).chain(named.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_cut() {
        let short = Duration::from_millis(200);
        let cut = within(short, Command::new("sleep").arg("60")).unwrap_err();
        assert!(cut.to_string().starts_with("cut: "), "{cut}");
        let said = within(Duration::from_secs(20), Command::new("echo").arg("done")).unwrap();
        assert_eq!(said.stdout, b"done\n");
    }
}
