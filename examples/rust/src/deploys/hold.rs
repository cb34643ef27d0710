//! What is compared with: a replica that does nothing right, and a holder that only holds, to be killed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use leasehold::{Lease, LeaseState, Schedule, SessionOptions, Store};
use tokio::time::sleep;

use super::tell;
use crate::ledger::Ledger;

/// Longer than anything here waits.
const LONG: Duration = Duration::from_secs(3600);
/// How often the deadline is looked at, if nothing is heard.
const LOOK: Duration = Duration::from_millis(50);

/// Who holds, and what.
#[derive(Debug, Clone, clap::Args)]
pub struct Words {
    /// Where the leases live
    #[arg(long)]
    pub(crate) store: String,
    /// What is held
    #[arg(long)]
    pub(crate) name: String,
    /// What the holder is called
    #[arg(long)]
    label: String,
    /// The ttl
    #[arg(long)]
    ttl_ms: u64,
}

/// Work beside it.
#[derive(Debug, Clone, clap::Args)]
pub struct NaiveWords {
    #[command(flatten)]
    hold: Words,
    /// What is worked on
    #[arg(long)]
    ledger: PathBuf,
    /// How long it takes to be of use, after it has won
    #[arg(long)]
    warm_up_ms: u64,
    /// How long one item of work takes
    #[arg(long)]
    item_ms: u64,
}

impl Words {
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions::new().ttl(Duration::from_millis(self.ttl_ms)).label(&self.label)
    }
}

/// Holds, and says of every confirmed renewal when it was sent.
///
/// # Errors
/// When the lease is not granted.
pub async fn hold(words: &Words) -> Result<()> {
    let store = Store::connect(&words.store).await?;
    let options = words.options();
    let usable = super::process::nanos(options.numbers()?.usable().duration());
    let session = store.session_with(&options).await?;
    tell("asks");
    let lease = session.acquire(&words.name).wait(LONG).await?;
    tell(&format!("leads {}", lease.token()?));
    let mut told = None;
    while !matches!(lease.state(), LeaseState::Ended { .. }) {
        let sent = lease.deadline().map(|deadline| deadline.boot.saturating_sub(usable));
        if let Some(sent) = sent.filter(|sent| Some(*sent) != told) {
            tell(&format!("confirmed {sent}"));
            told = Some(sent);
        }
        tokio::select! {
            _ = lease.changed() => {}
            () = sleep(LOOK) => {}
        }
    }
    Ok(())
}

/// A replica that says it is ready before it is, warms up when it has won, renews at half of its ttl, and is ended by SIGTERM as it
/// stands.
///
/// # Errors
/// When the lease is not granted, or lost.
pub async fn naive(words: &NaiveWords) -> Result<()> {
    let store = Store::connect(&words.hold.store).await?;
    let session = store.session_with(&words.hold.options().schedule(Schedule::Halves)).await?;
    tell("ready");
    let lease = session.acquire(&words.hold.name).wait(LONG).await?;
    sleep(Duration::from_millis(words.warm_up_ms)).await;
    tell(&format!("leads {}", lease.token()?));
    let ledger = Ledger::new(&words.ledger);
    let length = Duration::from_millis(words.item_ms);
    tokio::try_join!(items(&lease, &ledger, length), items(&lease, &ledger, length))?;
    Ok(())
}

async fn items(lease: &Lease, ledger: &Ledger, length: Duration) -> Result<()> {
    loop {
        let item = ledger.begin(lease.token()?)?;
        sleep(length).await;
        ledger.finish(item, lease.token()?)?;
    }
}
