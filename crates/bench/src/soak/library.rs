//! Clients that use the library.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use leasehold::{SessionOptions, Store};

use super::{NAMES, Shared};

/// Starts all of them on one thread.
///
/// # Errors
/// When there is no runtime.
pub fn start(
    url: &str,
    staying: usize,
    coming_and_going: usize,
    watchers: usize,
    shared: &Arc<Shared>,
) -> Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let (url, shared) = (url.to_owned(), Arc::clone(shared));
    let work = async move {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..staying as u64 {
            tasks.spawn(stay(url.clone(), number, Arc::clone(&shared)));
        }
        for number in 0..coming_and_going as u64 {
            tasks.spawn(come_and_go(url.clone(), number, Arc::clone(&shared)));
        }
        for number in 0..watchers as u64 {
            tasks.spawn(watch(url.clone(), number, Arc::clone(&shared)));
        }
        tasks.join_all().await;
    };
    Ok(std::thread::spawn(move || runtime.block_on(work)))
}

/// The next name: a walk through all of them that differs from client to client.
fn name(client: u64, step: u64) -> String {
    format!("soak/{}", (client * 7_919 + step * 104_729) % NAMES)
}

fn options() -> SessionOptions {
    SessionOptions::default().ttl(Duration::from_secs(2))
}

/// One session that acquires, holds for a moment and releases, for ever.
async fn stay(url: String, number: u64, shared: Arc<Shared>) {
    let mut step = 0;
    while !shared.is_over() {
        let Ok(store) = Store::connect(&url).await else {
            shared.troubles.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        if let Ok(session) = store.session_with(&options()).await {
            while !shared.is_over() {
                step += 1;
                match session.acquire(&name(number, step)).wait(Duration::from_millis(300)).await {
                    Ok(lease) => {
                        shared.grants.fetch_add(1, Ordering::Relaxed);
                        // A pace that a small machine keeps up for hours beside other work.
                        tokio::time::sleep(shared.pace + Duration::from_millis(step % 20)).await;
                        if lease.release().await.is_err() {
                            shared.troubles.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    Err(leasehold::Error::WaitEnded(_) | leasehold::Error::NotFree { .. }) => {
                        shared.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => {
                        shared.troubles.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                }
            }
            let _ = session.close().await;
        }
        store.close().await;
    }
}

/// Connects, takes a lease and goes: releasing it first, or leaving that to the end of its session.
async fn come_and_go(url: String, number: u64, shared: Arc<Shared>) {
    let mut step = 0;
    while !shared.is_over() {
        step += 1;
        let Ok(store) = Store::connect(&url).await else {
            shared.troubles.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        if let Ok(session) = store.session_with(&options()).await {
            match session.acquire(&name(number + 1_000, step)).wait(Duration::from_millis(200)).await {
                Ok(lease) => {
                    shared.grants.fetch_add(1, Ordering::Relaxed);
                    if step % 4 != 0 {
                        let _ = lease.release().await;
                    }
                }
                Err(_) => {
                    shared.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        store.close().await;
        tokio::time::sleep(shared.pace).await;
    }
}

/// Watches a part of the names; every other watcher begins anew every few hundred changes.
async fn watch(url: String, number: u64, shared: Arc<Shared>) {
    while !shared.is_over() {
        let Ok(store) = Store::connect(&url).await else { continue };
        if let Ok(mut watch) = store.watch(&format!("soak/{}", number % 10)).await {
            let mut left = if number.is_multiple_of(2) { u64::MAX } else { 300 };
            while !shared.is_over() && left > 0 {
                match tokio::time::timeout(Duration::from_secs(1), watch.next()).await {
                    Ok(Ok(changes)) => {
                        shared.seen.fetch_add(changes.changes.len() as u64, Ordering::Relaxed);
                        left -= 1;
                    }
                    Ok(Err(_)) => {
                        shared.troubles.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    Err(_) => {}
                }
            }
        }
        store.close().await;
    }
}
