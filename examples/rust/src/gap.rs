//! An incident, staged with real processes against a real service, and what `leasehold gaps` says of it: is the time without a leader split into
//! its causes as it was? Then the same deploy done right.
//!
//! The incident: the old replica is ended by SIGTERM and gives nothing back. The new one is started again and again and asks without waiting; its
//! first two requests that could be granted are lost on the way. When it has won it warms up. The truth is what the processes
//! and this one read on CLOCK_BOOTTIME, which they share: when the old one died, until when its last renewal held, when the new one was told
//! that it has won, and when it was ready.

pub mod attempt;
pub mod incident;
pub mod proxy;
pub mod report;
pub mod right;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::deploys::Programs;
use crate::deploys::service::Service;
use report::Report;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is run.
    pub programs: Programs,
    /// The ttl of the replicas of the incident.
    pub ttl: Duration,
    /// How long a replica takes to be ready.
    pub warm_up: Duration,
    /// How long one item of work takes, in the deploy that is done right.
    pub item: Duration,
    /// How far `gaps` may be from the truth, for each cause.
    pub tolerance: Duration,
    /// For how long nobody leads in the deploy that is done right, at most.
    pub leaderless: Duration,
}

impl Plan {
    /// As it was: half a minute.
    pub fn full(programs: Programs) -> Self {
        Self {
            programs,
            ttl: Duration::from_secs(3),
            warm_up: Duration::from_secs(8),
            item: Duration::from_secs(2),
            tolerance: Duration::from_millis(100),
            leaderless: Duration::from_millis(200),
        }
    }

    /// The same in a few seconds, with the same bounds.
    pub fn quick(programs: Programs) -> Self {
        Self {
            ttl: Duration::from_secs(1),
            warm_up: Duration::from_secs(1),
            item: Duration::from_millis(300),
            ..Self::full(programs)
        }
    }
}

/// Runs both.
///
/// # Errors
/// When the service or a replica does not do what it is asked to at all.
pub fn run(plan: &Plan) -> Result<Report> {
    let mut service = Service::start(&plan.programs.leasehold)?;
    let incident = incident::run(plan, &service)?;
    let right = right::run(plan, &service)?;
    service.stop()?;
    Ok(Report { plan: plan.clone(), incident, right })
}

/// What `leasehold` prints.
pub(crate) fn ask(plan: &Plan, service: &Service, words: &[&str]) -> Result<String> {
    let output = Command::new(&plan.programs.leasehold)
        .args(words)
        .env("LEASEHOLD_STORE", service.url())
        .output()
        .context("leasehold does not start")?;
    if !output.status.success() {
        bail!("leasehold {words:?} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).context("leasehold printed no text")
}

/// The same as JSON.
pub(crate) fn ask_json(plan: &Plan, service: &Service, words: &[&str]) -> Result<Value> {
    let words = [&["--json"], words].concat();
    serde_json::from_str(&ask(plan, service, &words)?).context("leasehold printed no JSON")
}
