//! Owns its share of 16 shards: start it several times, and end some of them. See `leasehold_examples::shards`.

use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use leasehold::{SessionOptions, Store, Termination};
use leasehold_examples::shards::Owner;
use tokio::time::sleep;

/// Owns its fair share of the shards
#[derive(Debug, Parser)]
struct Words {
    /// Where the leases live
    #[arg(long, env = "LEASEHOLD_STORE")]
    store: String,
    /// The name of the pool
    #[arg(long, default_value = "shards")]
    pool: String,
    /// How many shards there are: everybody says the same
    #[arg(long, default_value_t = 16)]
    shards: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words = Words::parse();
    let termination = Termination::listen(Duration::from_secs(30), Duration::from_secs(5))?;
    let store = Store::connect(&words.store).await?;
    let mut owner = None;
    loop {
        tokio::select! {
            () = termination.requested() => break,
            () = sleep(Duration::from_secs(1)) => {}
        }
        // A membership that was lost is begun anew; whatever was owned under it went with it.
        if let Err(error) = own(&mut owner, &store, &words).await {
            println!("nothing is owned: {error}");
            if let Some(owner) = owner.take() {
                owner.abandon().await;
            }
        }
    }
    if let Some(owner) = owner {
        owner.leave().await?;
    }
    store.close().await;
    Ok(())
}

async fn own(owner: &mut Option<Owner>, store: &Store, words: &Words) -> Result<()> {
    let owner = match owner {
        Some(owner) => owner,
        None => owner.insert(Owner::join(store, &words.pool, words.shards, &SessionOptions::new()).await?),
    };
    let turn = owner.turn().await?;
    if turn != Default::default() {
        println!("took {:?}, gave back {:?}, lost {:?}", turn.taken, turn.given_back, turn.lost);
    }
    for shard in owner.owned() {
        if let Some((_work, _token)) = owner.begin(shard) {
            // Here the work of the shard is done, and written with the token.
        }
    }
    Ok(())
}
