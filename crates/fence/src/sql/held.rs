//! A connection of the pool while it is in a fenced transaction: it is given back as others expect it, or not at all.

use sqlx::Database;
#[cfg(feature = "sqlite")]
use sqlx::TransactionManager as _;
use sqlx::pool::PoolConnection;

/// What has to be done with a connection before others have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It may be in a transaction that nobody will end.
    #[cfg(feature = "sqlite")]
    Begins,
    /// The driver knows what it is in, and ends it.
    InOrder,
    /// It is not as the driver takes it to be, or not as others expect it. It is closed, and the database then rolls back whatever is open.
    Lost,
}

/// A connection, and what it is in.
pub(crate) struct Held<DB: Database> {
    conn: Option<PoolConnection<DB>>,
    state: State,
}

impl<DB: Database> Held<DB> {
    pub(crate) const fn new(conn: PoolConnection<DB>, state: State) -> Self {
        Self { conn: Some(conn), state }
    }

    /// The connection, and where to say what it is in.
    pub(crate) fn parts(&mut self) -> (&mut DB::Connection, &mut State) {
        (self.conn.as_mut().expect("it is there until it is dropped"), &mut self.state)
    }
}

impl<DB: Database> Drop for Held<DB> {
    fn drop(&mut self) {
        match (self.conn.take(), self.state) {
            // It does nothing if there is nothing to roll back.
            #[cfg(feature = "sqlite")]
            (Some(mut conn), State::Begins) => DB::TransactionManager::start_rollback(&mut conn),
            (Some(conn), State::Lost) => drop(conn.detach()),
            (Some(_), State::InOrder) | (None, _) => {}
        }
    }
}
