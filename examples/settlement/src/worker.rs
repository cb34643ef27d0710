//! The batch job: waits for the lease, pays what is unpaid, gives it back. This is the part to copy.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use leasehold::{Guard, SessionOptions, Store};
use leasehold_fence::Error as FenceError;
use leasehold_fence::postgres::Fence;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::ledger::{self, Invoice};

/// What is leased, and the name of the fence.
const NAME: &str = "settlement";
/// How long one payment may take.
const ONE_PAYMENT: Duration = Duration::from_millis(500);
/// How long a worker waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The database
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// Where leases live
    #[arg(long, value_name = "URL")]
    store: String,
    /// What this worker calls itself
    #[arg(long, value_name = "WORD", value_parser = word)]
    label: String,
    /// After so long without a sign of life the lease goes to the next worker
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 5000)]
    ttl_ms: u64,
    /// Let the database refuse a worker that was paused and came back
    #[arg(long)]
    fence: bool,
}

/// It is put into SQL as it is.
fn word(text: &str) -> Result<String, String> {
    match text.chars().all(|character| character.is_ascii_alphanumeric()) && !text.is_empty() {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not made of letters and digits alone")),
    }
}

pub(crate) async fn work(words: &Words) -> Result<()> {
    let me = &words.label;
    let pool = PgPoolOptions::new().max_connections(2).connect(&words.postgres).await?;
    let fence = Arc::new(Fence::new(pool.clone()));
    let store = Store::connect(&words.store).await?;
    let mut options = SessionOptions::new().ttl(Duration::from_millis(words.ttl_ms)).label(me);
    if words.fence {
        // At every grant, before anybody can act: from then on the database refuses smaller tokens.
        options = options.seal_at(fence.clone());
    }
    let session = store.session_with(&options).await?;
    let lease = session.acquire(NAME).wait(PATIENCE).await?;
    println!("{me}: holds {NAME} with token {}", lease.granted().token);

    let mut paid = 0;
    for invoice in ledger::unpaid(&pool).await? {
        // Leave to act for one payment. A worker that was paused before this line learns it here, by its own clock.
        let guard = match lease.guard(ONE_PAYMENT) {
            Ok(guard) => guard,
            Err(why) => {
                println!("{me}: stops before invoice {}: {why}", invoice.id);
                break;
            }
        };
        // A worker that is paused from here on does not: its bytes are on their way.
        match pay(&pool, words.fence.then_some(&*fence), &guard, me, invoice).await {
            Ok(()) => paid += 1,
            Err(FenceError::Stale(stale)) => {
                println!("{me}: invoice {}: refused by the database: {stale}", invoice.id);
                break;
            }
            Err(error) => bail!(error),
        }
    }
    println!("{me}: paid {paid} invoices");
    // A worker that has lost its lease gives nothing back.
    let _ = lease.release().await;
    Ok(())
}

/// Pays one invoice: everything of it leaves as one message.
async fn pay(
    pool: &PgPool,
    fence: Option<&Fence>,
    guard: &Guard<'_>,
    me: &str,
    invoice: Invoice,
) -> Result<(), FenceError> {
    let failed = |error: String| FenceError::failed("payment", error);
    let token = guard.token().map_err(|why| failed(why.to_string()))?.get();
    let payment = ledger::payment(invoice, me, token);
    match fence {
        Some(fence) => fence.batch(guard, &payment).await,
        None => {
            let done = sqlx::raw_sql(&payment).execute(pool).await;
            done.map(drop).map_err(|error| failed(error.to_string()))
        }
    }
}
