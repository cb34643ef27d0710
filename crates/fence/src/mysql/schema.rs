//! The tables, and what has to be true of them.

use std::collections::{HashMap, HashSet};
use std::error::Error as StdError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::mysql::MySqlRow;
use sqlx::{Executor as _, MySqlConnection, Row as _};

use crate::error::{Cause, Trouble};
use crate::reach;
use crate::receiver::Hazard;

/// A seal that waited in vain is followed by one that waits twice as long, and so on, at most so many times. Whoever waits has a place in the queue of
/// writers and loses it with the wait; where that queue is longer than the patience, no repetition of the same wait would ever come to its end.
const MOST_DOUBLINGS: u32 = 4;
/// How many names are remembered as made. Beyond that all are forgotten, which costs a statement each when they come again.
const KNOWN_NAMES: usize = 4096;
/// `ER_NO_SUCH_TABLE`.
const NO_TABLE: u16 = 1146;

const SEEDED: &str = "SELECT 1 FROM leasehold_fence WHERE name = ?";
const SEED: &str = "INSERT IGNORE INTO leasehold_fence (name, token) VALUES (?, 0)";

/// The fence table is there in a way in which it would protect nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadTable {
    #[error(
        "table leasehold_fence is missing; call Fence::migrate once, as a user who may create tables, or run what `leasehold fence migration mysql` prints"
    )]
    Missing,
    #[error(
        "table leasehold_fence has engine {engine}, which does not lock rows to the end of a transaction; \
         ALTER TABLE leasehold_fence ENGINE = InnoDB"
    )]
    Engine { engine: String },
    #[error(
        "column {column} of table leasehold_fence is {found}, not {wanted}; make it so, or drop the table and call Fence::migrate"
    )]
    Column { column: &'static str, found: String, wanted: &'static str },
    #[error(transparent)]
    Asked(#[from] sqlx::Error),
}

/// What this program has seen to already.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    table: bool,
    names: HashSet<String>,
    /// How many seals of a name have waited in vain since the last one that did not.
    in_vain: HashMap<String, u32>,
}

impl Known {
    pub(super) fn has(&self, name: &str) -> bool {
        self.with(|seen| seen.names.contains(name))
    }

    pub(super) fn forget(&self, name: &str) {
        self.with(|seen| seen.names.remove(name));
    }

    /// How long the next seal of a name waits, with this patience.
    pub(super) fn patience(&self, name: &str, patience: Duration) -> Duration {
        self.with(|seen| patience.saturating_mul(1 << seen.in_vain.get(name).copied().unwrap_or(0)))
    }

    /// A seal of a name has waited, in vain or not.
    pub(super) fn waited(&self, name: &str, in_vain: bool) {
        self.with(|seen| {
            if !in_vain {
                seen.in_vain.remove(name);
            } else if let Some(times) = seen.in_vain.get_mut(name) {
                *times = (*times + 1).min(MOST_DOUBLINGS);
            } else if seen.in_vain.len() < KNOWN_NAMES {
                seen.in_vain.insert(name.to_owned(), 1);
            }
        });
    }

    /// Makes the row of a name, on a connection without a transaction. A token of 0 is below every other.
    pub(super) async fn seed(&self, conn: &mut MySqlConnection, name: &str) -> Result<(), BadTable> {
        if !self.with(|seen| seen.table) {
            look(conn).await?;
        }
        // Looked for first: an `INSERT` of a row that is there waits for whoever has it locked, and for longer than a seal is patient.
        if sqlx::query(SEEDED).bind(name.as_bytes()).fetch_optional(&mut *conn).await?.is_none() {
            sqlx::query(SEED).bind(name.as_bytes()).execute(&mut *conn).await?;
        }
        // A transaction of its own, whatever the connection does with single statements.
        conn.execute("COMMIT").await?;
        self.with(|seen| {
            seen.table = true;
            if seen.names.len() >= KNOWN_NAMES {
                seen.names.clear();
            }
            seen.names.insert(name.to_owned());
        });
        Ok(())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> T {
        // What is behind the lock is right whenever somebody panics: a set of names that can be made again.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What could make this server forget a fence, or keep it from comparing.
pub(super) async fn hazards(conn: &mut MySqlConnection) -> Result<Vec<Hazard>, BadTable> {
    let mut found = Vec::new();
    match look(conn).await {
        Ok(()) => {}
        Err(BadTable::Engine { engine }) => found.push(Hazard::Setting {
            setting: "the engine of table leasehold_fence",
            found: engine,
            so: "it does not lock rows to the end of a transaction, so every seal and write of the library is refused there, and others are not fenced",
            wanted: "InnoDB, with ALTER TABLE leasehold_fence ENGINE = InnoDB",
        }),
        Err(other) => return Err(other),
    }
    let flush: Option<i64> = sqlx::query_scalar("SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)")
        .fetch_optional(conn)
        .await?;
    if let Some(flush) = flush.filter(|flush| *flush != 1) {
        found.push(Hazard::Setting {
            setting: "innodb_flush_log_at_trx_commit",
            found: flush.to_string(),
            so: "a power cut takes back the last second of raises and writes",
            wanted: "1",
        });
    }
    Ok(found)
}

/// Looks whether the fence table protects anything. Not by `information_schema`, where a server opens the tables of all databases
/// for such a question.
pub(super) async fn look(conn: &mut MySqlConnection) -> Result<(), BadTable> {
    let tables = conn.fetch_all("SHOW TABLE STATUS LIKE 'leasehold_fence'").await?;
    // The underscore stands for any character.
    let table = tables.iter().find(|table| text(table, "Name").eq_ignore_ascii_case("leasehold_fence"));
    let engine = text(table.ok_or(BadTable::Missing)?, "Engine");
    if !engine.eq_ignore_ascii_case("InnoDB") {
        let engine = if engine.is_empty() { "none (a view)".to_owned() } else { engine };
        return Err(BadTable::Engine { engine });
    }
    let columns = conn.fetch_all("SHOW COLUMNS FROM leasehold_fence").await?;
    for (column, wanted) in [("name", "varbinary"), ("token", "bigint")] {
        let found = columns.iter().find(|row| text(row, "Field").eq_ignore_ascii_case(column));
        let found = found.map_or_else(|| "missing".to_owned(), |row| text(row, "Type").to_ascii_lowercase());
        if !found.starts_with(wanted) || found.contains("unsigned") {
            return Err(BadTable::Column { column, found, wanted });
        }
    }
    Ok(())
}

/// A column of the catalogue, which comes as text or as bytes, depending on the version.
fn text(row: &MySqlRow, column: &str) -> String {
    let bytes: Option<Vec<u8>> = row.try_get_unchecked(column).unwrap_or_default();
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// The error, or what to do about it where that is known.
pub(super) fn with_advice(source: Trouble) -> Trouble {
    match source.downcast_ref::<sqlx::Error>() {
        Some(error) if number(error) == Some(NO_TABLE) && error.to_string().contains("leasehold_") => {
            BadTable::Missing.into()
        }
        _ => source,
    }
}

/// What somebody has to mend: `ER_DBACCESS_DENIED_ERROR`, `ER_ACCESS_DENIED_ERROR`, `ER_BAD_DB_ERROR`, `ER_TABLEACCESS_DENIED_ERROR`.
const LASTING: [u16; 4] = [1044, 1045, 1049, 1142];

/// Whether trying again may help, where that is known.
pub(super) fn cause(source: &(dyn StdError + Send + Sync + 'static)) -> Option<Cause> {
    let error = match source.downcast_ref::<BadTable>() {
        Some(BadTable::Asked(error)) => error,
        Some(_) => return Some(Cause::Lasting),
        None => source.downcast_ref()?,
    };
    let lasting = || number(error).filter(|number| LASTING.contains(number)).map(|_| Cause::Lasting);
    reach::cause(error).or_else(lasting)
}

/// The server's number of an error, if it is the server's.
pub(super) fn number(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>()?;
    Some(error.number())
}
