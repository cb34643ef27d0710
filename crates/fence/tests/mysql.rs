//! The fence in MySQL and MariaDB, on a real server. With `LEASEHOLD_TEST_MYSQL=mysql://root@127.0.0.1:3306` the tests that do not kill
//! their server use that one, which may be of another version or make.

mod contract;
mod crash;
mod guide;
mod inside;
mod interleavings;
mod waiting;
mod wrong_ways;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_fence::mysql::Fence;
use leasehold_fence::{Error, Stamp};
use leasehold_kit::{Receiver as _, mariadb};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, MySqlConnection, MySqlPool};
use tokio::sync::{RwLock, RwLockReadGuard};

/// One server for all tests, because it takes seconds to make one. Those that kill it have it for themselves.
static SERVER: LazyLock<RwLock<mariadb::Server>> =
    LazyLock::new(|| RwLock::new(mariadb::Server::start().unwrap()));

/// As long as this lives nobody kills the server.
type Alive = RwLockReadGuard<'static, mariadb::Server>;

/// A database of its own on the server, with a fence, a table to protect, and this many connections.
async fn database(connections: u32) -> (MySqlPool, Fence, Option<Alive>) {
    let (server, alive) = match std::env::var("LEASEHOLD_TEST_MYSQL") {
        Ok(url) => (url, None),
        Err(_) => {
            let alive = SERVER.read().await;
            (alive.url(), Some(alive))
        }
    };
    let (pool, fence) = database_on(&server, connections).await;
    (pool, fence, alive)
}

async fn database_on(server: &str, connections: u32) -> (MySqlPool, Fence) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let server: MySqlConnectOptions = server.parse().unwrap();
    let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut first = server.clone().database("mysql").connect().await.unwrap();
    first.execute(format!("CREATE DATABASE {name}").as_str()).await.unwrap();
    first.close().await.unwrap();
    let pool = pool(server.database(&name), connections).await;
    pool.execute(DATA).await.unwrap();
    let fence = Fence::new(pool.clone());
    fence.migrate().await.unwrap();
    (pool, fence)
}

async fn pool(options: MySqlConnectOptions, connections: u32) -> MySqlPool {
    // A server that was killed is not waited for long.
    let pool = MySqlPoolOptions::new().max_connections(connections).acquire_timeout(Duration::from_secs(10));
    pool.connect_with(options).await.unwrap()
}

/// What is protected. Its numbers rise in the order in which the rows were written.
const DATA: &str = "CREATE TABLE written (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARBINARY(544) NOT NULL, token BIGINT NOT NULL, value VARCHAR(100) NOT NULL) ENGINE = InnoDB";

fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The write that the fence is for.
async fn insert(conn: &mut MySqlConnection, stamp: &Stamp, value: &str) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO written (name, token, value) VALUES (?, ?, ?)");
    let insert = insert.bind(stamp.name().as_bytes()).bind(stamp.signed_token()).bind(value);
    insert.execute(conn).await.map(drop)
}

/// The same behind the fence.
async fn write(fence: &Fence, stamp: &Stamp, value: &str) -> Result<(), Error> {
    fence.transaction(stamp, async |tx| Ok(insert(tx, stamp, value).await?)).await
}

/// Tokens in the order in which they were written.
async fn tokens(pool: &MySqlPool, name: &str) -> Vec<u64> {
    let found: Vec<i64> = sqlx::query_scalar("SELECT token FROM written WHERE name = ? ORDER BY id")
        .bind(name.as_bytes())
        .fetch_all(pool)
        .await
        .unwrap();
    found.into_iter().map(i64::cast_unsigned).collect()
}

/// What a refusal says of the highest token.
fn highest<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("it is not stale: {other:?}"),
    }
}
