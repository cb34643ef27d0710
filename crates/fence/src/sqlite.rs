//! SQLite: an immediate transaction that begins with the check.
//!
//! ```no_run
//! # async fn example(pool: sqlx::SqlitePool, guard: leasehold_fence::Stamp) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_fence::sqlite::Fence;
//!
//! let fence = Fence::new(pool);
//! fence.migrate().await?; // once
//!
//! fence.transaction(&guard, async |tx| {
//!     sqlx::query("INSERT INTO report (day) VALUES (CURRENT_DATE)").execute(&mut *tx).await?;
//!     Ok(())
//! }).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step.** `BEGIN IMMEDIATE` takes the write lock of the file; then an upsert raises the fence row or leaves it, and what is
//! read behind it decides. The lock is held to the commit, so all writers of the file wait for each other, as they do anyway,
//! and a seal comes before or after each of them, in this process or another one.
//!
//! **What it needs.** A file on a local disk, where locks work. What was accepted survives a power cut if `synchronous` is FULL (the
//! default) or EXTRA; in the journal mode DELETE, EXTRA is the one that is sure of the last commit. Each connection has a setting
//! of its own, so each write looks at it: NORMAL and OFF are refused, and so are the journal modes MEMORY and OFF, with which a killed process
//! leaves half a write in the file. [`Fence::volatile`] accepts what only a power cut can lose. Names are compared byte for byte.
//! The connections of the pool have no commit or rollback hook of their own: [`Fence::transaction`] takes their place.
//!
//! **What it does not cover.**
//! - Files on network disks, and copies of the file: replicas such as Litestream's have the fence of their moment.
//! - A transaction that SQLite ends by itself, after `INSERT OR ROLLBACK` or a full disk. What a program sends behind such an error
//!   is committed one by one, unfenced. [`Fence::transaction`] prevents that: nothing but itself commits there. Whoever uses [`Fence::enter`] must end at
//!   the first error.
//! - Attached files. The fence is in the main one, and so are the settings that are looked at; a crash may leave a write in one file and not in the other.
//! - Refusals by [`Fence::enter`] are not kept, because the refused transaction itself holds the only write lock.

mod check;
mod inside;

use std::pin::Pin;

use sqlx::{Connection as _, Executor as _, Sqlite, SqliteConnection, SqlitePool, Transaction};

use crate::counts::Counts;
use crate::error::{Cause, Error, Stale};
use crate::migration;
use crate::pending::Pending;
use crate::receiver::{Answer, Receiver, Seen};
use crate::sql::held::{Held, State};
use crate::sql::troubled;
use crate::stamp::{Authority, Stamp};
use inside::Inside;

pub use crate::error::Trouble;

/// A fence in a file of SQLite, next to the tables that it protects. Clones are the same fence.
#[derive(Debug, Clone)]
pub struct Fence {
    pool: SqlitePool,
    place: String,
    counts: Counts,
    is_volatile: bool,
}

impl Fence {
    /// A fence in the file of this pool. Nothing is sent yet.
    pub fn new(pool: SqlitePool) -> Self {
        let place = format!("sqlite:{}", pool.connect_options().get_filename().display());
        Self { pool, place, counts: Counts::default(), is_volatile: false }
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Accepts settings with which a power cut takes back what was accepted: `synchronous` below FULL, and databases in memory.
    #[must_use]
    pub const fn volatile(mut self) -> Self {
        self.is_volatile = true;
        self
    }

    /// Makes the tables `leasehold_fence` and `leasehold_refusal`, if they are not there, and looks at the settings.
    ///
    /// # Errors
    /// When they cannot be made, or when the settings lose what was accepted.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut conn = self.pool.acquire().await.map_err(|error| self.failed(error))?;
        for statement in migration::SQLITE {
            conn.execute(statement).await.map_err(|error| self.failed(error))?;
        }
        let settings = check::settings(&mut conn).await.map_err(|error| self.failed(error))?;
        settings.must_keep(self.is_volatile).map_err(|error| self.failed(error))
    }

    /// Lets the caller's transaction in, or refuses it. It must be the first statement of a transaction that was begun with
    /// `BEGIN IMMEDIATE`: a deferred one that has read before fails when somebody wrote since. The transaction must be given up at
    /// the first error, this one or a later one. It is counted as accepted when it is let in; whether it is committed is
    /// the caller's to see. [`Fence::transaction`] takes care of all that.
    ///
    /// # Errors
    /// As every write: see [`Error`]. On a connection without a transaction it fails.
    pub async fn enter(&self, conn: &mut SqliteConnection, authority: &impl Authority) -> Result<(), Error> {
        let result = self.let_in(conn, authority).await;
        self.counts.write(&self.place, result)
    }

    /// Begins an immediate transaction, lets it in, does the work and commits. When the work fails, is dropped or panics, nothing is
    /// written.
    ///
    /// The authority is asked before the transaction begins, and again before it commits. The work may begin transactions inside this
    /// one, which are savepoints, and [`enter`](Fence::enter) further fences; it must not commit by itself.
    ///
    /// # Errors
    /// As every write: see [`Error`]. What the work returned is the source of [`Error::Failed`]. A file that others write for longer
    /// than the pool's `busy_timeout` is a failure, and may be tried again.
    pub async fn transaction<T>(
        &self,
        authority: &impl Authority,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let mut pending = Pending::new(&self.counts, &self.place);
        let result: Result<T, Error> = async {
            let stamp = &authority.stamp()?;
            let mut held = self.hold().await?;
            let (mut tx, state) = self.open(&mut held, stamp).await?;
            let inside = self.watch(&mut tx).await?;
            let done = work(&mut tx).await;
            // Nothing of it is committed if the lease ended meanwhile, though the fence would let it.
            match done.and_then(|value| authority.stamp().map(|_| value).map_err(Trouble::from)) {
                Ok(value) => {
                    pending.sent();
                    self.commit(tx, state, Some(&inside)).await.map(|()| value)
                }
                Err(source) => Err(self.undo(tx, state, source).await),
            }
        }
        .await;
        pending.ended(result)
    }

    async fn let_in(&self, conn: &mut SqliteConnection, authority: &impl Authority) -> Result<(), Error> {
        let stamp = &authority.stamp()?;
        check::must_be_open(conn).await.map_err(|error| self.failed(error))?;
        let (highest, settings) = check::run(conn, stamp).await.map_err(|error| self.failed(error))?;
        if highest > stamp.token() {
            return Err(Stale::of(stamp, Some(highest)).into());
        }
        settings.must_keep(self.is_volatile).map_err(|error| self.failed(error))
    }

    async fn sealed(&self, stamp: &Stamp) -> Result<(), Error> {
        let mut held = self.hold().await?;
        let (tx, state) = self.open(&mut held, stamp).await?;
        self.commit(tx, state, None).await
    }

    /// A connection that is rolled back if the call is given up while the driver begins: nobody knows of that transaction.
    async fn hold(&self) -> Result<Held<Sqlite>, Error> {
        let conn = self.pool.acquire().await.map_err(|error| self.failed(error))?;
        Ok(Held::new(conn, State::Begins))
    }

    /// Begins and checks. Boxed, like the other parts of a write, because the compiler does not see otherwise that a write with
    /// anybody's closure may move between threads.
    fn open<'a>(
        &'a self,
        held: &'a mut Held<Sqlite>,
        stamp: &'a Stamp,
    ) -> Answer<'a, (Transaction<'a, Sqlite>, &'a mut State)> {
        Box::pin(async move {
            let (conn, state) = held.parts();
            let begun = conn.begin_with("BEGIN IMMEDIATE").await;
            *state = State::InOrder;
            let mut tx = begun.map_err(|error| self.failed(error))?;
            let (highest, settings) = check::run(&mut tx, stamp).await.map_err(|error| self.failed(error))?;
            if highest > stamp.token() {
                // Nothing was written here but the refusal, and the lock is at hand. A refusal that is not noted was refused all the same.
                if check::keep(&mut tx, stamp, highest).await.is_ok() {
                    let _ = tx.commit().await;
                }
                return Err(Stale::of(stamp, Some(highest)).into());
            }
            settings.must_keep(self.is_volatile).map_err(|error| self.failed(error))?;
            Ok((tx, state))
        })
    }

    fn watch<'a>(&'a self, conn: &'a mut SqliteConnection) -> Answer<'a, Inside> {
        Box::pin(async move { Inside::watch(conn).await.map_err(|error| self.failed(error)) })
    }

    /// Commits what was let in; nothing, if somebody else could have ended it and has.
    fn commit<'a>(
        &'a self,
        tx: Transaction<'a, Sqlite>,
        state: &'a mut State,
        inside: Option<&'a Inside>,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            if inside.is_some_and(|inside| !inside.may_commit()) {
                *state = State::Lost;
                return Err(self.failed(check::ENDED));
            }
            tx.commit().await.map_err(|error| {
                if check::is_rolled_back_at_commit(&error) {
                    return self.failed(error);
                }
                *state = State::Lost;
                Error::unknown(&self.place, error)
            })
        })
    }

    /// Rolls back because of an error, which is handed on.
    fn undo<'a>(
        &'a self,
        tx: Transaction<'a, Sqlite>,
        state: &'a mut State,
        source: Trouble,
    ) -> Pin<Box<dyn Future<Output = Error> + Send + 'a>> {
        Box::pin(async move {
            // If there was nothing to roll back, then SQLite has done it, and nobody could commit since.
            if tx.rollback().await.is_err() {
                *state = State::Lost;
            }
            troubled(source, |source| self.failed(source))
        })
    }

    fn failed(&self, source: impl Into<Trouble>) -> Error {
        let source = check::with_advice(source.into());
        let cause = check::is_lasting(&*source).then_some(Cause::Lasting);
        Error::because(cause, &self.place, source)
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
            let mut conn = self.pool.acquire().await.map_err(|error| self.failed(error))?;
            check::look(&mut conn, name).await.map_err(|error| self.failed(error))
        })
    }
}
