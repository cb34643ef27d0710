//! The last refusals, for people that look. Best effort: keeping them changes no outcome.

use sqlx::{Executor as _, MySqlConnection};

use crate::receiver::Seen;
use crate::sql::{kept, seen};
use crate::stamp::Stamp;

const KEEP: &str = "INSERT INTO leasehold_refusal (name, token, highest, holder, refused_at)
    VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3))";
/// The table is read in a table of its own, because the server does not read what it deletes from otherwise.
const DROP_OLDER: &str = "DELETE FROM leasehold_refusal WHERE name = ? AND id <
    (SELECT id FROM (SELECT id FROM leasehold_refusal WHERE name = ? ORDER BY id DESC LIMIT 1 OFFSET ?) AS oldest)";
const MARK: &str = "SELECT token, holder FROM leasehold_fence WHERE name = ?";
const KEPT: &str =
    "SELECT token, highest, holder, CONCAT(LEFT(DATE_FORMAT(refused_at, '%Y-%m-%dT%T.%f'), 23), 'Z')
    FROM leasehold_refusal WHERE name = ? ORDER BY id DESC LIMIT ?";

/// Notes a refusal outside the transaction that was refused, and drops those that are too many.
pub(super) async fn keep(conn: &mut MySqlConnection, stamp: &Stamp, highest: u64) {
    let kept = try_to_keep(conn, stamp, highest).await;
    // A refusal that is not noted was refused all the same.
    drop(kept);
}

async fn try_to_keep(conn: &mut MySqlConnection, stamp: &Stamp, highest: u64) -> Result<(), sqlx::Error> {
    let name = stamp.name().as_bytes();
    let keep = sqlx::query(KEEP).bind(name).bind(stamp.signed_token()).bind(highest.cast_signed());
    keep.bind(stamp.holder()).execute(&mut *conn).await?;
    let older = sqlx::query(DROP_OLDER).bind(name).bind(name).bind(kept() - 1);
    older.execute(&mut *conn).await?;
    // On a connection that does not commit by itself.
    conn.execute("COMMIT").await?;
    Ok(())
}

pub(super) async fn look(conn: &mut MySqlConnection, name: &str) -> Result<Seen, sqlx::Error> {
    let name = name.as_bytes();
    let mark: Option<(i64, Option<String>)> =
        sqlx::query_as(MARK).bind(name).fetch_optional(&mut *conn).await?;
    // A row with 0 was made and not yet raised.
    let mark = mark.filter(|(token, _)| *token > 0);
    Ok(seen(mark, sqlx::query_as(KEPT).bind(name).bind(kept()).fetch_all(conn).await?))
}
