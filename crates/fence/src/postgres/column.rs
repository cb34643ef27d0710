//! A single row that has its own token in a column: the row is its own fence.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::{Query, QueryScalar};

use super::{Fence, ends};
use crate::error::{Error, Stale};
use crate::pending::Pending;
use crate::stamp::{Authority, Stamp};

/// Where commits do not wait for the disk, one that does brings all before it there. It must have something to write.
const ON_DISK: &str = "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'leasehold_fence', ''::text) \
                       WHERE current_setting('synchronous_commit') = 'off'";

impl Fence {
    /// Updates one row that carries its token itself, in one statement and without a fence row:
    ///
    /// ```no_run
    /// # use leasehold_fence::{Authority, postgres::Fence};
    /// # async fn example(fence: Fence, guard: impl Authority) -> Result<(), leasehold_fence::Error> {
    /// fence
    ///     .update_row(
    ///         &guard,
    ///         |token| {
    ///             let update = "UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2";
    ///             sqlx::query(update).bind("...").bind(token).bind(7)
    ///         },
    ///         || sqlx::query_scalar("SELECT fence FROM report WHERE id = $1").bind(7),
    ///     )
    ///     .await
    /// # }
    /// ```
    ///
    /// The statement is atomic: PostgreSQL locks the row and compares its newest version. The column is `bigint NOT NULL DEFAULT 0`.
    /// The second query is asked only when no row was updated, to tell why. Find the row by its primary key: rows of an `UPDATE`
    /// of many are compared one by one, so some may be written and others not.
    ///
    /// It is on disk when it is accepted, also where `synchronous_commit` is off: the token is in the row, so a crash that forgot the row would
    /// forget the fence. Asking for that is a second, short round trip.
    ///
    /// What this does not do: [`seal`](crate::Receiver::seal) knows nothing of the column. A stale write that comes before the first
    /// one of the new holder is taken, unless that holder raises the column first (`UPDATE report SET fence = $1 WHERE id = $2 AND fence < $1`).
    ///
    /// # Errors
    /// [`Error::NoAuthority`]. [`Error::Stale`] when the row has a greater token. [`Error::Failed`] when there is no such row, when
    /// the row's token does not stand against it (then another condition of the statement does), or when the statement failed.
    /// [`Error::Unknown`] when it was sent and no answer came, or when nobody can say whether it is on disk.
    pub async fn update_row<'q>(
        &self,
        authority: &impl Authority,
        update: impl FnOnce(i64) -> Query<'q, Postgres, PgArguments>,
        fence: impl FnOnce() -> QueryScalar<'q, Postgres, i64, PgArguments>,
    ) -> Result<(), Error> {
        let mut pending = Pending::new(&self.counts, &self.place);
        let updated: Result<(), Error> = async {
            let mut connection = self.acquired().await?;
            let stamp = authority.stamp()?;
            pending.sent();
            let done = update(stamp.signed_token()).execute(&mut *connection).await;
            let rows = done.map_err(|error| ends::of_commit(error, &stamp, &self.place))?.rows_affected();
            if rows > 0 {
                let on_disk = sqlx::query(ON_DISK).execute(&mut *connection).await;
                return on_disk.map(drop).map_err(|error| Error::unknown(&self.place, error));
            }
            let seen = fence().fetch_optional(&mut *connection).await;
            Err(self.why_not(seen.map_err(|error| self.failed(error))?, &stamp))
        }
        .await;
        pending.ended(updated)
    }

    /// Why no row was updated.
    fn why_not(&self, seen: Option<i64>, stamp: &Stamp) -> Error {
        let highest = match seen.map(u64::try_from) {
            None => {
                let why = format!("there is no such row for {stamp}; insert it first, with 0 as its token");
                return Error::failed(&self.place, why);
            }
            Some(highest) => highest.unwrap_or(0),
        };
        if highest > stamp.token() {
            return Stale::of(stamp, Some(highest)).into();
        }
        let why = format!(
            "the row has token {highest}, which lets {stamp} in; another condition of the statement did not hold"
        );
        Error::failed(&self.place, why)
    }
}
