//! The fence in SQLite: connections of this process, and other processes that are killed.

mod contract;
mod dropped;
mod guide;
mod inside;
mod processes;
mod wrong_ways;

use std::path::Path;
use std::time::Duration;

use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Error, Stamp};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{Executor as _, SqliteConnection, SqlitePool};

/// A new file with a fence and a table to protect. The directory is removed when it is dropped.
struct File {
    pool: SqlitePool,
    fence: Fence,
    directory: tempfile::TempDir,
}

async fn file(journal: SqliteJournalMode) -> File {
    let directory = tempfile::tempdir().unwrap();
    let pool = open(directory.path(), |options| options.journal_mode(journal).create_if_missing(true)).await;
    // Its numbers rise in the order in which the rows were written.
    let data = "CREATE TABLE written (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, token INTEGER NOT NULL, value TEXT NOT NULL)";
    pool.execute(data).await.unwrap();
    let fence = Fence::new(pool.clone());
    fence.migrate().await.unwrap();
    File { pool, fence, directory }
}

async fn wal() -> File {
    file(SqliteJournalMode::Wal).await
}

async fn open(directory: &Path, with: impl Fn(SqliteConnectOptions) -> SqliteConnectOptions) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(directory.join("data.db"));
    let options = with(options.busy_timeout(Duration::from_secs(20)));
    SqlitePoolOptions::new().max_connections(12).connect_with(options).await.unwrap()
}

fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The write that the fence is for.
async fn insert(conn: &mut SqliteConnection, stamp: &Stamp, value: &str) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO written (name, token, value) VALUES (?, ?, ?)");
    let insert = insert.bind(stamp.name()).bind(stamp.signed_token()).bind(value);
    insert.execute(conn).await.map(drop)
}

/// The same behind the fence.
async fn write(fence: &Fence, stamp: &Stamp, value: &str) -> Result<(), Error> {
    fence.transaction(stamp, async |tx| Ok(insert(tx, stamp, value).await?)).await
}

/// Tokens in the order in which they were written.
async fn tokens(pool: &SqlitePool, name: &str) -> Vec<u64> {
    let asked =
        sqlx::query_scalar::<_, i64>("SELECT token FROM written WHERE name = ? ORDER BY id").bind(name);
    asked.fetch_all(pool).await.unwrap().into_iter().map(i64::cast_unsigned).collect()
}

/// What a refusal says of the highest token.
fn highest<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("it is not stale: {other:?}"),
    }
}
