//! What the fence costs in SQLite: a transaction with one `INSERT`, with and without it, in turns.
//!
//! `cargo run --release -p leasehold-fence --features sqlite --example cost_sqlite`

use std::error::Error;
use std::time::Duration;

use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Receiver as _, Stamp};
use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};

/// Each way is measured so many times, in turns; the median counts.
const REPEATS: usize = 9;
const WRITES: u32 = 200;
const WRITE: &str = "INSERT INTO report (day) VALUES (CURRENT_DATE)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for journal in [SqliteJournalMode::Wal, SqliteJournalMode::Delete] {
        let directory = tempfile::tempdir()?;
        let options = SqliteConnectOptions::new().filename(directory.path().join("data.db"));
        let pool = SqlitePool::connect_with(options.create_if_missing(true).journal_mode(journal)).await?;
        sqlx::query("CREATE TABLE report (id INTEGER PRIMARY KEY, day TEXT)").execute(&pool).await?;
        let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&pool).await?;
        let fence = Fence::new(pool.clone());
        fence.migrate().await?;
        let stamp = Stamp::new("cost", 34)?;
        fence.seal(&stamp).await?;
        let [mut with, mut without] = [Vec::new(), Vec::new()];
        for _ in 0..REPEATS {
            without.push(plain(&pool).await?);
            with.push(fenced(&fence, &stamp).await?);
        }
        let [with, without] = [with, without].map(median_us);
        println!(
            "sqlite {version} ({journal:?}): {REPEATS} x {WRITES} writes: {with:.0} us with the fence, {without:.0} us without, ratio {:.2}",
            with / without,
        );
    }
    Ok(())
}

async fn plain(pool: &SqlitePool) -> Result<Duration, Box<dyn Error>> {
    let began = now();
    for _ in 0..WRITES {
        let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(WRITE).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    Ok(now() - began)
}

async fn fenced(fence: &Fence, stamp: &Stamp) -> Result<Duration, Box<dyn Error>> {
    let began = now();
    for _ in 0..WRITES {
        fence
            .transaction(stamp, async |tx| Ok(sqlx::query(WRITE).execute(&mut *tx).await.map(drop)?))
            .await?;
    }
    Ok(now() - began)
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6 / f64::from(WRITES)
}
