//! What the fence knows of a name, and how refusals are noted: behind the refusal, and without changing anything about it.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use super::Fence;
use crate::reach::reach;
use crate::receiver::Seen;
use crate::sql::{kept, seen};
use crate::stamp::Stamp;

/// How long a refusal may take to be noted: whoever was refused waits for it.
const NOTE_PATIENCE: Duration = Duration::from_millis(500);

impl Fence {
    pub(super) async fn looked(&self, name: &str) -> Result<Seen, sqlx::Error> {
        let mut connection = reach(&self.pool, self.pool.acquire()).await?;
        let mark = format!("SELECT token, holder FROM {}leasehold_fence WHERE name = $1", self.schema);
        let mark = sqlx::query_as(&mark).bind(name).fetch_optional(&mut *connection).await?;
        let refusals = format!(
            "SELECT token, highest, holder, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') \
             FROM {}leasehold_refusal WHERE name = $1 ORDER BY id DESC LIMIT $2",
            self.schema
        );
        let refusals = sqlx::query_as(&refusals).bind(name).bind(kept());
        Ok(seen(mark, refusals.fetch_all(&mut *connection).await?))
    }

    /// Notes a refusal on a connection that is in no transaction. If that is not possible it is not noted.
    pub(super) async fn note(&self, connection: &mut PgConnection, stamp: &Stamp) {
        let note = format!("SELECT {}leasehold_refused($1, $2, $3)", self.schema);
        let note = sqlx::query(&note).bind(stamp.name()).bind(stamp.signed_token()).bind(stamp.holder());
        timeout(NOTE_PATIENCE, note.execute(connection)).await.ok();
    }

    /// Notes a refusal on another connection, because the one on which it happened is in a transaction that has failed. If the pool
    /// has none to give, it is not noted: whoever was refused is not to wait for others.
    pub(super) async fn note_elsewhere(&self, stamp: &Stamp) {
        let connection = match self.pool.try_acquire() {
            Some(connection) => Some(connection),
            None if self.pool.size() < self.pool.options().get_max_connections() => {
                timeout(NOTE_PATIENCE, self.pool.acquire()).await.ok().and_then(Result::ok)
            }
            None => None,
        };
        if let Some(mut connection) = connection {
            self.note(&mut connection, stamp).await;
        }
    }
}
