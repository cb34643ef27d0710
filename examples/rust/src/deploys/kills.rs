//! Holders that are killed: their lease lasts for its ttl, and not much longer.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::process::{Line, Process, nanos};
use super::progress::Progress;
use super::service::Service;
use super::{Plan, now};

/// What became of one: from the sending of the holder's last confirmed renewal until the one who waited leads.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// How long after that sending the holder was killed.
    pub killed_after: Duration,
    /// How long after it the other leads.
    pub leads_after: Duration,
}

/// Kills one holder at a random moment between two renewals. A renewal that is on its way when its sender dies is confirmed to nobody,
/// and would be counted by the service from when it came: here there is none.
///
/// # Errors
/// When a process does not do what it is asked to at all.
pub fn run(plan: &Plan, service: &Service, number: u32, progress: &Progress) -> Result<Kill> {
    let start = |who: &str| {
        let mut command = Command::new(&plan.programs.itself);
        command.args(["hold", "--store", &service.url(), "--name", &format!("kills/{number}")]);
        command.args(["--label", who, "--ttl-ms", &plan.ttl.as_millis().to_string()]);
        Process::start(&mut command)
    };
    let mut holder = start("holder")?;
    holder.wait_for("leads", Duration::ZERO)?;
    let waiter = start("waiter")?;
    waiter.wait_for("asks", Duration::ZERO)?;
    let random = getrandom::u64().context("no randomness")?;
    // The next renewal is sent after four fifteenths of the ttl at the earliest. Any moment before that, once a waiter waits.
    let later = nanos(plan.ttl) / 50 + random % (nanos(plan.ttl) / 5);
    let mut after = now();
    let sent = loop {
        let sent = holder
            .wait_until("renew", plan.ttl, |lines| confirmed(lines).into_iter().find(|sent| *sent > after))?;
        if now() < sent + later {
            break sent;
        }
        after = sent;
    };
    std::thread::sleep(Duration::from_nanos((sent + later).saturating_sub(now())));
    holder.signal(Signal::KILL)?;
    holder.ended(Duration::ZERO)?;
    let leads = waiter.wait_for("leads", plan.ttl)?;
    let sent = confirmed(&holder.lines()).into_iter().next_back().context("it was confirmed once")?;
    progress.killed();
    let killed_after = Duration::from_nanos(holder.signalled().unwrap_or(sent).saturating_sub(sent));
    Ok(Kill { killed_after, leads_after: Duration::from_nanos(leads.at.saturating_sub(sent)) })
}

/// When confirmed renewals were sent.
fn confirmed(lines: &[Line]) -> Vec<u64> {
    let confirmed = lines.iter().filter(|line| line.word == "confirmed");
    confirmed.filter_map(|line| line.rest.parse().ok()).collect()
}
