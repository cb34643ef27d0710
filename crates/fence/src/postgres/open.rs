//! A transaction from its first statement to its real end.
//!
//! It costs no round trip more than a transaction without a fence: BEGIN and the entry travel together, and the COMMIT brings the
//! question whether there is anything to commit.

use std::error::Error as StdError;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{Connection as _, Transaction};

use super::{Fence, ends, text};
use crate::counts::Counts;
use crate::error::Error;
use crate::stamp::{Authority, Stamp};

/// Whatever goes wrong in the work of a transaction: errors of the driver, of a second fence, or your own.
pub type Trouble = Box<dyn StdError + Send + Sync>;

/// PostgreSQL answers a COMMIT after a failed statement with success, and rolls back. Whatever else stands before it is refused then,
/// and what follows is not carried out; deferred constraints, which the COMMIT would check next, are the cheapest to name. The
/// chained transaction is empty: the driver believes that one is open, and rolls it back when it takes the connection back, with
/// a message for which nobody waits.
const COMMIT: &str = "SET CONSTRAINTS ALL IMMEDIATE; COMMIT AND CHAIN";

impl Fence {
    /// Begins a transaction, enters the fence, does the work and commits: all of it is written before any greater token is let in,
    /// or nothing is. It is counted by its real end.
    ///
    /// The authority is asked before the transaction begins, and again before it commits. An error of the work rolls back. The work
    /// may begin transactions inside this one, which are savepoints, and [`enter`](Fence::enter) further fences; it must not
    /// commit by itself.
    ///
    /// # Errors
    /// [`Error::NoAuthority`], [`Error::Stale`]. [`Error::Failed`] when the work or the commit failed: nothing was written, and the
    /// source is what the work returned (a serialization failure or a deadlock may be tried again). [`Error::Unknown`] when the
    /// COMMIT was sent and no answer came.
    pub async fn transaction<T>(
        &self,
        authority: &impl Authority,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Trouble>,
    ) -> Result<T, Error> {
        let mut end = Uncounted::new(self);
        let result = self.carried_out(authority, work, &mut end).await;
        end.counted(result)
    }

    async fn carried_out<T>(
        &self,
        authority: &impl Authority,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, Trouble>,
        end: &mut Uncounted<'_>,
    ) -> Result<T, Error> {
        let mut lent = Lent::new(self.pool.acquire().await.map_err(|error| self.failed(error))?);
        let stamp = authority.stamp()?;
        let refused = match self.begun(&mut lent, &stamp).await {
            Ok(mut tx) => {
                let done = match work(&mut tx).await {
                    Ok(value) => self.committed(&mut tx, authority, &stamp, end).await.map(|()| value),
                    Err(trouble) => Err(self.troubled(trouble, &stamp)),
                };
                // Here the driver rolls back whatever is still open.
                drop(tx);
                return done;
            }
            Err(error) => ends::refused(error, &stamp, &self.place),
        };
        lent.clear().await;
        if let Error::Stale(_) = &refused {
            self.note(&mut lent.connection, &stamp).await;
        }
        Err(refused)
    }

    async fn begun<'c>(
        &self,
        lent: &'c mut Lent,
        stamp: &Stamp,
    ) -> Result<Transaction<'c, Postgres>, sqlx::Error> {
        let begin = format!("BEGIN; SELECT {}leasehold_enter({})", self.schema, text::arguments(stamp));
        let tx = lent.connection.begin_with(begin).await?;
        lent.is_clear = true;
        Ok(tx)
    }

    async fn committed(
        &self,
        tx: &mut PgConnection,
        authority: &impl Authority,
        stamp: &Stamp,
        end: &mut Uncounted<'_>,
    ) -> Result<(), Error> {
        authority.stamp().map_err(|lapsed| Error::failed(&self.place, lapsed))?;
        end.is_sent = true;
        let done = text::send(tx, COMMIT).await;
        done.map_err(|error| ends::of_commit(error, stamp, &self.place))
    }

    /// What the work returned, as an end of the write: it was not committed.
    fn troubled(&self, trouble: Trouble, stamp: &Stamp) -> Error {
        let trouble = match trouble.downcast::<sqlx::Error>() {
            Ok(error) => return ends::refused(*error, stamp, &self.place),
            Err(trouble) => trouble,
        };
        match trouble.downcast::<Error>() {
            // Whatever is not known about something else, this transaction was rolled back.
            Ok(error) if matches!(*error, Error::Unknown { .. }) => Error::failed(&self.place, error),
            Ok(error) => *error,
            Err(trouble) => Error::failed(&self.place, trouble),
        }
    }
}

/// A connection that is not given back to the pool in the middle of something: a caller that goes away while the entry is under way
/// would leave an open transaction to the next one.
struct Lent {
    connection: PoolConnection<Postgres>,
    is_clear: bool,
}

impl Lent {
    const fn new(connection: PoolConnection<Postgres>) -> Self {
        Self { connection, is_clear: false }
    }

    /// Rolls back what the driver does not know of.
    async fn clear(&mut self) {
        self.is_clear = text::send(&mut self.connection, "ROLLBACK").await.is_ok();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_clear {
            self.connection.close_on_drop();
        }
    }
}

/// A write that has not ended. One that is dropped in the middle is counted too.
struct Uncounted<'a> {
    counts: &'a Counts,
    place: &'a str,
    is_sent: bool,
    is_counted: bool,
}

impl<'a> Uncounted<'a> {
    const fn new(fence: &'a Fence) -> Self {
        Self { counts: &fence.counts, place: fence.place.as_str(), is_sent: false, is_counted: false }
    }

    fn counted<T>(mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.is_counted = true;
        self.counts.write(self.place, result)
    }
}

impl Drop for Uncounted<'_> {
    fn drop(&mut self) {
        if self.is_counted {
            return;
        }
        let why = "its future was dropped before it ended";
        let error =
            if self.is_sent { Error::unknown(self.place, why) } else { Error::failed(self.place, why) };
        self.counts.write::<()>(self.place, Err(error)).ok();
    }
}
