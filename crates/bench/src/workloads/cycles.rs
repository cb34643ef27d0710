//! A: every client acquires and releases a name of its own, one operation in flight.

use std::sync::Arc;

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Book, Connections, Figures, Spec, Window, clients, joined, links};
use crate::clock::now_ns;
use crate::peers::{Client, TTL};

/// Measures it.
pub(super) async fn run<C: Client>(spec: &Spec, count: usize, connections: Connections) -> Result<Figures> {
    let links = links::<C>(&spec.url, connections.count(count), TTL).await?;
    let clients = clients::<C>(&links, count).await?;
    let book = Arc::new(Book::new(count));
    let window = Window::after_warm_up(spec);
    let mut tasks = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        // Other sizes on the same server have other names.
        let name = format!("bench/cycles/{}-{count}/{number}", links.len());
        tasks.spawn(cycle(client, name, number, Arc::clone(&book), window));
    }
    let metered = tokio::spawn(window.metered(spec.clone()));
    let took = joined(tasks).await?;
    let metered = metered.await??;
    // A cycle is two operations.
    let operations = (2.0 * super::figures::as_f64(took.len())).max(1.0);
    let figures = Figures::of_window(took, window, &metered);
    Ok(match metered.disk {
        Some(bytes) => figures.with("disk_bytes_per_operation", bytes / operations),
        None => figures,
    })
}

async fn cycle<C: Client>(
    client: C,
    name: String,
    number: usize,
    book: Arc<Book>,
    window: Window,
) -> Result<Vec<u64>> {
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
