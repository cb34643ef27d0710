//! C: eleven clients queue for one name; whoever has it gives it back at once and queues again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Book, Figures, Spec, clients, joined, links};
use crate::clock::now_ns;
use crate::peers::{Client, TTL};

/// One holds, ten wait.
const CLIENTS: usize = 11;
const NAME: &str = "bench/handover";

/// What all of them share.
#[derive(Debug)]
struct Queue {
    book: Book,
    /// When the last holder began to give back; zero before the first.
    left: AtomicU64,
    /// Handovers still to be made.
    to_go: AtomicUsize,
}

/// Measures it: from the release being sent to the next holder knowing.
pub(super) async fn run<C: Client>(spec: &Spec, handovers: usize) -> Result<Figures> {
    let links = links::<C>(&spec.url, CLIENTS, TTL).await?;
    let clients = clients::<C>(&links, CLIENTS).await?;
    let queue = Queue { book: Book::new(1), left: AtomicU64::new(0), to_go: AtomicUsize::new(handovers) };
    let queue = Arc::new(queue);
    let begun = now_ns();
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(take_turns(client, Arc::clone(&queue)));
    }
    let gaps = joined(tasks).await?;
    let (count, took) = (super::figures::as_f64(gaps.len()), super::figures::seconds(now_ns() - begun));
    Ok(Figures::default()
        .with("handovers", count)
        .with("per_second", count / took)
        .with_lengths("gap_", gaps))
}

async fn take_turns<C: Client>(client: C, queue: Arc<Queue>) -> Result<Vec<u64>> {
    let mut gaps = Vec::new();
    while queue.to_go.load(Ordering::SeqCst) > 0 {
        let (token, held) = client.wait_for(NAME).await?;
        let granted = now_ns();
        queue.book.granted(0, token)?;
        let left = queue.left.load(Ordering::SeqCst);
        // The first grant is no handover.
        if left > 0 {
            let one_less = |to_go: usize| to_go.checked_sub(1);
            if queue.to_go.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                gaps.push(granted.saturating_sub(left));
            }
        }
        queue.book.leaves(0);
        queue.left.store(now_ns(), Ordering::SeqCst);
        client.release(held).await?;
    }
    Ok(gaps)
}
