//! One name that is deployed again and again: start a new replica, wait until it is ready, end an old one, three times.

use std::collections::VecDeque;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;

use super::process::Process;
use super::progress::Progress;
use super::service::Service;
use super::{Plan, REPLICAS, now};
use crate::ledger::Ledger;

/// How it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Warm before it campaigns, and drained at its end.
    Warm,
    /// None of that.
    Naive,
}

/// What one deploy came to.
#[derive(Debug, Clone, Default)]
pub struct Deploy {
    /// From each leader's end to the next one's first possible write.
    pub handovers: Vec<Duration>,
}

impl Deploy {
    /// For how long nobody led.
    pub fn leaderless(&self) -> Duration {
        self.handovers.iter().sum()
    }
}

/// What the deploys of one name, or of many, came to.
#[derive(Debug, Clone, Default)]
pub struct LaneReport {
    /// The deploys.
    pub deploys: Vec<Deploy>,
    /// Items of work that were begun.
    pub items: usize,
    /// Begun, and never done.
    pub lost: usize,
    /// Done more than once.
    pub doubled: usize,
    /// Begun by one, cut off, and begun again by another: half of it was done twice.
    pub redone: usize,
    /// Leaders that began before the one before had ended.
    pub overlaps: usize,
}

impl LaneReport {
    /// All names together.
    pub fn of_all(lanes: Vec<Self>) -> Self {
        lanes.into_iter().fold(Self::default(), |mut all, lane| {
            all.deploys.extend(lane.deploys);
            all.items += lane.items;
            all.lost += lane.lost;
            all.doubled += lane.doubled;
            all.redone += lane.redone;
            all.overlaps += lane.overlaps;
            all
        })
    }
}

/// One name, the replicas that there are and were, and what they work on.
struct Lane<'a> {
    plan: &'a Plan,
    service: &'a Service,
    kind: Kind,
    name: String,
    ledger: String,
    running: VecDeque<Process>,
    gone: Vec<Process>,
}

/// A term as its leader told of it.
#[derive(Debug, Clone, Copy)]
struct Term {
    token: u64,
    leads: u64,
    ended: Option<u64>,
}

/// Deploys one name as often as planned.
///
/// # Errors
/// When a replica does not do what it is asked to at all.
pub fn run(
    plan: &Plan,
    service: &Service,
    kind: Kind,
    number: u32,
    progress: &Progress,
) -> Result<LaneReport> {
    let (word, each) = match kind {
        Kind::Warm => ("warm", plan.deploys.each),
        Kind::Naive => ("naive", plan.naive.each),
    };
    let ledger = service.file(&format!("{word}-{number}.ledger")).display().to_string();
    let name = format!("deploys/{word}-{number}");
    let mut lane = Lane { plan, service, kind, name, ledger, running: VecDeque::new(), gone: Vec::new() };
    // Not all at the same moment, so that one name's processes do not start whenever another's lease is handed over.
    std::thread::sleep(plan.warm_up * number / plan.deploys.lanes.max(plan.naive.lanes));
    for _ in 0..REPLICAS {
        lane.start()?;
    }
    for replica in &lane.running {
        replica.wait_for("ready", plan.warm_up)?;
    }
    lane.until_somebody_leads()?;
    let mut lengths = Vec::new();
    for _ in 0..each {
        let begun = now();
        lane.deploy()?;
        lengths.push((begun, now()));
        progress.deployed(kind);
    }
    lane.end_all()?;
    lane.report(&lengths)
}

impl Lane<'_> {
    fn start(&mut self) -> Result<()> {
        let label = format!("replica-{}", self.gone.len() + self.running.len());
        let mut command = match self.kind {
            Kind::Warm => Command::new(&self.plan.programs.replica),
            Kind::Naive => {
                let mut command = Command::new(&self.plan.programs.itself);
                command.args(["naive", "--ttl-ms", &self.plan.ttl.as_millis().to_string()]);
                command
            }
        };
        command.args(["--store", &self.service.url(), "--name", &self.name, "--label", &label]);
        command.args(["--ledger", &self.ledger]);
        command.args(["--warm-up-ms", &self.plan.warm_up.as_millis().to_string()]);
        command.args(["--item-ms", &self.plan.item.as_millis().to_string()]);
        self.running.push_back(Process::start(&mut command)?);
        Ok(())
    }

    /// One deploy: one by one, with one more than there should be meanwhile. Of the old ones it is always the leader that is ended, if it
    /// is among them: the order with the most handovers.
    fn deploy(&mut self) -> Result<()> {
        for old in (1..=REPLICAS as usize).rev() {
            self.start()?;
            let newest = self.running.back().context("one was just started")?;
            newest.wait_for("ready", self.plan.warm_up)?;
            if self.kind == Kind::Warm {
                self.until_somebody_leads()?;
            }
            let leader = self.running.iter().take(old).position(leads);
            self.end(leader.unwrap_or(0))?;
        }
        self.until_somebody_leads()
    }

    fn end(&mut self, place: usize) -> Result<()> {
        let mut replica = self.running.remove(place).context("there are as many as were started")?;
        replica.signal(Signal::TERM)?;
        let status = replica.ended(self.plan.item * 2)?;
        ensure!(self.kind == Kind::Naive || status.success(), "a replica ended with {status}");
        self.gone.push(replica);
        Ok(())
    }

    fn until_somebody_leads(&self) -> Result<()> {
        // A name whose holder died goes on after its ttl, and again after that of a waiter that died too.
        let until =
            now() + super::process::nanos(self.plan.ttl * 3 + self.plan.warm_up + Duration::from_secs(60));
        loop {
            if self.terms().last().is_some_and(|term| term.ended.is_none()) {
                return Ok(());
            }
            ensure!(now() < until, "nobody leads {}", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends those that wait first, so that nobody is made leader to be ended at once.
    fn end_all(&mut self) -> Result<()> {
        while !self.running.is_empty() {
            let waiting = self.running.iter().position(|replica| !leads(replica));
            self.end(waiting.unwrap_or(0))?;
        }
        Ok(())
    }

    /// All terms so far, in the order of their tokens.
    fn terms(&self) -> Vec<Term> {
        let mut terms = Vec::new();
        for replica in self.gone.iter().chain(&self.running) {
            let lines = replica.lines();
            for line in lines.iter().filter(|line| line.word == "leads") {
                let release = lines.iter().find(|end| end.word == "releases" && end.rest == line.rest);
                let ended = release.map(|end| end.at).or(match self.kind {
                    Kind::Warm => None,
                    Kind::Naive => replica.signalled(),
                });
                let Ok(token) = line.rest.parse() else { continue };
                terms.push(Term { token, leads: line.at, ended });
            }
        }
        terms.sort_by_key(|term| term.token);
        terms
    }

    fn report(&self, lengths: &[(u64, u64)]) -> Result<LaneReport> {
        let mut report =
            LaneReport { deploys: vec![Deploy::default(); lengths.len()], ..LaneReport::default() };
        for pair in self.terms().windows(2) {
            let ended = pair[0].ended.with_context(|| format!("token {} never ended", pair[0].token))?;
            if pair[1].leads < ended {
                report.overlaps += 1;
            }
            let gap = Duration::from_nanos(pair[1].leads.saturating_sub(ended));
            let during = lengths.iter().position(|(begun, over)| (*begun..=*over).contains(&pair[1].leads));
            if let Some(deploy) = during {
                report.deploys[deploy].handovers.push(gap);
            }
        }
        let items = Ledger::new(&self.ledger).items()?;
        report.items = items.len();
        report.lost = items.values().filter(|item| item.done == 0).count();
        report.doubled = items.values().filter(|item| item.done > 1).count();
        report.redone = items.values().filter(|item| item.begun > 1).count();
        Ok(report)
    }
}

/// Whether a replica has said that it leads, and not that it does not any more.
fn leads(replica: &Process) -> bool {
    let lines = replica.lines();
    let last = lines.iter().rev().find(|line| ["leads", "releases"].contains(&line.word.as_str()));
    last.is_some_and(|line| line.word == "leads")
}
