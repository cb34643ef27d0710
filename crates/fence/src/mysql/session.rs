//! A transaction that is still the one that was let in when it is committed.
//!
//! Two things end a transaction behind the back of whoever writes in it: a deadlock, which rolls it back, and statements that commit
//! by themselves. What is sent after that would be committed statement by statement, without the fence. So the session does
//! not commit by itself while it is inside, and a savepoint that was set at the beginning is released in front of the commit: it is
//! gone if the transaction is another one, and then the commit behind it is not carried out.

use std::error::Error as StdError;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, MySql, MySqlConnection, Transaction};

use super::refusals;
use super::schema::number;
use crate::error::causes;
use crate::stamp::Stamp;

/// `ER_SP_DOES_NOT_EXIST`, which is also said of savepoints.
const NO_SAVEPOINT: u16 = 1305;
/// Errors of a commit after which the transaction is certainly rolled back: a deadlock (Galera finds some at the commit), a
/// server or a transaction that only reads, and a refusal by group replication.
const ROLLED_BACK: [u16; 4] = [1213, 1290, 1792, 3101];
/// Errors of a statement that may have rolled back the whole transaction: deadlock, lock time-out (if the server is set so), locks
/// beyond the memory for them, and a row that changed behind the snapshot.
const ROLLS_BACK: [u16; 4] = [1213, 1205, 1206, 1020];

/// How long a refusal waits to be noted. The table may be locked, by the refused transaction itself if it has read it.
const NOTING_WAIT: Duration = Duration::from_secs(1);

const BEGIN: &str = "SET @leasehold_autocommit = @@SESSION.autocommit; SET autocommit = 0";
const OPEN: &str = "START TRANSACTION; SAVEPOINT leasehold_fence";
const RESTORE: &str = "SET autocommit = @leasehold_autocommit";
const RESTORE_WAIT: &str = "SET SESSION innodb_lock_wait_timeout = @leasehold_wait; SET SESSION lock_wait_timeout = @leasehold_table_wait";

/// A connection that is in no transaction, where the check would be over before the write.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotOpen {
    #[error(
        "this connection is in no transaction, so the fence would be open again before the write; \
         begin one, or use Fence::transaction"
    )]
    NoTransaction,
    #[error(transparent)]
    Asked(#[from] sqlx::Error),
}

/// Transactions that the driver began are known to it. Others are found by a savepoint, which does not last outside of one.
pub(super) async fn must_be_open(conn: &mut MySqlConnection) -> Result<(), NotOpen> {
    if conn.is_in_transaction() {
        return Ok(());
    }
    match run(conn, "SAVEPOINT leasehold_enter; RELEASE SAVEPOINT leasehold_enter").await {
        Err(error) if is_no_savepoint(&error) => Err(NotOpen::NoTransaction),
        other => Ok(other?),
    }
}

/// The server's number of the connection, if there will be a wait in which to ask about it.
pub(super) async fn id(conn: &mut MySqlConnection, wait: Option<Duration>) -> Result<u64, sqlx::Error> {
    match wait {
        Some(_) => sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS UNSIGNED)").fetch_one(conn).await,
        None => Ok(0),
    }
}

/// Begins, in one round trip. With a time to wait, locks are waited for no longer.
pub(super) async fn begin(
    conn: &mut MySqlConnection,
    wait: Option<Duration>,
) -> Result<Transaction<'_, MySql>, sqlx::Error> {
    let wait = wait.map_or(String::new(), |wait| format!("; {}", limit_waits(wait)));
    conn.begin_with(format!("{BEGIN}{wait}; {OPEN}")).await
}

/// Commits, if this is still the transaction that was begun. In one round trip: what stands behind a statement that fails is not
/// carried out.
pub(super) async fn commit(conn: &mut MySqlConnection, wait: Option<Duration>) -> Result<(), sqlx::Error> {
    end(conn, "RELEASE SAVEPOINT leasehold_fence; COMMIT", wait).await
}

/// Rolls back, and fails if this is not the transaction that was begun.
pub(super) async fn undo(conn: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    end(conn, "ROLLBACK TO SAVEPOINT leasehold_fence; ROLLBACK", None).await
}

/// Rolls back what has written nothing.
pub(super) async fn give_up(conn: &mut MySqlConnection, wait: Option<Duration>) -> Result<(), sqlx::Error> {
    end(conn, "ROLLBACK", wait).await
}

/// Rolls back what was refused, and then notes the refusal.
pub(super) async fn give_up_and_keep(
    conn: &mut MySqlConnection,
    stamp: &Stamp,
    highest: u64,
    wait: Option<Duration>,
) -> Result<(), sqlx::Error> {
    match wait {
        Some(_) => run(conn, "ROLLBACK").await?,
        None => run(conn, &format!("ROLLBACK; {}", limit_waits(NOTING_WAIT))).await?,
    }
    refusals::keep(conn, stamp, highest).await;
    // If it was not noted in full, the rest is open.
    give_up(conn, Some(NOTING_WAIT)).await
}

/// A connection on which a refusal is noted: nothing there is waited for long.
pub(super) async fn hurry(conn: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    run(conn, &limit_waits(NOTING_WAIT)).await
}

fn limit_waits(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    format!(
        "SET @leasehold_wait = @@SESSION.innodb_lock_wait_timeout; SET @leasehold_table_wait = @@SESSION.lock_wait_timeout; \
         SET SESSION innodb_lock_wait_timeout = {seconds}; SET SESSION lock_wait_timeout = {seconds}"
    )
}

async fn end(conn: &mut MySqlConnection, how: &str, wait: Option<Duration>) -> Result<(), sqlx::Error> {
    let restore_wait = wait.map_or(String::new(), |_| format!("; {RESTORE_WAIT}"));
    run(conn, &format!("{how}; {RESTORE}{restore_wait}")).await
}

async fn run(conn: &mut MySqlConnection, statements: &str) -> Result<(), sqlx::Error> {
    conn.execute(statements).await.map(drop)
}

pub(super) fn is_no_savepoint(error: &sqlx::Error) -> bool {
    number(error) == Some(NO_SAVEPOINT)
}

/// Whether a commit that failed so has certainly written nothing.
pub(super) fn is_rolled_back(error: &sqlx::Error) -> bool {
    number(error).is_some_and(|number| ROLLED_BACK.contains(&number))
}

/// Whether a statement that failed so explains that the transaction is over and nothing of it was written.
pub(super) fn has_rolled_back(error: &(dyn StdError + 'static)) -> bool {
    let mut numbers = causes(error).filter_map(|error| number(error.downcast_ref()?));
    numbers.any(|number| ROLLS_BACK.contains(&number))
}

/// What is said of a transaction that was not the same any more.
pub(super) fn ended(error: &dyn StdError) -> String {
    format!(
        "the transaction ended before its commit, by a statement that commits (such as CREATE TABLE) or by a deadlock that was passed over; \
         what came before it may be written, what came after it is not: {error}"
    )
}
