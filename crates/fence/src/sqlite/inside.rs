//! A connection of the pool while it is in a fenced transaction.
//!
//! Two things would leave it in a state that nobody expects. A call that is given up while the driver begins leaves a transaction of which
//! nobody knows: [`Held`] rolls it back. And SQLite ends a transaction by itself after some errors, behind which a program that goes on would
//! commit statement by statement, without the fence: [`Inside`] is asked at every commit of the connection, and lets none through but that of the
//! fence, of the transaction that was let in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::pool::PoolConnection;
use sqlx::{Database, Sqlite, SqliteConnection, TransactionManager as _};

/// What has to be done with a connection before others have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It may be in a transaction that nobody will end.
    Begins,
    /// The driver knows what it is in, and ends it.
    InOrder,
    /// The driver takes it to be in a transaction that is over.
    Lost,
}

/// A connection that is given back to the pool as others expect it, or not at all.
pub(super) struct Held {
    conn: Option<PoolConnection<Sqlite>>,
    state: State,
}

impl Held {
    pub(super) const fn new(conn: PoolConnection<Sqlite>) -> Self {
        Self { conn: Some(conn), state: State::Begins }
    }

    /// The connection, and where to say what it is in.
    pub(super) fn parts(&mut self) -> (&mut SqliteConnection, &mut State) {
        (self.conn.as_mut().expect("it is there until it is dropped"), &mut self.state)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        match self.state {
            // It does nothing if there is nothing to roll back.
            State::Begins => <Sqlite as Database>::TransactionManager::start_rollback(&mut conn),
            State::InOrder => {}
            State::Lost => drop(conn.detach()),
        }
    }
}

/// Asked at every commit of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Inside(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    /// The fence itself commits.
    commits: AtomicBool,
    /// The transaction that was let in was rolled back.
    has_ended: AtomicBool,
    /// The connection is anybody's again.
    is_left: AtomicBool,
}

impl Inside {
    /// Watches over a connection that has begun. It takes the two hooks that SQLite has for this.
    pub(super) async fn watch(conn: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let flags = Arc::<Flags>::default();
        let (asked, told) = (Arc::clone(&flags), Arc::clone(&flags));
        let mut handle = conn.lock_handle().await?;
        handle.set_commit_hook(move || {
            let [commits, has_ended, is_left] =
                [&asked.commits, &asked.has_ended, &asked.is_left].map(|flag| flag.load(Ordering::SeqCst));
            is_left || (commits && !has_ended)
        });
        handle.set_rollback_hook(move || told.has_ended.store(true, Ordering::SeqCst));
        Ok(Self(flags))
    }

    /// From here on it may be committed, if it is still the transaction that was let in. Says whether it is.
    pub(super) fn may_commit(&self) -> bool {
        self.0.commits.store(true, Ordering::SeqCst);
        !self.0.has_ended.load(Ordering::SeqCst)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }
}
