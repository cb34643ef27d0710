//! The check itself, the tables and settings that it needs, and what its errors mean.

use std::error::Error as StdError;

use sqlx::{Connection as _, SqliteConnection};

use crate::error::Trouble;
use crate::receiver::Seen;
use crate::sql::{kept, seen};
use crate::stamp::Stamp;

/// Makes or raises the row, or leaves it as it is. In any case it takes the write lock, if the transaction has not got it.
const RAISE: &str = "INSERT INTO leasehold_fence (name, token, holder) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder
    WHERE excluded.token > leasehold_fence.token";
/// What the row has now, and the settings of this connection.
const READ: &str = "SELECT token, (SELECT journal_mode FROM pragma_journal_mode), (SELECT synchronous FROM pragma_synchronous)
    FROM leasehold_fence WHERE name = ?1";
const KEEP: &str = "INSERT INTO leasehold_refusal (name, token, highest, holder, refused_at)
    VALUES (?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))";
const DROP_OLDER: &str = "DELETE FROM leasehold_refusal WHERE name = ?1 AND id NOT IN
    (SELECT id FROM leasehold_refusal WHERE name = ?1 ORDER BY id DESC LIMIT ?2)";
const MARK: &str = "SELECT token, holder FROM leasehold_fence WHERE name = ?1";
const KEPT: &str = "SELECT token, highest, holder, refused_at FROM leasehold_refusal
    WHERE name = ?1 ORDER BY id DESC LIMIT ?2";

/// What is said of a transaction that was over before its commit.
pub(super) const ENDED: &str = "the transaction ended before its commit, by an error that was passed over and that rolls back (such as of INSERT OR ROLLBACK); \
     what came after it was not let through";

const ERROR: u32 = 1;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const FULL: u32 = 13;
const CONSTRAINT: u32 = 19;
/// `SQLITE_BUSY_SNAPSHOT`, an extended code.
const BUSY_SNAPSHOT: u32 = 517;

/// Why a connection is not fit for a fence, or cannot be let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(
        "this connection is in no transaction, so the fence would be open again before the write; \
         begin one with BEGIN IMMEDIATE, or use Fence::transaction"
    )]
    NoTransaction,
    #[error(
        "synchronous is {found}, with which a power cut takes back what was accepted; set it to FULL or EXTRA in the options of the pool, or \
         say Fence::volatile if that is no matter"
    )]
    Synchronous { found: &'static str },
    #[error(
        "journal_mode is {found}, with which a process that is killed leaves half a write in the file; set it to WAL or DELETE \
         in the options of the pool, or say Fence::volatile for a database in memory"
    )]
    Journal { found: String },
    #[error(
        "table leasehold_fence is missing; call Fence::migrate once, or run what `leasehold fence migration sqlite` prints"
    )]
    NoTable,
    #[error(
        "another connection, of this process or another one, has been writing to the file for longer than busy_timeout; SQLite does not say who, \
         `fuser FILE` lists the processes: {0}"
    )]
    Busy(sqlx::Error),
    #[error(
        "this transaction has read before it was let in, and somebody wrote since; begin it with BEGIN IMMEDIATE and try again: {0}"
    )]
    Snapshot(sqlx::Error),
    #[error(transparent)]
    Asked(#[from] sqlx::Error),
}

/// What a connection does for what it accepts.
#[derive(Debug)]
pub(super) struct Settings {
    journal: String,
    synchronous: i64,
}

/// Raises the fence, and gives back the highest token with the settings. The token was read under the lock, and decides. An equal token
/// changes no page.
pub(super) async fn run(conn: &mut SqliteConnection, stamp: &Stamp) -> Result<(u64, Settings), sqlx::Error> {
    let raise = sqlx::query(RAISE).bind(stamp.name()).bind(stamp.signed_token()).bind(stamp.holder());
    raise.execute(&mut *conn).await?;
    let read = sqlx::query_as::<_, (i64, String, i64)>(READ).bind(stamp.name());
    let (highest, journal, synchronous) = read.fetch_one(conn).await?;
    Ok((highest.cast_unsigned(), Settings { journal, synchronous }))
}

/// Transactions that the driver began are known to it. In others no second one can be begun.
///
/// It is begun by the driver, which rolls it back also when nobody waits for this call any more. One of a statement of ours would then stay
/// open, on a connection that the driver takes to be in none: whatever is written there next would wait for a commit that nobody makes.
pub(super) async fn must_be_open(conn: &mut SqliteConnection) -> Result<(), Unfit> {
    if conn.is_in_transaction() {
        return Ok(());
    }
    match conn.begin().await {
        Ok(tried) => {
            tried.rollback().await?;
            Err(Unfit::NoTransaction)
        }
        Err(_) => Ok(()),
    }
}

/// The settings of a connection that is in no transaction.
pub(super) async fn settings(conn: &mut SqliteConnection) -> Result<Settings, sqlx::Error> {
    let journal = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *conn).await?;
    let synchronous = sqlx::query_scalar("PRAGMA synchronous").fetch_one(conn).await?;
    Ok(Settings { journal, synchronous })
}

impl Settings {
    /// Whether a connection with these keeps what it accepts.
    pub(super) fn must_keep(self, is_volatile: bool) -> Result<(), Unfit> {
        match (self.journal.as_str(), self.synchronous) {
            ("off", _) => Err(Unfit::Journal { found: self.journal }),
            _ if is_volatile => Ok(()),
            ("memory", _) => Err(Unfit::Journal { found: self.journal }),
            (_, 0) => Err(Unfit::Synchronous { found: "OFF" }),
            (_, 1) => Err(Unfit::Synchronous { found: "NORMAL" }),
            _ => Ok(()),
        }
    }
}

/// Notes a refusal, and drops those that are too many.
pub(super) async fn keep(
    conn: &mut SqliteConnection,
    stamp: &Stamp,
    highest: u64,
) -> Result<(), sqlx::Error> {
    let keep = sqlx::query(KEEP).bind(stamp.name()).bind(stamp.signed_token()).bind(highest.cast_signed());
    keep.bind(stamp.holder()).execute(&mut *conn).await?;
    sqlx::query(DROP_OLDER).bind(stamp.name()).bind(kept()).execute(conn).await.map(drop)
}

pub(super) async fn look(conn: &mut SqliteConnection, name: &str) -> Result<Seen, sqlx::Error> {
    let mark = sqlx::query_as(MARK).bind(name).fetch_optional(&mut *conn).await?;
    Ok(seen(mark, sqlx::query_as(KEPT).bind(name).bind(kept()).fetch_all(conn).await?))
}

/// The extended result code.
fn code(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.as_database_error()?.code()?.parse().ok()
}

/// The first byte, which is what kind of error it is.
fn kind(error: &sqlx::Error) -> Option<u32> {
    code(error).map(|code| code & 0xff)
}

/// Whether a commit that failed so leaves a transaction that can be, and then is, rolled back: others still read the file, the disk
/// is full, or a constraint that was deferred does not hold.
pub(super) fn is_rolled_back_at_commit(error: &sqlx::Error) -> bool {
    matches!(kind(error), Some(BUSY | FULL | CONSTRAINT))
}

/// Whether it stays until somebody mends it.
pub(super) fn is_lasting(source: &(dyn StdError + Send + Sync + 'static)) -> bool {
    let unfit = source.downcast_ref::<Unfit>();
    matches!(unfit, Some(Unfit::NoTable | Unfit::Synchronous { .. } | Unfit::Journal { .. }))
}

/// The error, or what to do about it where that is known.
pub(super) fn with_advice(source: Trouble) -> Trouble {
    let source = match source.downcast::<sqlx::Error>() {
        Ok(error) => *error,
        Err(other) => return other,
    };
    let said = source.to_string();
    match (code(&source), kind(&source)) {
        (Some(BUSY_SNAPSHOT), _) => Unfit::Snapshot(source).into(),
        (_, Some(BUSY | LOCKED)) => Unfit::Busy(source).into(),
        (_, Some(ERROR)) if said.contains("no such table: leasehold_") => Unfit::NoTable.into(),
        _ => source.into(),
    }
}
