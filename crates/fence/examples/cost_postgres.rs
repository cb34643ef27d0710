//! What the fence costs in PostgreSQL: one UPDATE of a row by its key in a transaction, with the fence and without, in turns.
//!
//! `cargo run --release -p leasehold-fence --features postgres --example cost_postgres [OPS]`
//!
//! A ratio is taken within each round, where all ways had the same machine, and the median of the rounds is shown. Beside the medians of the
//! writes stands their fastest tenth: on a machine with other work the medians show how long everything waits for a processor and for
//! the disk, and that is not the fence's. `SELECT 1` is there to tell the price of any further statement from that of the entry.

use std::error::Error;
use std::time::Duration;

use leasehold_fence::postgres::Fence;
use leasehold_fence::{Receiver as _, Stamp};
use leasehold_kit::{Receiver as _, postgres};
use sqlx::Executor as _;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 9;
/// One connection alone, and as many as a service of some size has.
const CONNECTIONS: [u32; 2] = [1, 16];
const WAYS: [Way; 5] = [Way::Plain, Way::Statement, Way::Enter, Way::Begin, Way::Whole];
const SETTINGS: &str = "SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings WHERE name IN \
    ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'shared_buffers', 'default_transaction_isolation')";

#[derive(Debug, Clone, Copy)]
enum Way {
    /// BEGIN, UPDATE, COMMIT.
    Plain,
    /// BEGIN, SELECT 1, UPDATE, COMMIT.
    Statement,
    /// BEGIN, the entry, UPDATE, COMMIT.
    Enter,
    /// `Fence::begin`, UPDATE, COMMIT.
    Begin,
    /// `Fence::transaction`.
    Whole,
}

impl Way {
    const fn words(self) -> &'static str {
        match self {
            Self::Plain => "without the fence",
            Self::Statement => "without, SELECT 1 before",
            Self::Enter => "Fence::enter",
            Self::Begin => "Fence::begin",
            Self::Whole => "Fence::transaction",
        }
    }
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let ops = std::env::args().nth(1).map_or(Ok(100), |ops| ops.parse())?;
    let durable = tokio::task::spawn_blocking(postgres::Server::start).await??;
    measure(&durable, ops).await?;
    drop(durable);
    let fast = tokio::task::spawn_blocking(postgres::Server::start_fast).await??;
    measure(&fast, ops * 5).await
}

async fn measure(server: &postgres::Server, ops: usize) -> Outcome<()> {
    let pool = PgPool::connect(&server.url()).await?;
    let rows = "CREATE TABLE report (id int PRIMARY KEY, n bigint NOT NULL DEFAULT 0); \
                INSERT INTO report SELECT generate_series(1, 10000)";
    sqlx::raw_sql(rows).execute(&pool).await?;
    let fence = Fence::new(pool.clone());
    fence.migrate().await?;
    let stamp = Stamp::new("reports/nightly", 34)?.held_by("worker-3")?;
    fence.seal(&stamp).await?;
    let settings: String = sqlx::query_scalar(SETTINGS).fetch_one(&pool).await?;
    println!("PostgreSQL {}: {settings}", server.version());
    pool.close().await;

    for connections in CONNECTIONS {
        // A connection that is given back is looked at before it is lent again; the next write takes another one meanwhile.
        let pool = PgPoolOptions::new().min_connections(connections + 1).max_connections(connections * 2);
        let pool = pool.connect(&server.url()).await?;
        let fence = Fence::new(pool.clone());
        let each = (ops / usize::try_from(connections.isqrt())?).max(10);
        let mut rounds: Vec<[Took; WAYS.len()]> = Vec::new();
        // Plans are settled after some calls on each connection: the first round is not looked at.
        for nth in 0..=ROUNDS {
            let mut round = [Took::default(); WAYS.len()];
            if connections == 1 {
                let mut took: [Vec<Duration>; WAYS.len()] = Default::default();
                for _ in 0..each {
                    for (way, took) in WAYS.into_iter().zip(&mut took) {
                        took.push(timed(way, &pool, &fence, &stamp, 1).await?);
                    }
                }
                round = took.map(Took::of);
            } else {
                for (way, round) in WAYS.into_iter().zip(&mut round) {
                    *round = Took::of(together(way, &pool, &fence, &stamp, connections, each).await?);
                }
            }
            if nth > 0 {
                rounds.push(round);
            }
        }
        print(connections, each, &rounds);
    }
    Ok(())
}

/// The times of writes, when as many as there are write at once, each its own row.
async fn together(
    way: Way,
    pool: &PgPool,
    fence: &Fence,
    stamp: &Stamp,
    connections: u32,
    each: usize,
) -> Outcome<Vec<Duration>> {
    let mut writers = JoinSet::new();
    for nth in 1..=connections {
        let (pool, fence, stamp) = (pool.clone(), fence.clone(), stamp.clone());
        writers.spawn(async move {
            let mut took = Vec::new();
            for _ in 0..each {
                took.push(timed(way, &pool, &fence, &stamp, nth.cast_signed() * 500).await?);
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

async fn timed(way: Way, pool: &PgPool, fence: &Fence, stamp: &Stamp, id: i32) -> Outcome<Duration> {
    let began = now();
    if let Way::Whole = way {
        fence.transaction(stamp, async |tx| Ok(update(tx, id).await?)).await?;
        return Ok(now() - began);
    }
    let mut tx = if let Way::Begin = way { fence.begin(stamp).await? } else { pool.begin().await? };
    match way {
        Way::Statement => tx.execute(sqlx::query("SELECT 1")).await.map(drop)?,
        Way::Enter => fence.enter(&mut tx, stamp).await?,
        Way::Plain | Way::Begin | Way::Whole => {}
    }
    update(&mut tx, id).await?;
    tx.commit().await?;
    Ok(now() - began)
}

async fn update(connection: &mut PgConnection, id: i32) -> Result<(), sqlx::Error> {
    let update = sqlx::query("UPDATE report SET n = n + 1 WHERE id = $1");
    update.bind(id).execute(connection).await.map(drop)
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}

/// What most writes took, and the fast ones, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
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

fn print(connections: u32, each: usize, rounds: &[[Took; WAYS.len()]]) {
    println!("  {connections} at once, {} rounds of {each} writes each, us per write:", rounds.len());
    for (nth, way) in WAYS.into_iter().enumerate() {
        let of = |what: fn(&Took) -> f64| {
            let took = middle(rounds.iter().map(|round| what(&round[nth])));
            (took, middle(rounds.iter().map(|round| what(&round[nth]) / what(&round[0]))))
        };
        let ((median, ratio), (tenth, tenth_ratio)) = (of(|took| took.median), of(|took| took.tenth));
        println!(
            "    {:<26} median {median:>6.0} (ratio {ratio:.3})   fastest tenth {tenth:>6.0} (ratio {tenth_ratio:.3})",
            way.words()
        );
    }
}

fn middle(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
