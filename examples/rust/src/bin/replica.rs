//! A replica in a rolling deploy: start three, then replace them one by one with SIGTERM. See `leasehold_examples::replica`.
//!
//! Every line it prints begins with a reading of CLOCK_BOOTTIME in nanoseconds, which is common to all processes of a machine.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use leasehold::{SessionOptions, Store, Termination};
use leasehold_examples::deploys::tell;
use leasehold_examples::ledger::Ledger;
use leasehold_examples::replica::{run, take_items};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long a replica that leaves waits to see who leads after it.
const AWAIT_SUCCESSOR: Duration = Duration::from_secs(2);

/// Leads and works, or stands by warm, until SIGTERM
#[derive(Debug, Parser)]
struct Words {
    /// Where the leases live
    #[arg(long, env = "LEASEHOLD_STORE")]
    store: String,
    /// What is led
    #[arg(long, default_value = "replicas/payments")]
    name: String,
    /// What this replica is called
    #[arg(long)]
    label: String,
    /// What is worked on
    #[arg(long, default_value = "work.ledger")]
    ledger: PathBuf,
    /// How long it takes to be ready
    #[arg(long, default_value_t = 8000)]
    warm_up_ms: u64,
    /// How long one item of work takes
    #[arg(long, default_value_t = 2000)]
    item_ms: u64,
    /// How long the orchestrator waits between SIGTERM and SIGKILL
    #[arg(long, default_value_t = 30_000)]
    grace_ms: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words = Words::parse();
    let (grace, length) = (Duration::from_millis(words.grace_ms), Duration::from_millis(words.item_ms));
    let termination = Termination::listen(grace, length)?;
    let store = Store::connect(&words.store).await?;
    let (ready, readiness) = watch::channel(false);
    let election = store
        .election(&words.name)
        .session(SessionOptions::new().label(&words.label))
        .when_ready(readiness)
        .await_successor(AWAIT_SUCCESSOR)
        .build()?;
    tokio::spawn(async move {
        // Here caches are filled and connections made, before it campaigns.
        sleep(Duration::from_millis(words.warm_up_ms)).await;
        ready.send_replace(true);
        tell("ready");
    });
    let ledger = Ledger::new(&words.ledger);
    run(
        &election,
        async |leadership, drain| {
            // Two at a time.
            let lane = || take_items(leadership, drain, &ledger, length);
            tokio::join!(lane(), lane());
        },
        termination.requested(),
        async || sleep(termination.budget()).await,
        |event| tell(&event.to_string()),
    )
    .await?;
    store.close().await;
    Ok(())
}
