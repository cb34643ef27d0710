//! A: every client acquires and releases a name of its own, one operation in flight.

use std::sync::Arc;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Book, Connections, Figures, Spec, Window, clients, links};
use crate::peers::{Client, TTL};
use crate::session_stream::clock::now_ns;

/// Measures it.
pub(super) async fn run<C: Client>(spec: &Spec, count: usize, connections: Connections) -> Result<Figures> {
    let links = links::<C>(&spec.url, connections.count(count), TTL).await?;
    let clients = clients::<C>(&links, count).await?;
    let book = Arc::new(Book::new(count));
    let window = Window::after_warm_up(spec);
    let mut tasks = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        tasks.spawn(cycle(client, number, Arc::clone(&book), window));
    }
    let metered = tokio::spawn(window.metered(spec.pids.clone()));
    let mut took = Vec::new();
    while let Some(done) = tasks.join_next().await {
        took.extend(done??);
    }
    let (servers, load) = metered.await??;
    // A cycle is two operations.
    let written = servers.written / (2.0 * super::figures::as_f64(took.len())).max(1.0);
    Ok(Figures::of_window(took, window, servers, load).with("written_bytes_per_operation", written))
}

async fn cycle<C: Client>(client: C, number: usize, book: Arc<Book>, window: Window) -> Result<Vec<u64>> {
    let name = format!("bench/cycles/{number}");
    let mut took = Vec::new();
    let mut begun = now_ns();
    while begun < window.end {
        let (token, held) = client.acquire(&name).await?;
        book.granted(number, token)?;
        book.leaves(number);
        client.release(held).await?;
        let ended = now_ns();
        if window.has(ended) {
            took.push(ended - begun);
        }
        begun = ended;
    }
    Ok(took)
}
