//! The check itself, and who is in its way.

use std::time::Duration;

use sqlx::MySqlConnection;

use super::schema::number;
use crate::stamp::Stamp;

/// `ER_LOCK_WAIT_TIMEOUT`.
const LOCK_TIMEOUT: u16 = 1205;

const LOCK: &str = "SELECT token FROM leasehold_fence WHERE name = ? FOR UPDATE";
const RAISE: &str = "UPDATE leasehold_fence SET token = ?, holder = ? WHERE name = ?";

/// `sys` is there in both MySQL and MariaDB, where the tables below it have different names.
const WHO: &str =
    "SELECT DISTINCT CAST(p.id AS UNSIGNED), CONVERT(p.user USING utf8mb4), CONVERT(p.host USING utf8mb4),
        TIMESTAMPDIFF(SECOND, w.blocking_trx_started, NOW())
    FROM sys.innodb_lock_waits w
    JOIN information_schema.processlist p ON p.id = w.blocking_pid
    WHERE w.waiting_pid = ?";

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// The row has this token now, and is locked to the end of the transaction.
    Passed,
    Stale {
        highest: u64,
    },
    /// There is no row to lock.
    NoRow,
}

/// Locks the row, compares, and raises it. The decision is made on what was read under the lock.
pub(super) async fn run(conn: &mut MySqlConnection, stamp: &Stamp) -> Result<Checked, sqlx::Error> {
    let name = stamp.name().as_bytes();
    let highest: Option<i64> = sqlx::query_scalar(LOCK).bind(name).fetch_optional(&mut *conn).await?;
    let Some(highest) = highest else { return Ok(Checked::NoRow) };
    if stamp.signed_token() < highest {
        return Ok(Checked::Stale { highest: highest.cast_unsigned() });
    }
    if stamp.signed_token() > highest {
        let raise = sqlx::query(RAISE).bind(stamp.signed_token()).bind(stamp.holder()).bind(name);
        raise.execute(conn).await?;
    }
    Ok(Checked::Passed)
}

pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    number(error) == Some(LOCK_TIMEOUT)
}

/// Which connections hold what a waiting one waits for, in words.
pub(super) async fn who_blocks(conn: &mut MySqlConnection, id: u64) -> Result<Vec<String>, sqlx::Error> {
    let found: Vec<(u64, String, String, Option<i64>)> = sqlx::query_as(WHO).bind(id).fetch_all(conn).await?;
    let words = found.into_iter().map(|(id, user, host, seconds)| {
        let since = seconds.map_or(String::new(), |seconds| format!(" for {seconds} s"));
        format!("connection {id} ({user} from {host}) has been in a transaction{since}; KILL {id} ends it")
    });
    Ok(words.collect())
}

/// What a seal says when its time is over.
pub(super) fn in_the_way(
    stamp: &Stamp,
    wait: Duration,
    told: &Result<Vec<String>, sqlx::Error>,
    error: &sqlx::Error,
) -> String {
    let who = match told {
        Ok(who) if !who.is_empty() => who.join(", "),
        Ok(_) => "the server did not say who; SHOW ENGINE INNODB STATUS lists open transactions".to_owned(),
        Err(why) => {
            format!("the server did not say who ({why}); it tells users with PROCESS and SELECT on sys.*")
        }
    };
    format!("the fence row of {} was locked by others for {wait:?}: {who}: {error}", stamp.name())
}
