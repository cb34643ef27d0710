//! What the fence costs in PostgreSQL: one UPDATE of a row by its key in a transaction, with the fence and without, in turns.
//!
//! `cargo run --release -p leasehold-fence --features postgres --example cost_postgres [OPS]`
//!
//! Beside the medians stands the fastest tenth: on a machine with other work the medians show how long everything waits for a
//! processor, and that is not the fence's.

use std::error::Error;
use std::time::Duration;

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Receiver as _, Stamp};
use leasehold_receivers::{Receiver as _, postgres};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const REPEATS: usize = 7;
const WRITERS: i32 = 8;
const WAYS: [Way; 3] = [Way::Plain, Way::Enter, Way::Whole];

#[derive(Debug, Clone, Copy)]
enum Way {
    /// BEGIN, UPDATE, COMMIT.
    Plain,
    /// BEGIN, the entry, UPDATE, COMMIT.
    Enter,
    /// `Fence::transaction`.
    Whole,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let ops = std::env::args().nth(1).map_or(Ok(100), |ops| ops.parse())?;
    let durable = tokio::task::spawn_blocking(postgres::Server::start).await??;
    measure(&durable, "fsync on", ops).await?;
    drop(durable);
    let fast = tokio::task::spawn_blocking(postgres::Server::start_fast).await??;
    measure(&fast, "fsync off", ops * 5).await
}

async fn measure(server: &postgres::Server, disk: &str, ops: usize) -> Outcome<()> {
    let pool = PgPoolOptions::new().min_connections(2).max_connections(2).connect(&server.url()).await?;
    let rows = "CREATE TABLE report (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0); \
                INSERT INTO report SELECT generate_series(1, 1000)";
    sqlx::raw_sql(rows).execute(&pool).await?;
    let fence = Fence::new(pool.clone());
    fence.migrate().await?;
    let stamp = Stamp::new("reports/nightly", 34)?.held_by("worker-3")?;
    fence.seal(&stamp).await?;
    // Plans are settled after some calls on each connection.
    for _ in 0..20 {
        for way in WAYS {
            round(way, &pool, &fence, &stamp, 1).await?;
        }
    }

    let mut alone: [Vec<Took>; 3] = Default::default();
    for _ in 0..REPEATS {
        let mut took: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ops {
            for (nth, way) in WAYS.into_iter().enumerate() {
                let began = now();
                round(way, &pool, &fence, &stamp, 1).await?;
                took[nth].push(now() - began);
            }
        }
        for (nth, took) in took.into_iter().enumerate() {
            alone[nth].push(Took::of(took));
        }
    }
    print("one writer", disk, server.version(), ops, &alone);

    let pool = PgPoolOptions::new().min_connections(16).max_connections(16).connect(&server.url()).await?;
    let fence = Fence::new(pool.clone());
    for way in WAYS {
        together(way, &pool, &fence, &stamp, 20).await?;
    }
    let mut beside: [Vec<Took>; 3] = Default::default();
    let each = (ops / 4).max(10);
    for _ in 0..REPEATS {
        for (nth, way) in WAYS.into_iter().enumerate() {
            beside[nth].push(Took::of(together(way, &pool, &fence, &stamp, each).await?));
        }
    }
    print("8 writers of one token", disk, server.version(), each, &beside);
    Ok(())
}

/// The times of writes, when as many as there are write at once.
async fn together(
    way: Way,
    pool: &PgPool,
    fence: &Fence,
    stamp: &Stamp,
    each: usize,
) -> Outcome<Vec<Duration>> {
    let mut writers = JoinSet::new();
    for nth in 1..=WRITERS {
        let (pool, fence, stamp) = (pool.clone(), fence.clone(), stamp.clone());
        writers.spawn(async move {
            let mut took = Vec::new();
            for _ in 0..each {
                let began = now();
                round(way, &pool, &fence, &stamp, nth * 100).await?;
                took.push(now() - began);
            }
            Outcome::Ok(took)
        });
    }
    let mut took = Vec::new();
    while let Some(ended) = writers.join_next().await {
        took.extend(ended??);
    }
    Ok(took)
}

async fn round(way: Way, pool: &PgPool, fence: &Fence, stamp: &Stamp, id: i32) -> Outcome<()> {
    match way {
        Way::Plain => {
            let mut tx = pool.begin().await?;
            update(&mut tx, id).await?;
            Ok(tx.commit().await?)
        }
        Way::Enter => {
            let mut tx = pool.begin().await?;
            fence.enter(&mut tx, stamp).await?;
            update(&mut tx, id).await?;
            Ok(tx.commit().await?)
        }
        Way::Whole => Ok(fence.transaction(stamp, async |tx| Ok(update(tx, id).await?)).await?),
    }
}

async fn update(connection: &mut PgConnection, id: i32) -> Result<(), sqlx::Error> {
    let update = sqlx::query("UPDATE report SET n = n + 1 WHERE id = $1");
    update.bind(id).execute(connection).await.map(drop)
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}

/// What most writes took, and the fast ones, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Took {
    median: f64,
    tenth: f64,
}

impl Took {
    fn of(mut took: Vec<Duration>) -> Self {
        took.sort();
        let at = |nth: usize| took[nth].as_secs_f64() * 1e6;
        Self { median: at(took.len() / 2), tenth: at(took.len() / 10) }
    }
}

fn print(what: &str, disk: &str, version: &str, ops: usize, took: &[Vec<Took>; 3]) {
    println!("postgres {version}, {disk}, {what}, {REPEATS} x {ops} ops, us per write:");
    for (word, part) in [("median", 0), ("tenth", 1)] {
        let [plain, enter, whole] = took.each_ref().map(|took| {
            let mut took: Vec<f64> = took.iter().map(|one| [one.median, one.tenth][part]).collect();
            took.sort_by(f64::total_cmp);
            took[took.len() / 2]
        });
        let (enter_ratio, whole_ratio) = (enter / plain, whole / plain);
        println!(
            "    {word}: without {plain:.0}, enter {enter:.0} ({enter_ratio:.3}), transaction {whole:.0} ({whole_ratio:.3})"
        );
    }
}
