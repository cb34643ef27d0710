//! A transaction from its first statement to its real end.
//!
//! It costs no round trip more than a transaction without a fence: BEGIN and the entry travel together, and the COMMIT brings the
//! question whether there is anything to commit.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{Connection as _, Transaction};
use tokio::time::timeout;

use super::inside::Inside;
use super::{Fence, ends, text};
use crate::error::{Error, Trouble};
use crate::pending::Pending;
use crate::sql::troubled;
use crate::stamp::{Authority, Stamp};

/// For how long work that returned an error is asked about: its caller waits, and a statement that it gave up on may still be under way.
const ASK_PATIENCE: Duration = Duration::from_millis(500);

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
        let mut pending = Pending::new(&self.counts, &self.place);
        let result: Result<T, Error> = async {
            let mut lent = Lent::new(self.acquired().await?);
            let stamp = authority.stamp()?;
            let refused = match self.opened(&mut lent, &stamp).await {
                Ok(mut tx) => {
                    let inside = Inside::new(&tx);
                    let worked = work(&mut tx).await;
                    drop(inside);
                    let done = match worked {
                        Ok(value) => {
                            self.committed(&mut tx, authority, &stamp, &mut pending).await.map(|()| value)
                        }
                        Err(trouble) if self.has_left(&mut tx, &stamp).await => {
                            Err(ends::left(&self.place, trouble))
                        }
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
        .await;
        pending.ended(result)
    }

    async fn opened<'c>(
        &self,
        lent: &'c mut Lent,
        stamp: &Stamp,
    ) -> Result<Transaction<'c, Postgres>, sqlx::Error> {
        let begin = format!("BEGIN; {}", self.entry(stamp, true));
        lent.is_clear = false;
        let tx = lent.connection.begin_with(begin).await?;
        lent.is_clear = true;
        Ok(tx)
    }

    async fn committed(
        &self,
        tx: &mut PgConnection,
        authority: &impl Authority,
        stamp: &Stamp,
        pending: &mut Pending<'_>,
    ) -> Result<(), Error> {
        authority.stamp().map_err(|lapsed| Error::failed(&self.place, lapsed))?;
        pending.sent();
        // The chained transaction is empty: the driver believes that one is open, and rolls it back when it takes the connection back, with
        // a message for which nobody waits.
        let done = text::send(tx, &format!("{}; COMMIT AND CHAIN", self.still(stamp))).await;
        done.map_err(|error| ends::of_commit(error, stamp, &self.place))
    }

    /// Whether work that returned an error has ended its transaction itself before: then nobody can say what it wrote. Where it does not come
    /// to an answer, because a statement failed in whatever transaction this is, or is not over yet, it is taken at its word.
    async fn has_left(&self, tx: &mut PgConnection, stamp: &Stamp) -> bool {
        let still = self.still(stamp);
        let asked = timeout(ASK_PATIENCE, text::send(tx, &still)).await;
        asked.is_ok_and(|said| said.is_err_and(|error| ends::is_left(&error)))
    }

    /// What the work returned, as an end of the write: it was not committed.
    fn troubled(&self, trouble: Trouble, stamp: &Stamp) -> Error {
        match trouble.downcast::<sqlx::Error>() {
            Ok(error) => ends::refused(*error, stamp, &self.place),
            Err(trouble) => troubled(trouble, |trouble| Error::failed(&self.place, trouble)),
        }
    }
}

/// A connection that is not given back to the pool in the middle of something: a caller that goes away while the entry is under way
/// would leave an open transaction to the next one.
pub(super) struct Lent {
    pub(super) connection: PoolConnection<Postgres>,
    /// Whether the driver knows what is open on it.
    pub(super) is_clear: bool,
}

impl Lent {
    pub(super) const fn new(connection: PoolConnection<Postgres>) -> Self {
        Self { connection, is_clear: true }
    }

    /// Rolls back what the driver does not know of.
    pub(super) async fn clear(&mut self) {
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
