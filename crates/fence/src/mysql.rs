//! MySQL and MariaDB: the fence row is locked by the first statement of the caller's transaction.
//!
//! ```no_run
//! # async fn example(pool: sqlx::MySqlPool, guard: leasehold_fence::Stamp) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_fence::mysql::Fence;
//!
//! let fence = Fence::new(pool);
//! fence.migrate().await?; // once, by whoever may create tables
//!
//! fence.transaction(&guard, async |tx| {
//!     sqlx::query("INSERT INTO report (day) VALUES (CURRENT_DATE)").execute(&mut *tx).await?;
//!     Ok(())
//! }).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step.** `SELECT token FROM leasehold_fence WHERE name = ? FOR UPDATE` locks the fence row to the end of the transaction
//! and reads its newest version. What was read decides, never a count of rows: MySQL reports 0 changed rows for an `UPDATE` that
//! sets what is there already. A seal waits for every transaction that is inside, so a stale one commits before the seal or not at all.
//! Writers of one name wait for each other, and a seal waits among them: InnoDB lets them in as they came. The row is made beforehand in a transaction of its own, because two transactions that
//! lock a missing row deadlock when they insert it.
//!
//! **What it needs.** InnoDB for the fence table *and for yours*: an engine without transactions keeps what was rolled back. The fence
//! table is looked at once and another engine is refused by name; your tables are not looked at. Any isolation level is right, as long as
//! the check comes first: under REPEATABLE READ the snapshot of later reads is then taken behind the lock. What was accepted survives a
//! power cut if `innodb_flush_log_at_trx_commit` is 1, as it is by default. Names are compared byte for byte, whatever the collation.
//!
//! **What it does not cover.**
//! - Several primaries (Galera, group replication with more than one): a row lock is one server's own and is not certified. Send all
//!   fenced writes and seals to one of them.
//! - A failover to a replica that lags: its fence is as old as its data, so a stale token may pass until the next holder seals.
//! - Statements that end a transaction by themselves (`CREATE TABLE`, `TRUNCATE`, `LOCK TABLES`, `BEGIN` ...). [`Fence::transaction`] sees
//!   it, commits nothing of what came behind and reports [`Error::Unknown`]; around [`Fence::enter`] nobody sees it. It does not see it either if the
//!   connection is lost or a deadlock comes behind such a statement, and reports [`Error::Failed`] though what came before it is written.
//! - A deadlock ends the whole transaction at the server, and what a program sends next is committed one by one, unfenced.
//!   [`Fence::transaction`] prevents that. Whoever uses [`Fence::enter`] must end the transaction at the first error.

mod check;
mod refusals;
mod schema;
mod session;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{
    ConnectOptions as _, Connection as _, Executor as _, MySql, MySqlConnection, MySqlPool, Transaction,
};

use crate::counts::Counts;
use crate::error::{Error, Stale};
use crate::migration;
use crate::pending::Pending;
use crate::reach::reach;
use crate::receiver::{Answer, Hazard, Receiver, Seen};
use crate::sql::held::{Held, State};
use crate::sql::troubled;
use crate::stamp::{Authority, Stamp};
use check::Checked;
use schema::Known;

pub use crate::error::Trouble;

/// How long a first seal waits for transactions that are inside or came before it, unless [`Fence::with_seal_patience`] says otherwise: longer than a write takes, and
/// short enough for the holder to try again while its lease lasts.
pub const SEAL_PATIENCE: Duration = Duration::from_secs(5);

/// A fence in a database of MySQL or MariaDB, next to the tables that it protects. Clones are the same fence.
#[derive(Debug, Clone)]
pub struct Fence {
    pool: MySqlPool,
    place: String,
    counts: Counts,
    patience: Duration,
    known: Arc<Known>,
}

impl Fence {
    /// A fence in the database of this pool. Nothing is sent yet.
    pub fn new(pool: MySqlPool) -> Self {
        let options = pool.connect_options();
        let database = options.get_database().unwrap_or_default();
        let place = match options.get_socket() {
            Some(socket) => format!("mysql:{}/{database}", socket.display()),
            None => format!("mysql://{}:{}/{database}", options.get_host(), options.get_port()),
        };
        let (counts, known) = (Counts::default(), Arc::default());
        Self { pool, place, counts, patience: SEAL_PATIENCE, known }
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// How long a seal waits for transactions that are inside or came before it. The server counts whole seconds, at least one. A seal that waited
    /// in vain is followed by one that waits twice as long, up to sixteen times as long.
    #[must_use]
    pub const fn with_seal_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Makes the tables `leasehold_fence` and `leasehold_refusal`, if they are not there.
    ///
    /// # Errors
    /// When they cannot be made, or are there in a way in which they protect nothing, such as another engine than InnoDB.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut conn = self.acquired().await?;
        for statement in migration::MYSQL {
            conn.execute(statement).await.map_err(|error| self.failed(error))?;
        }
        schema::look(&mut conn).await.map_err(|error| self.failed(error))
    }

    /// Lets the caller's transaction in, or refuses it. This must be the first statement of the transaction, and the transaction
    /// must be given up at the first error, this one or a later one. It is counted as accepted when it is let in; whether
    /// it is committed is the caller's to see. [`Fence::transaction`] takes care of all that.
    ///
    /// # Errors
    /// As every write: see [`Error`]. On a connection without a transaction it fails.
    pub async fn enter(&self, conn: &mut MySqlConnection, authority: &impl Authority) -> Result<(), Error> {
        let result = self.let_in(conn, authority).await;
        self.counts.write(&self.place, result)
    }

    /// Begins a transaction, lets it in, does the work and commits. When the work fails, is dropped or panics, nothing is written.
    ///
    /// The authority is asked before the transaction begins, and again before it commits. The work may begin transactions inside this
    /// one, which are savepoints, and [`enter`](Fence::enter) further fences; it must not commit by itself.
    ///
    /// # Errors
    /// As every write: see [`Error`]. What the work returned is the source of [`Error::Failed`]; deadlocks and lock time-outs are
    /// among those, and may be tried again. A connection that is lost at the commit is [`Error::Unknown`].
    pub async fn transaction<T>(
        &self,
        authority: &impl Authority,
        work: impl AsyncFnOnce(&mut MySqlConnection) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let mut pending = Pending::new(&self.counts, &self.place);
        let result: Result<T, Error> = async {
            let stamp = &authority.stamp()?;
            let mut held = self.hold().await?;
            let (mut tx, state) = self.open(&mut held, stamp, None).await?;
            let done = work(&mut tx).await;
            // Nothing of it is committed if the lease ended meanwhile, though the fence would let it.
            match done.and_then(|value| authority.stamp().map(|_| value).map_err(Trouble::from)) {
                Ok(value) => {
                    pending.sent();
                    self.commit(&mut tx, state, None).await.map(|()| value)
                }
                Err(source) => Err(self.undo(&mut tx, state, source).await),
            }
        }
        .await;
        pending.ended(result)
    }

    async fn let_in(&self, conn: &mut MySqlConnection, authority: &impl Authority) -> Result<(), Error> {
        let stamp = authority.stamp()?;
        session::must_be_open(conn).await.map_err(|error| self.failed(error))?;
        if !self.known.has(stamp.name()) {
            // Not on this connection, where the new row would be part of the caller's transaction, nor on one of the pool, which
            // may have no other to give.
            let mut aside = self.aside().await.map_err(|error| self.failed(error))?;
            self.seeded(&mut aside, &stamp).await?;
            // It has done its work; nobody needs to know how it is closed.
            let _ = aside.close().await;
        }
        match check::run(conn, &stamp).await.map_err(|error| self.failed(error))? {
            Checked::Passed => Ok(()),
            Checked::Stale { highest } => {
                self.keep_aside(&stamp, highest).await;
                Err(Stale::of(&stamp, Some(highest)).into())
            }
            Checked::NoRow => Err(self.removed(&stamp)),
        }
    }

    /// Notes a refusal outside the caller's transaction, which is not over yet.
    async fn keep_aside(&self, stamp: &Stamp, highest: u64) {
        let Ok(mut aside) = self.aside().await else { return };
        if session::hurry(&mut aside).await.is_ok() {
            refusals::keep(&mut aside, stamp, highest).await;
        }
        let _ = aside.close().await;
    }

    async fn sealed(&self, stamp: &Stamp) -> Result<(), Error> {
        let mut held = self.hold().await?;
        let wait = Some(self.known.patience(stamp.name(), self.patience));
        let (mut tx, state) = self.open(&mut held, stamp, wait).await?;
        self.commit(&mut tx, state, wait).await
    }

    /// A connection whose session is not as others expect it, until that is said.
    async fn hold(&self) -> Result<Held<MySql>, Error> {
        Ok(Held::new(self.acquired().await?, State::Lost))
    }

    async fn acquired(&self) -> Result<PoolConnection<MySql>, Error> {
        reach(&self.pool, self.pool.acquire()).await.map_err(|error| self.failed(error))
    }

    /// Begins and checks: for a write or, with a time to wait, for a seal. Boxed, like the other parts of a write, because
    /// the compiler does not see otherwise that a write with anybody's closure may move between threads.
    fn open<'a>(
        &'a self,
        held: &'a mut Held<MySql>,
        stamp: &'a Stamp,
        wait: Option<Duration>,
    ) -> Answer<'a, (Transaction<'a, MySql>, &'a mut State)> {
        Box::pin(async move {
            let (conn, state) = held.parts();
            self.seeded(conn, stamp).await?;
            let id = session::id(conn, wait).await.map_err(|error| self.failed(error))?;
            let mut tx = session::begin(conn, wait).await.map_err(|error| self.failed(error))?;
            let checked = match wait {
                Some(wait) => self.check_or_name(&mut tx, stamp, wait, id).await?,
                None => check::run(&mut tx, stamp).await.map_err(|error| self.failed(error))?,
            };
            let error = match checked {
                Checked::Passed => return Ok((tx, state)),
                Checked::Stale { highest } => {
                    let stale = || Error::from(Stale::of(stamp, Some(highest)));
                    // A refusal is a refusal, also if the connection is lost behind it.
                    let given_up = session::give_up_and_keep(&mut tx, stamp, highest, wait).await;
                    given_up.map_err(|_| stale())?;
                    stale()
                }
                Checked::NoRow => {
                    session::give_up(&mut tx, wait).await.map_err(|error| self.failed(error))?;
                    self.removed(stamp)
                }
            };
            // It was given up, and the session is as it was.
            *state = State::InOrder;
            Err(error)
        })
    }

    fn commit<'a>(
        &'a self,
        tx: &'a mut MySqlConnection,
        state: &'a mut State,
        wait: Option<Duration>,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            session::commit(tx, wait).await.map_err(|error| {
                if session::is_rolled_back(&error) {
                    self.failed(error)
                } else if session::is_no_savepoint(&error) {
                    self.unknown(session::ended(&error))
                } else {
                    self.unknown(error)
                }
            })?;
            *state = State::InOrder;
            Ok(())
        })
    }

    /// Rolls back because of an error, which is handed on.
    fn undo<'a>(
        &'a self,
        tx: &'a mut MySqlConnection,
        state: &'a mut State,
        source: Trouble,
    ) -> Pin<Box<dyn Future<Output = Error> + Send + 'a>> {
        Box::pin(async move {
            match session::undo(tx).await {
                Ok(()) => *state = State::InOrder,
                Err(error) if session::is_no_savepoint(&error) && !session::has_rolled_back(&*source) => {
                    return self.unknown(session::ended(&*source));
                }
                // The commit was not sent, so a connection that is lost here has written nothing.
                Err(_) => {}
            }
            troubled(source, |source| self.failed(source))
        })
    }

    /// Makes the fence row, if this program has not seen to that. The connection must be in no transaction.
    async fn seeded(&self, conn: &mut MySqlConnection, stamp: &Stamp) -> Result<(), Error> {
        if self.known.has(stamp.name()) {
            return Ok(());
        }
        self.known.seed(conn, stamp.name()).await.map_err(|error| self.failed(error))
    }

    fn removed(&self, stamp: &Stamp) -> Error {
        self.known.forget(stamp.name());
        self.failed(format!(
            "the fence row of {} was removed; it is made again when this is tried again",
            stamp.name()
        ))
    }

    /// The check of a seal. While it waits, the server is asked who is in the way, because it does not know any more when the wait is over.
    async fn check_or_name(
        &self,
        conn: &mut MySqlConnection,
        stamp: &Stamp,
        wait: Duration,
        id: u64,
    ) -> Result<Checked, Error> {
        let mut check = std::pin::pin!(check::run(conn, stamp));
        let (checked, told) = tokio::select! {
            biased;
            checked = &mut check => (checked, Ok(Vec::new())),
            told = async { tokio::time::sleep(wait / 2).await; self.who_blocks(id).await } => (check.await, told),
        };
        let in_vain = checked.as_ref().is_err_and(check::is_lock_timeout);
        self.known.waited(stamp.name(), in_vain);
        checked.map_err(|error| match in_vain {
            true => self.failed(check::in_the_way(stamp, wait, &told, &error)),
            false => self.failed(error),
        })
    }

    async fn who_blocks(&self, id: u64) -> Result<Vec<String>, sqlx::Error> {
        let mut aside = self.aside().await?;
        let told = check::who_blocks(&mut aside, id).await;
        let _ = aside.close().await;
        told
    }

    /// A connection beside the pool.
    async fn aside(&self) -> Result<MySqlConnection, sqlx::Error> {
        self.pool.connect_options().connect().await
    }

    fn failed(&self, source: impl Into<Trouble>) -> Error {
        let source = schema::with_advice(source.into());
        Error::because(schema::cause(&*source), &self.place, source)
    }

    fn unknown(&self, source: impl Into<Trouble>) -> Error {
        Error::unknown(&self.place, source)
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(self.counts.sealing(&self.place, self.sealed(stamp)))
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let mut conn = self.acquired().await?;
            refusals::look(&mut conn, name).await.map_err(|error| self.failed(error))
        })
    }

    /// Looks at the engine of the fence table and at `innodb_flush_log_at_trx_commit`.
    fn hazards(&self) -> Answer<'_, Vec<Hazard>> {
        Box::pin(async move {
            let mut conn = self.acquired().await?;
            schema::hazards(&mut conn).await.map_err(|error| self.failed(error))
        })
    }
}
