//! Holders that are going to die: a process of its own that acquires, says when it began, and waits to be killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::expiry::{APART, HOLDERS};
use super::{Figures, Spec, Window, Work, holders, links};
use crate::clock::now_ns;
use crate::peers::Client;

/// The name of one of these leases.
pub(super) fn name(number: usize) -> String {
    format!("bench/dying/{number}")
}

/// The life of such a process, when it is to begin leases one after the other: prints when each began, then waits.
pub(super) async fn one_by_one<C: Client>(spec: &Spec, ttl: Duration) -> Result<Figures> {
    let links = links::<C>(&spec.url, HOLDERS, ttl).await?;
    let (mut kept, mut begun) = (Vec::new(), Vec::new());
    for (number, link) in links.iter().enumerate() {
        begun.push(now_ns());
        let client = C::open(link, number, ttl).await?;
        // Where a queue is made of keys, only whoever came as those who wait do stands in it.
        let (_, held) = client.wait_for(&name(number)).await?;
        kept.push((client, held));
        tokio::time::sleep(ttl / APART).await;
    }
    say(&begun)?;
    std::future::pending::<()>().await;
    Ok(Figures::default().with("kept", super::figures::as_f64(kept.len())))
}

/// The life of such a process, when very many leases are to end at once: renews all of them a last time, prints when that was done, then waits.
pub(super) async fn all_at_once<C: Client>(spec: &Spec, leases: usize, ttl: Duration) -> Result<Figures> {
    let links = links::<C>(&spec.url, C::RENEWAL_LINKS, ttl).await?;
    let held = holders::<C>(&links, leases, ttl, name).await?;
    let begun = now_ns();
    // Each renews once: the window is over when the first answer comes.
    let renewed = C::renew_all(held, Window { begin: begun, end: begun }).await?;
    say(&[begun, now_ns()])?;
    std::future::pending::<()>().await;
    Ok(Figures::default().with("kept", super::figures::as_f64(renewed.kept.len())))
}

fn say(moments: &[u64]) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(moments)?)?;
    Ok(out.flush()?)
}

/// Such a process as the load sees it. It dies when this is dropped.
#[derive(Debug)]
pub(super) struct Holders(Child);

impl Holders {
    /// Starts it, waits until it holds everything, and gives back the moments that it says.
    pub(super) async fn start(spec: &Spec, work: Work) -> Result<(Self, Vec<u64>)> {
        let spec = serde_json::to_string(&Spec { work, ..spec.clone() })?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["load", &spec])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("the holders do not start")?;
        let out = child.stdout.take().context("its output was piped")?;
        let holders = Self(child);
        let line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(out).read_line(&mut line).map(|_| line)
        });
        let line = line.await??;
        Ok((holders, serde_json::from_str(&line).context("the holders ended before they held everything")?))
    }

    /// Kills it.
    pub(super) fn kill(mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Holders {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
