//! What the fence costs in MariaDB: a transaction with one `INSERT`, with and without it, in turns.
//!
//! `cargo run --release -p leasehold-fence --features mysql --example cost_mysql`

use std::error::Error;
use std::time::Duration;

use leasehold_fence::mysql::Fence;
use leasehold_fence::{Receiver as _, Stamp};
use leasehold_kit::Receiver as _;
use leasehold_kit::mariadb::Server;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlPoolOptions;

/// Each way is measured so many times, in turns; the median counts.
const REPEATS: usize = 9;
const WRITES: u32 = 400;
const WRITE: &str = "INSERT INTO report (day) VALUES (CURRENT_DATE)";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for fast in [false, true] {
        // One after the other: two servers of MariaDB do not share a machine's directory for temporary files.
        let server = if fast { Server::start_fast()? } else { Server::start()? };
        let durability = if fast { "log once a second" } else { "log at each commit" };
        let pool = MySqlPoolOptions::new().max_connections(2).connect(&server.url()).await?;
        sqlx::query("CREATE TABLE report (id BIGINT AUTO_INCREMENT PRIMARY KEY, day DATE)")
            .execute(&pool)
            .await?;
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
            "mysql, MariaDB {} ({durability}): {REPEATS} x {WRITES} writes: {with:.0} us with the fence, {without:.0} us without, ratio {:.2}",
            server.version(),
            with / without,
        );
    }
    Ok(())
}

async fn plain(pool: &MySqlPool) -> Result<Duration, Box<dyn Error>> {
    let began = now();
    for _ in 0..WRITES {
        let mut tx = pool.begin().await?;
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
