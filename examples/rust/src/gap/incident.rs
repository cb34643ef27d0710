//! The incident itself.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use serde_json::Value;

use super::proxy::Proxy;
use super::{Plan, ask, ask_json};
use crate::deploys::now;
use crate::deploys::process::{Line, Process, nanos};
use crate::deploys::service::Service;

/// What is led.
pub const NAME: &str = "orders";
/// So many requests are lost.
pub const LOST: u32 = 2;
/// How long a replica waits for an answer before it is ended and started again.
const GIVE_UP: Duration = Duration::from_millis(300);
/// How long after a refusal it is started again.
const POLL: Duration = Duration::from_millis(50);
const STEP: Duration = Duration::from_millis(1);
/// How much longer than its ttl a session may be silent: clocks may be a thousandth too fast here and too slow there.
const STRETCH: f64 = 1.001 / 0.999;
/// More requests than that are not needed by far.
const MOST_ATTEMPTS: u32 = 1_000;

/// How long each cause took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// From the end of the old replica to when its lease was over.
    pub detection: Duration,
    /// From there to the grant.
    pub queue: Duration,
    /// From there to when the new replica was ready.
    pub warm_up: Duration,
    /// Anything else, which there was none of.
    pub other: Duration,
}

impl Split {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.detection + self.queue + self.warm_up + self.other
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Incident {
    /// By the clock that the processes share.
    pub truth: Split,
    /// By `leasehold gaps`.
    pub told: Split,
    /// How many requests were not answered.
    pub lost: u32,
    /// What `leasehold gaps` prints.
    pub printed: String,
}

/// Stages it.
///
/// # Errors
/// When a process does not do what it is asked to at all.
pub fn run(plan: &Plan, service: &Service) -> Result<Incident> {
    let url = service.url();
    let address = url.trim_start_matches("leasehold://");
    let proxy = Proxy::start(address, NAME, LOST)?;
    let ttl_ms = plan.ttl.as_millis().to_string();
    let part = |part: &str, label: &str, store: &str| {
        let mut command = Command::new(&plan.programs.itself);
        command.args([part, "--store", store, "--name", NAME, "--label", label, "--ttl-ms", &ttl_ms]);
        command
    };
    let mut old = Process::start(&mut part("hold", "web-1", &url))?;
    // Right behind a renewal, so that the whole ttl is left.
    let renewals = |lines: &[Line]| lines.iter().filter(|line| line.word == "confirmed").count();
    old.wait_until("renew", plan.ttl, |lines| (renewals(lines) > 1).then_some(()))?;
    old.signal(Signal::TERM)?;
    let died = old.signalled().context("it was sent a signal")?;
    old.ended(Duration::ZERO)?;
    let last = old.lines().into_iter().rfind(|line| line.word == "confirmed");
    let sent: u64 = last.context("it has renewed")?.rest.parse().context("a reading")?;
    let free = sent + nanos(plan.ttl.mul_f64(STRETCH));
    proxy.lose_from(free);

    let warm_up_ms = plan.warm_up.as_millis().to_string();
    let mut lost = 0;
    for _ in 0..MOST_ATTEMPTS {
        let mut command = part("attempt", "web-2", &proxy.url());
        let new = Process::start(command.args(["--warm-up-ms", &warm_up_ms]))?;
        match answer(&new)? {
            None => lost += 1,
            Some(line) if line.word == "granted" => {
                let ready = new.wait_for("ready", plan.warm_up)?;
                let since = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
                let truth = Split {
                    detection: since(died, free),
                    queue: since(free, line.at),
                    warm_up: since(line.at, ready.at),
                    other: Duration::ZERO,
                };
                let told = told(&settled(plan, service)?)?;
                let printed = ask(plan, service, &["gaps", NAME, "--last", "1m"])?;
                return Ok(Incident { truth, told, lost, printed });
            }
            Some(_) => std::thread::sleep(POLL),
        }
    }
    bail!("{NAME} was never granted again")
}

/// What a replica was answered; nothing if it gave up.
fn answer(new: &Process) -> Result<Option<Line>> {
    let asked = new.wait_for("asks", Duration::ZERO)?;
    loop {
        let answer = new.lines().into_iter().find(|line| line.word == "granted" || line.word == "refused");
        if answer.is_some() || now() > asked.at + nanos(GIVE_UP) {
            return Ok(answer);
        }
        std::thread::sleep(STEP);
    }
}

/// What `gaps` says once it has heard that the replica is ready.
fn settled(plan: &Plan, service: &Service) -> Result<Value> {
    for _ in 0..100 {
        let names = ask_json(plan, service, &["gaps", NAME])?;
        let gap = &names["names"][0]["gaps"][0];
        if gap["ended_ago_ms"].is_u64() {
            return Ok(gap.clone());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the gap does not end")
}

fn told(gap: &Value) -> Result<Split> {
    let mut split = Split {
        detection: Duration::ZERO,
        queue: Duration::ZERO,
        warm_up: Duration::ZERO,
        other: Duration::ZERO,
    };
    for part in gap["parts"].as_array().context("a gap has parts")? {
        let length = Duration::from_millis(part["length_ms"].as_u64().context("a part has a length")?);
        match part["cause"].as_str() {
            Some("detection") => split.detection += length,
            Some("queue") => split.queue += length,
            Some("warm-up") => split.warm_up += length,
            _ => split.other += length,
        }
    }
    Ok(split)
}
