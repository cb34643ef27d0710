//! F: very many leases are acquired and stay. I: what a restart with them takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Figures, Spec, clients, joined, links};
use crate::clock::now_ns;
use crate::peers::usage::Used;
use crate::peers::{Client, TTL};
use crate::workloads::figures::{micros, seconds};

/// Sessions that share the leases; a session has a limit.
const SESSIONS: usize = 64;
/// Acquires in flight.
const IN_FLIGHT: usize = 512;
/// Cycles of which the latency is taken.
const CYCLES: usize = 300;
/// How long nothing is done.
const IDLE: Duration = Duration::from_secs(5);

/// Measures it.
pub(super) async fn run<C: Client>(spec: &Spec, leases: usize, session_each: bool) -> Result<Figures> {
    let links = links::<C>(&spec.url, C::RENEWAL_LINKS, TTL).await?;
    let prober = C::open(&links[0], leases + SESSIONS, TTL).await?;
    let before = cycles(&prober).await?;
    let empty = used(spec).await?;
    let begun = now_ns();
    let kept = create::<C>(&links, leases, session_each).await?;
    let created = now_ns();
    let full = used(spec).await?;
    tokio::time::sleep(IDLE).await;
    let rested = used(spec).await?;
    let after = cycles(&prober).await?;
    // Leases are kept until the process ends, which ends them without a word.
    std::mem::forget(kept);
    Ok(Figures::default()
        .with("create_s", seconds(created - begun))
        .with("create_server_cpu_s", (full - empty).cpu_s)
        .with("resident_mib", rested.resident_mib)
        .with("idle_cpu_percent", (rested - full).cpu_s / IDLE.as_secs_f64() * 100.0)
        .with("cycle_before_p50_us", before)
        .with("cycle_p50_us", after)
        .with("cycle_ratio", after / before))
}

async fn used(spec: &Spec) -> Result<Used> {
    let pids = spec.pids.clone();
    tokio::task::spawn_blocking(move || Used::by(&pids)).await?
}

async fn create<C: Client>(
    links: &[Arc<C::Link>],
    leases: usize,
    session_each: bool,
) -> Result<Vec<(Arc<C>, C::Held)>> {
    let next = Arc::new(AtomicUsize::new(0));
    let sessions = if session_each { 0 } else { SESSIONS };
    let shared: Vec<Arc<C>> = clients::<C>(links, sessions).await?.into_iter().map(Arc::new).collect();
    let mut tasks = JoinSet::new();
    for worker in 0..IN_FLIGHT {
        let (next, link) = (Arc::clone(&next), Arc::clone(&links[worker % links.len()]));
        let session = (!session_each).then(|| Arc::clone(&shared[worker % SESSIONS]));
        tasks.spawn(async move {
            let mut all = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= leases {
                    return Ok::<_, anyhow::Error>(all);
                }
                let client = match &session {
                    Some(session) => Arc::clone(session),
                    None => Arc::new(C::open(&link, number, TTL).await?),
                };
                let (_, held) = client.acquire(&format!("bench/many/{number}")).await?;
                all.push((client, held));
            }
        });
    }
    joined(tasks).await
}

/// The median of a few cycles of one client, in microseconds.
async fn cycles<C: Client>(client: &C) -> Result<f64> {
    let mut took = Vec::with_capacity(CYCLES);
    for _ in 0..CYCLES {
        let begun = now_ns();
        let (_, held) = client.acquire("bench/prober").await?;
        client.release(held).await?;
        took.push(now_ns() - begun);
    }
    took.sort_unstable();
    Ok(micros(took[CYCLES / 2]))
}

/// I: the servers were started again at a moment; when is the first acquire granted?
pub(super) async fn first_grant<C: Client>(spec: &Spec) -> Result<Figures> {
    let links = links::<C>(&spec.url, 1, TTL).await?;
    let client = C::open(&links[0], 0, TTL).await?;
    let (_, held) = client.acquire("bench/after restart").await?;
    let granted = now_ns();
    client.release(held).await?;
    Ok(Figures::default().with("restart_s", seconds(granted.saturating_sub(spec.since_ns))))
}
