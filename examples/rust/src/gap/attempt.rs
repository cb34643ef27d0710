//! The new replica of the incident: it asks once without waiting, and warms up only when it has won.

use std::time::Duration;

use anyhow::Result;
use leasehold::{ConnectOptions, SessionOptions, Store};
use tokio::time::sleep;

use crate::deploys::tell;

/// Who asks, and for what.
#[derive(Debug, Clone, clap::Args)]
pub struct Words {
    /// Where the leases live
    #[arg(long)]
    store: String,
    /// What is asked for
    #[arg(long)]
    name: String,
    /// What the replica is called
    #[arg(long)]
    label: String,
    /// The ttl
    #[arg(long)]
    ttl_ms: u64,
    /// How long it takes to be ready, after it has won
    #[arg(long)]
    warm_up_ms: u64,
}

/// Asks, and says what comes of it. Whoever has won stays until it is killed.
///
/// # Errors
/// When the store cannot be reached.
pub async fn attempt(words: &Words) -> Result<()> {
    let store = Store::connect_with(&words.store, ConnectOptions::new().only_listed()).await?;
    let options = SessionOptions::new().ttl(Duration::from_millis(words.ttl_ms)).label(&words.label);
    let session = store.session_with(&options).await?;
    tell("asks");
    let Ok(lease) = session.acquire(&words.name).await else {
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
