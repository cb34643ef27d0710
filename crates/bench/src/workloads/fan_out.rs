//! J: one change, and very many who watch.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::mpsc;

use super::{Connections, Figures, Spec, in_parallel, links};
use crate::clock::now_ns;
use crate::peers::{TTL, Watching};

const NAME: &str = "bench/watched";

/// Measures it: from the acquire being sent to the first and to the last watcher knowing.
pub(super) async fn run<C: Watching>(spec: &Spec, watchers: usize, changes: usize) -> Result<Figures> {
    let own = links::<C>(&spec.url, 1, TTL).await?;
    let links = links::<C>(&spec.url, Connections::Shared.count(watchers), TTL).await?;
    let watches = in_parallel(watchers, |number| {
        let link = Arc::clone(&links[number % links.len()]);
        async move { C::watch(&link, NAME).await }
    })
    .await?;
    let (tell, mut told) = mpsc::unbounded_channel();
    for mut watch in watches {
        let tell = tell.clone();
        tokio::spawn(async move {
            loop {
                let seen = C::seen(&mut watch).await;
                let now = now_ns();
                let over = seen.is_err();
                if tell.send(seen.map(|seen| (now, seen.granted))).is_err() || over {
                    return;
                }
            }
        });
    }
    let client = C::open(&own[0], 0, TTL).await?;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..changes {
        let begun = now_ns();
        let (_, held) = client.acquire(NAME).await?;
        let mut moments = Vec::with_capacity(watchers);
        while moments.len() < watchers {
            let (now, granted) = told.recv().await.context("all watchers are gone")??;
            if granted > 0 {
                moments.push(now - begun);
            }
        }
        moments.sort_unstable();
        first.push(moments[0]);
        last.push(moments[watchers - 1]);
        client.release(held).await?;
    }
    Ok(Figures::default().with_lengths("first_", first).with_lengths("last_", last))
}
