//! The same deploy done right: warm before it campaigns, in the queue, and the old one drains.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::{Plan, ask, ask_json};
use crate::deploys::process::Process;
use crate::deploys::service::Service;

/// What is led.
pub const NAME: &str = "orders-done-right";

/// What came of it.
#[derive(Debug, Clone)]
pub struct Right {
    /// From the release of the old replica to the first token of the new one, by the clock that they share.
    pub truth: Duration,
    /// By `leasehold gaps`.
    pub told: Duration,
    /// What `leasehold gaps` prints.
    pub printed: String,
}

/// Deploys.
///
/// # Errors
/// When a process does not do what it is asked to at all.
pub fn run(plan: &Plan, service: &Service) -> Result<Right> {
    let replica = |label: &str, warm_up: Duration| {
        let mut command = Command::new(&plan.programs.replica);
        command.args(["--store", &service.url(), "--name", NAME, "--label", label]);
        command.args(["--warm-up-ms", &warm_up.as_millis().to_string()]);
        command.args(["--item-ms", &plan.item.as_millis().to_string()]);
        command.arg("--ledger").arg(service.file("right.ledger"));
        Process::start(&mut command)
    };
    let mut old = replica("web-1", Duration::ZERO)?;
    old.wait_for("leads", Duration::ZERO)?;
    let new = replica("web-2", plan.warm_up)?;
    new.wait_for("ready", plan.warm_up)?;
    in_line(plan, service)?;
    old.signal(Signal::TERM)?;
    let leads = new.wait_for("leads", plan.item)?;
    old.ended(plan.item)?;
    let released = old.lines().into_iter().find(|line| line.word == "releases");
    let released = released.context("the old replica gave it back")?.at;
    let told = ask_json(plan, service, &["gaps", NAME])?;
    let told = told["names"][0]["leaderless_ms"].as_u64().context("gaps says how long nobody led")?;
    Ok(Right {
        truth: Duration::from_nanos(leads.at.saturating_sub(released)),
        told: Duration::from_millis(told),
        printed: ask(plan, service, &["gaps", NAME, "--last", "1m"])?,
    })
}

/// Waits until the new replica stands in the queue.
fn in_line(plan: &Plan, service: &Service) -> Result<()> {
    for _ in 0..500 {
        if ask_json(plan, service, &["get", NAME])?["waiting"] == 1 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("the new replica does not wait")
}
