//! The new replica of the incident: it asks once without waiting, and warms up only when it has won.

use std::time::Duration;

use anyhow::Result;
use leasehold::{ConnectOptions, Store};
use tokio::time::sleep;

use crate::deploys::{hold, tell};

/// Who asks, and for what.
#[derive(Debug, Clone, clap::Args)]
pub struct AttemptWords {
    #[command(flatten)]
    hold: hold::Words,
    /// How long it takes to be ready, after it has won
    #[arg(long)]
    warm_up_ms: u64,
}

/// Asks, and says what comes of it. Whoever has won stays until it is killed.
///
/// # Errors
/// When the store cannot be reached.
pub async fn attempt(words: &AttemptWords) -> Result<()> {
    let store = Store::connect_with(&words.hold.store, ConnectOptions::new().only_listed()).await?;
    let session = store.session_with(&words.hold.options()).await?;
    tell("asks");
    let Ok(lease) = session.acquire(&words.hold.name).await else {
        tell("refused");
        session.close().await?;
        store.close().await;
        return Ok(());
    };
    lease.warming_up();
    tell(&format!("granted {}", lease.token()?));
    sleep(Duration::from_millis(words.warm_up_ms)).await;
    lease.ready();
    tell("ready");
    std::future::pending().await
}
