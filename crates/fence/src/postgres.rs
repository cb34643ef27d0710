//! PostgreSQL, 14 or later: the check is the first statement of the caller's transaction.
//!
//! ```no_run
//! use leasehold_fence::{Authority, postgres::Fence};
//!
//! # async fn example(pool: sqlx::PgPool, guard: impl Authority) -> Result<(), Box<dyn std::error::Error>> {
//! let fence = Fence::new(pool);
//! fence.migrate().await?; // once; or run `migration.sql` by your own means
//! let rows = fence
//!     .transaction(&guard, async |tx| {
//!         let done = sqlx::query("UPDATE report SET body = $1 WHERE id = 7").bind("...").execute(&mut *tx).await?;
//!         Ok(done.rows_affected())
//!     })
//!     .await?; // committed, and nobody with a greater token was let in before
//! # let _ = rows; Ok(()) }
//! ```
//!
//! In a transaction of your own it is one line, before the first write: `fence.begin(&guard).await?` instead of `pool.begin().await?`, or
//! `fence.enter(&mut *tx, &guard).await?` in one that was begun already.
//!
//! # Which step is atomic
//!
//! The transaction. `leasehold_enter(name, token)`, a function of the database, locks the gate of the name (an advisory lock) until the
//! transaction ends, and behind it compares the token with the fence row: shared if that has this token already, else exclusively, and the row is
//! raised. Whoever raises it further waits for that lock. So a transaction that entered commits before a greater token is let in, or not at all. A smaller token
//! *raises an exception*, which ends the transaction whether anybody looks at a result or not. Writers of one token do not wait for each other.
//! The argument stands in [`migration::POSTGRES`], beside the code.
//!
//! # What it needs
//!
//! Any isolation level. Under REPEATABLE READ and SERIALIZABLE an entry is a serialization failure ([`Error::Failed`]) if the fence was raised
//! after the snapshot, if it had to wait, or if it raises and anybody committed after the snapshot: try again, and it is judged, or seal first. The
//! fence and what it protects are in one database. `fsync` is on. What a raise acknowledged survives a crash of the server even
//! where `synchronous_commit` is off.
//!
//! # What it does not cover
//!
//! - A failover to an asynchronous replica, and a restore: the fence is as old as the data then. Every holder seals at its grant, so
//!   from the next grant on it is right again.
//! - Writes that do not enter. The triggers of the migration refuse them, on the tables that have them.
//! - Roles that set `leasehold.stamp` or `leasehold.known` by hand, set the sequence `leasehold_raises` back, or switch triggers off: this is
//!   against mistakes, not against malice.
//! - `ROLLBACK TO` a savepoint from before the entry, which gives up the lock. The triggers notice.
//! - A refusal that a savepoint swallows: `ON_ERROR_ROLLBACK` of psql, `autosave` of pgjdbc, nested transactions of a framework, an
//!   `EXCEPTION` block. What is written afterwards is not fenced. The triggers refuse it, on the tables that have them.
//! - Work inside [`Fence::transaction`] that commits by itself. It is noticed at the end, and [`Error::Unknown`]; what it wrote in between is
//!   written. Not noticed is one that returns an error from a failed statement of the transaction that it began anew.
//! - An entry and a write in one statement: its snapshot is from before the entry.
//! - Work that switches `synchronous_commit` off behind an entry that raised.
//! - TRUNCATE of a partition that was added after `leasehold_protect`, until that is called again.
//! - A `statement_timeout` below the patience: it ends a wait first, and nobody is named.
//! - Effects outside the database.

mod batch;
mod column;
mod completed;
mod ends;
mod enter;
mod inside;
mod look;
mod open;
mod settings;
mod text;

use std::fmt;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, Postgres};

use crate::counts::Counts;
use crate::error::Error;
use crate::migration;
use crate::reach::reach;
use crate::receiver::{Answer, Hazard, Receiver, Seen};
use crate::stamp::Stamp;

pub use crate::error::Trouble;

/// For how long a seal waits for open transactions of older tokens, if nothing else was said: longer than a write takes, and shorter
/// than somebody would wait for a new holder.
pub const SEAL_PATIENCE: Duration = Duration::from_secs(2);

/// For how long an entry waits for transactions of other tokens, if nothing else was said anywhere: longer than transactions should be, and
/// shorter than a caller waits before it asks what is wrong. It is in the migration too, for callers that know only SQL.
pub const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// A fence in a PostgreSQL database. Clones are the same fence.
#[derive(Clone)]
pub struct Fence {
    pool: PgPool,
    place: String,
    /// What stands before the names of the functions and tables: nothing, or a quoted schema and a dot.
    schema: String,
    seal_patience: Duration,
    write_patience: Option<Duration>,
    counts: Counts,
}

impl Fence {
    /// The fence in the database of this pool, in whichever schema the search path finds it.
    pub fn new(pool: PgPool) -> Self {
        let place = text::place(&pool.connect_options());
        let (schema, counts) = (String::new(), Counts::default());
        Self { pool, place, schema, seal_patience: SEAL_PATIENCE, write_patience: None, counts }
    }

    /// The fence in the database behind a URL. Nothing is connected to before it is used.
    ///
    /// # Errors
    /// When it is no URL of PostgreSQL.
    pub fn at(url: &str) -> Result<Self, sqlx::Error> {
        Ok(Self::new(PgPool::connect_lazy(url)?))
    }

    /// The same in a schema of its own, which must exist.
    #[must_use]
    pub fn in_schema(mut self, schema: &str) -> Self {
        self.place = format!("{}?schema={schema}", text::place(&self.pool.connect_options()));
        self.schema = format!("{}.", text::identifier(schema));
        self
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// For how long a seal waits for open transactions of older tokens: [`SEAL_PATIENCE`] if nothing else is said.
    #[must_use]
    pub const fn with_seal_patience(mut self, patience: Duration) -> Self {
        self.seal_patience = patience;
        self
    }

    /// For how long each wait of an entry lasts. If nothing is said here, the database decides: by the setting `leasehold.patience` of the role
    /// or the session, else by `lock_timeout`, else it is [`WRITE_PATIENCE`].
    #[must_use]
    pub const fn with_write_patience(mut self, patience: Duration) -> Self {
        self.write_patience = Some(patience);
        self
    }

    /// Makes the tables and functions, or brings them up to date. Programs may do it at the same moment, and at every start, if
    /// their role may create tables.
    ///
    /// # Errors
    /// [`Error::Failed`] when the database refuses; nothing was changed then.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut script = String::new();
        if !self.schema.is_empty() {
            let schema = self.schema.trim_end_matches('.');
            script = format!("SELECT set_config('search_path', {}, true);\n", text::literal(schema));
        }
        // Statements that are sent together are one transaction: all of it is done, or nothing.
        script.push_str(migration::POSTGRES);
        let mut connection = self.acquired().await?;
        text::send(&mut connection, &script).await.map_err(|error| self.failed(error))
    }

    async fn acquired(&self) -> Result<PoolConnection<Postgres>, Error> {
        reach(&self.pool, self.pool.acquire()).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: sqlx::Error) -> Error {
        ends::failed(error, &self.place)
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let sealed = self.sealed(stamp).await;
            self.counts.seal(&self.place, sealed)
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move { self.looked(name).await.map_err(|error| self.failed(error)) })
    }

    /// Asks for `fsync`, and whether the table of the fence is logged and has its trigger.
    fn hazards(&self) -> Answer<'_, Vec<Hazard>> {
        Box::pin(async move {
            let mut connection = self.acquired().await?;
            settings::hazards(&mut connection, &self.schema).await.map_err(|error| self.failed(error))
        })
    }
}

impl Fence {
    async fn sealed(&self, stamp: &Stamp) -> Result<(), Error> {
        let mut connection = self.acquired().await?;
        // Statements that are sent together are one transaction, which ends by itself, well or badly: a caller that goes away in the
        // middle leaves no transaction open.
        let script = format!(
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;\
             SELECT set_config('leasehold.patience', '{}', true);\
             SELECT {}leasehold_seal({})",
            text::milliseconds(self.seal_patience),
            self.schema,
            text::arguments(stamp),
        );
        let done = text::send(&mut connection, &script).await;
        let result = done.map_err(|error| ends::of_commit(error, stamp, &self.place));
        if let Err(Error::Stale(_)) = &result {
            self.note(&mut connection, stamp).await;
        }
        result
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence")
            .field("place", &self.place)
            .field("seal_patience", &self.seal_patience)
            .field("write_patience", &self.write_patience)
            .finish_non_exhaustive()
    }
}
