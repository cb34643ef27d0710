//! D: holders die, and somebody waits for each of their names. How late is the grant beyond the ttl?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::hold::{Holders, name};
use super::{Figures, Spec, Work, in_parallel, links, sleep_until};
use crate::clock::now_ns;
use crate::peers::{Client, TTL};

/// Holders that die at the same time.
pub(super) const HOLDERS: usize = 20;
/// Between the beginnings of two, as a part of the ttl: all of them lie within a tenth of it, so that none renews before it dies.
pub(super) const APART: u32 = 200;

/// Measures it. With a leader to kill, that happens half a ttl after the first holder began.
pub(super) async fn run<C: Client>(spec: &Spec, ttl: Duration, kill_leader: bool) -> Result<Figures> {
    let links = links::<C>(&spec.url, HOLDERS + 1, TTL).await?;
    let mut clients = super::clients::<C>(&links, HOLDERS + 1).await?;
    let prober = clients.pop().context("one more than holders")?;
    let ttl_ms = u64::try_from(ttl.as_millis())?;
    let (holders, begun) = Holders::start(spec, Work::HoldOneByOne { ttl_ms }).await?;
    ensure!(begun.len() == HOLDERS, "{} holders instead of {HOLDERS}", begun.len());
    holders.kill()?;
    let killed = kill_leader.then(|| (begun[0] + ttl_ms * 500_000, spec.leader));
    let over = Arc::new(AtomicBool::new(false));
    let outage = Arc::new(AtomicU64::new(0));
    let probing = tokio::spawn(probe(prober, Arc::clone(&over), Arc::clone(&outage)));
    let killing = tokio::spawn(async move {
        let Some((moment, leader)) = killed else { return Ok(()) };
        sleep_until(moment).await;
        let leader = leader.and_then(|pid| Pid::from_raw(pid.cast_signed())).context("no leader is known")?;
        kill_process(leader, Signal::KILL).context("the leader cannot be killed")
    });
    let mut waiting = clients.into_iter();
    let granted = in_parallel(HOLDERS, |number| {
        let client = waiting.next();
        async move {
            let client = client.context("a client for each holder")?;
            let (_, held) = client.wait_for(&name(number)).await?;
            Ok((now_ns(), client, held))
        }
    })
    .await?;
    killing.await??;
    over.store(true, Ordering::SeqCst);
    probing.await??;
    let ttl_ns = ttl_ms * 1_000_000;
    let mut late = Vec::new();
    for (begun, (granted, ..)) in begun.iter().zip(&granted) {
        let due = begun + ttl_ns;
        // Two believed in one lease at the same time.
        ensure!(*granted >= due, "granted {} ns before the ttl was over", due - granted);
        late.push(granted - due);
    }
    let outage_us = super::figures::micros(outage.load(Ordering::SeqCst));
    let latest_us = super::figures::micros(late.iter().copied().max().unwrap_or(0));
    let figures = Figures::default().with_lengths("late_", late).with("longest_cycle_us", outage_us);
    // Time in which nobody leads is not counted, so a lease ends later by as much.
    Ok(if kill_leader {
        figures.with("late_beyond_outage_us", (latest_us - outage_us).max(0.0))
    } else {
        figures
    })
}

/// Cycles on a name of its own until it is over, and notes the longest: with a killed leader that is the outage.
async fn probe<C: Client>(client: C, over: Arc<AtomicBool>, longest: Arc<AtomicU64>) -> Result<()> {
    while !over.load(Ordering::SeqCst) {
        let begun = now_ns();
        // While nobody leads, some clients wait and some are refused: both is outage.
        loop {
            match client.acquire("bench/probe").await {
                Ok((_, held)) => break drop(client.release(held).await),
                Err(error) if now_ns() - begun > 60_000_000_000 => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        longest.fetch_max(now_ns() - begun, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
