//! The entry into a transaction of the caller's own: as its first statement, or in one message with its BEGIN.

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{Connection as _, Transaction};

use super::completed::Completed;
use super::inside::Inside;
use super::{Fence, ends, text};
use crate::error::Error;
use crate::pending::Pending;
use crate::reach::reach;
use crate::stamp::{Authority, Stamp};

impl Fence {
    /// Enters the fence in a transaction that was begun before, as its first statement. What that transaction writes from here on is
    /// written before any greater token is let in, or not at all.
    ///
    /// When this fails the transaction has failed: end it. Several fences are entered one after the other, in an order that is the
    /// same everywhere, or two programs may wait for each other.
    ///
    /// It is counted when it returns. How the transaction ends is not known here; [`Fence::transaction`] knows, and an entry inside one is
    /// part of it and not counted again. It costs a round trip, which [`Fence::begin`] does not.
    ///
    /// # Errors
    /// [`Error::NoAuthority`], [`Error::Stale`], or [`Error::Failed`], also when the connection is not in a transaction: the lock
    /// would be gone before the write.
    pub async fn enter(
        &self,
        connection: &mut PgConnection,
        authority: &impl Authority,
    ) -> Result<(), Error> {
        let pending = (!Inside::has(connection)).then(|| Pending::new(&self.counts, &self.place));
        let entered = self.entered(connection, authority).await;
        match pending {
            Some(pending) => pending.ended(entered),
            None => entered,
        }
    }

    async fn entered(&self, connection: &mut PgConnection, authority: &impl Authority) -> Result<(), Error> {
        let stamp = authority.stamp()?;
        if !connection.is_in_transaction() {
            let why = "the connection is in no transaction, so the lock would be gone before the write; begin one with sqlx";
            return Err(Error::failed(&self.place, why));
        }
        let enter = match self.write_patience {
            None => format!("CALL {}leasehold_entry($1, $2, $3)", self.schema),
            Some(_) => format!(
                "SELECT set_config('leasehold.patience', $4, true), {}leasehold_enter($1, $2, $3)",
                self.schema
            ),
        };
        let mut enter =
            sqlx::query(&enter).bind(stamp.name()).bind(stamp.signed_token()).bind(stamp.holder());
        if let Some(patience) = self.write_patience {
            enter = enter.bind(text::milliseconds(patience));
        }
        match enter.execute(connection).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.not_let_in(error, &stamp).await),
        }
    }

    /// The end of an entry that did not come in. A refusal is noted.
    async fn not_let_in(&self, error: sqlx::Error, stamp: &Stamp) -> Error {
        let end = ends::refused(error, stamp, &self.place);
        if let Error::Stale(_) = &end {
            self.note_elsewhere(stamp).await;
        }
        end
    }

    /// Begins a transaction in the fence: BEGIN and the entry are one message, so it costs no round trip more than a BEGIN. From there on it is
    /// yours, as after [`Fence::enter`]; it is counted when this returns.
    ///
    /// It has the default isolation of the session. A caller that goes away in the middle leaves no transaction open.
    ///
    /// # Errors
    /// [`Error::NoAuthority`], [`Error::Stale`] or [`Error::Failed`]: no transaction is open then.
    pub async fn begin(&self, authority: &impl Authority) -> Result<Transaction<'static, Postgres>, Error> {
        let pending = Pending::new(&self.counts, &self.place);
        let begun = self.begun(authority).await;
        pending.ended(begun)
    }

    async fn begun(&self, authority: &impl Authority) -> Result<Transaction<'static, Postgres>, Error> {
        let stamp = authority.stamp()?;
        // What stands before a BEGIN in the same message becomes part of its transaction. In this order an entry that is refused leaves no
        // transaction open of which the driver does not know.
        let begin = format!("{}; BEGIN", self.entry(&stamp, false));
        let pool = self.pool.clone();
        let begun = Completed::new(async move { pool.begin_with(begin).await });
        let tx = match reach(&self.pool, begun).await {
            Ok(tx) => tx,
            Err(error) => return Err(self.not_let_in(error, &stamp).await),
        };
        // It may have waited for a connection, and at the gate.
        authority.stamp().map_err(|lapsed| Error::failed(&self.place, lapsed))?;
        Ok(tx)
    }

    /// The statements that enter. With `noted`, [`Fence::still`] knows this transaction again. As text they are read anew each time, and of
    /// what PostgreSQL reads CALL and SET cost it least.
    pub(super) fn entry(&self, stamp: &Stamp, noted: bool) -> String {
        let patience = self.write_patience.map_or_else(String::new, |patience| {
            format!("SET LOCAL leasehold.patience = '{}'; ", text::milliseconds(patience))
        });
        let noted = if noted { ", true" } else { "" };
        format!("{patience}CALL {}leasehold_entry({}{noted})", self.schema, text::arguments(stamp))
    }

    /// The statement that fails unless this is the transaction that entered, and still is in it. It is also refused, and what follows is
    /// not carried out, after a statement that failed: to a COMMIT alone PostgreSQL would answer with success then, and roll back.
    pub(super) fn still(&self, stamp: &Stamp) -> String {
        format!("CALL {}leasehold_exit({})", self.schema, text::literal(stamp.name()))
    }
}
