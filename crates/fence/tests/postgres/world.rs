//! One server for all tests that do not kill it, with a database for each.

use std::fmt::Display;
use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use leasehold_fence::migration::POSTGRES as MIGRATION;
use leasehold_fence::postgres::Fence;
use leasehold_fence::{Counts, Error, Stamp};
use leasehold_kit::{Receiver as _, postgres};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{PgConnection, Postgres, Transaction};
use tokio::task::JoinHandle;

/// It is ended with the test process.
static SERVER: LazyLock<postgres::Server> = LazyLock::new(|| postgres::Server::start_fast().unwrap());
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The name that most tests use.
pub(crate) const NAME: &str = "reports/nightly";
/// Long enough for whatever is not stopped by a lock.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// For whatever must be stopped by a lock; that it is, the server confirms.
pub(crate) const A_WHILE: Duration = Duration::from_millis(200);

/// The fence without the lock that decides under READ COMMITTED, and everywhere makes a waiting seal come to its turn.
pub(crate) const NO_GATE: [(&str, &str); 4] = [
    ("CASE WHEN pg_try_advisory_xact_lock_shared(hashtextextended(name, @here@))", "CASE WHEN true"),
    ("THEN pg_try_advisory_xact_lock_shared(hashtextextended(leasehold_enter.name, @here@))", "THEN true"),
    ("PERFORM pg_advisory_xact_lock(hashtextextended(OLD.name, @here@));", "NULL;"),
    (
        "CASE WHEN is_shared THEN pg_try_advisory_xact_lock_shared(gate) ELSE pg_try_advisory_xact_lock(gate) END",
        "true",
    ),
];
/// The fence without the lock on the row of those who have its token, above READ COMMITTED.
pub(crate) const NO_ROW_LOCK: (&str, &str) = ("        FOR SHARE SKIP LOCKED;", "        ;");

/// A database of its own with the fence, and a table to write to.
pub(crate) struct World {
    pub(crate) pool: PgPool,
    pub(crate) fence: Fence,
    pub(crate) counts: Counts,
}

impl World {
    pub(crate) async fn new() -> Self {
        let world = Self::bare().await;
        world.fence.migrate().await.unwrap();
        world
    }

    /// Without the fence's tables.
    pub(crate) async fn bare() -> Self {
        let server = tokio::task::spawn_blocking(|| SERVER.url()).await.unwrap();
        let database = format!("t{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let admin = PgPoolOptions::new().max_connections(1).connect(&server).await.unwrap();
        run(&admin, &format!("CREATE DATABASE {database}")).await;
        admin.close().await;
        let options: PgConnectOptions = server.parse().unwrap();
        Self::at(options.database(&database)).await
    }

    /// With the fence, and parts of its code replaced.
    pub(crate) async fn mutated(changes: &[(&str, &str)]) -> Self {
        let world = Self::bare().await;
        let mut migration = MIGRATION.to_owned();
        for (part, instead) in changes {
            assert!(migration.contains(part), "{part:?} is not in the migration any more");
            migration = migration.replace(part, instead);
        }
        run(&world.pool, &migration).await;
        world
    }

    pub(crate) async fn at(options: PgConnectOptions) -> Self {
        let pool = pool(options, 24).await;
        run(&pool, "CREATE TABLE IF NOT EXISTS entry (id bigserial PRIMARY KEY, name text, token bigint, value text)").await;
        let counts = Counts::default();
        Self { fence: Fence::new(pool.clone()).counted(&counts), pool, counts }
    }

    pub(crate) async fn begin(&self) -> Transaction<'static, Postgres> {
        self.pool.begin().await.unwrap()
    }

    /// A whole fenced write.
    pub(crate) async fn write(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        self.fence.transaction(stamp, async |tx| Ok(put(tx, stamp, value).await?)).await
    }

    /// What was written, in the order in which it was: `token value`.
    pub(crate) async fn entries(&self) -> Vec<String> {
        let all = "SELECT token || ' ' || value FROM entry ORDER BY id";
        sqlx::query_scalar(all).fetch_all(&self.pool).await.unwrap()
    }

    /// The token of the fence row, as the table has it.
    pub(crate) async fn highest(&self, name: &str) -> Option<i64> {
        let highest = "SELECT token FROM leasehold_fence WHERE name = $1";
        sqlx::query_scalar(highest).bind(name).fetch_optional(&self.pool).await.unwrap()
    }

    /// Waits until as many backends of this database wait for a lock.
    pub(crate) async fn until_waiting(&self, backends: i64) {
        let waiting = "SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                       WHERE NOT l.granted AND a.datname = current_database()";
        let arrived = async {
            while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&self.pool).await.unwrap() != backends {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, arrived)
            .await
            .unwrap_or_else(|_| panic!("{backends} backends never waited"));
    }
}

pub(crate) async fn pool(options: PgConnectOptions, connections: u32) -> PgPool {
    PgPoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
}

pub(crate) async fn run(pool: &PgPool, statements: &str) {
    sqlx::raw_sql(statements).execute(pool).await.unwrap();
}

/// The write of the tests, in a transaction or not.
pub(crate) async fn put(
    connection: &mut PgConnection,
    stamp: &Stamp,
    value: &str,
) -> Result<(), sqlx::Error> {
    let insert = sqlx::query("INSERT INTO entry (name, token, value) VALUES ($1, $2, $3)");
    insert.bind(stamp.name()).bind(stamp.signed_token()).bind(value).execute(connection).await.map(drop)
}

pub(crate) fn stamp(token: u64) -> Stamp {
    of(NAME, token)
}

pub(crate) fn of(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("worker-{token}")).unwrap()
}

pub(crate) async fn pid(connection: &mut PgConnection) -> i32 {
    sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await.unwrap()
}

/// Waits for a task that nothing should stop.
pub(crate) async fn soon<T>(task: JoinHandle<T>) -> T {
    tokio::time::timeout(SOON, task).await.expect("nothing should stop it").unwrap()
}

/// Lets a call run beside the test.
pub(crate) fn beside<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(call)
}

/// The highest token that a refusal names; anything else is no refusal.
pub(crate) fn refused_for<T: std::fmt::Debug>(result: Result<T, Error>) -> u64 {
    match result {
        Err(Error::Stale(stale)) => stale.highest.unwrap(),
        other => panic!("{other:?} is no refusal for a stale token"),
    }
}

/// What a failure says, and nothing else is one.
pub(crate) fn why_failed<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(error @ Error::Failed { .. }) => error.to_string(),
        other => panic!("{other:?} is no failure"),
    }
}

/// Whether words are part of a text.
pub(crate) fn has(text: impl Display, words: &str) {
    let text = text.to_string();
    assert!(text.contains(words), "{words:?} is not part of {text:?}");
}
