//! What an error of the driver says about the write: refused, certainly not written, or nobody can say.

use std::error::Error as StdError;
use std::fmt;

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::error::{Cause, Error, Stale};
use crate::reach;
use crate::stamp::Stamp;

/// A token below the highest, by `leasehold_enter` and `leasehold_seal`.
const STALE: &str = "LH001";
/// Not the transaction that entered, by `leasehold_still`: somebody ended that before.
const LEFT: &str = "LH003";
/// A statement after one that failed.
const ABORTED: &str = "25P02";

/// The end of an entry, or of a statement in an open transaction. Without its COMMIT nothing is written, whatever went wrong.
pub(super) fn refused(error: sqlx::Error, stamp: &Stamp, place: &str) -> Error {
    match stale(&error, stamp) {
        Some(stale) => stale.into(),
        None => failed(error, place),
    }
}

/// The end of a message that ends in a commit. The server answers with an error of severity ERROR only if it has rolled back; with
/// anything worse, or without an answer, it may have committed. (A server that is shut down while it waits for its standby has.)
pub(super) fn of_commit(error: sqlx::Error, stamp: &Stamp, place: &str) -> Error {
    if let Some(stale) = stale(&error, stamp) {
        return stale.into();
    }
    match server_said(&error) {
        Some(said) if said.code() == LEFT => left(place, "it returned no error"),
        Some(said) if said.code() == ABORTED => Error::failed(
            place,
            "a statement of the work failed and its error was not handed on, so the transaction was rolled back",
        ),
        Some(said) if said.severity() == PgSeverity::Error => failed(error, place),
        _ => Error::unknown(place, error),
    }
}

/// The end of work that ended its transaction itself.
pub(super) fn left(place: &str, returned: impl fmt::Display) -> Error {
    let why = "the work ended its transaction itself, with a COMMIT or ROLLBACK of its own; leave that to the fence";
    Error::unknown(place, format!("{why} ({returned})"))
}

/// Whether the server says that this is not the transaction that entered.
pub(super) fn is_left(error: &sqlx::Error) -> bool {
    server_said(error).is_some_and(|said| said.code() == LEFT)
}

/// What stays until somebody mends it: a database that is not there, a user or a password that is none, a right that is not granted.
const LASTING: [&str; 4] = ["3D000", "28000", "28P01", "42501"];
/// Not everybody has a program that calls `Fence::migrate`.
const HOW_TO_MIGRATE: &str = "run the migration in this database and schema: Fence::migrate, or with psql what \
    `leasehold fence migration postgres` prints";

/// The end of something that was not a commit, and no matter of tokens.
pub(super) fn failed(error: sqlx::Error, place: &str) -> Error {
    let Some(said) = server_said(&error) else {
        return Error::because(reach::cause(&error), place, error);
    };
    let missing = ["42883", "42P01"].contains(&said.code()) && said.message().contains("leasehold_");
    let hint = if missing { Some(HOW_TO_MIGRATE.to_owned()) } else { said.hint().map(str::to_owned) };
    let cause = (missing || LASTING.contains(&said.code())).then_some(Cause::Lasting);
    match (said.detail().map(str::to_owned), hint) {
        (None, None) => Error::because(cause, place, error),
        (detail, hint) => Error::because(cause, place, Said { error, detail, hint }),
    }
}

/// Whether the server refused this very stamp: a transaction may have entered under another.
fn stale(error: &sqlx::Error, stamp: &Stamp) -> Option<Stale> {
    let said = server_said(error).filter(|said| said.code() == STALE)?;
    let highest = || said.detail().and_then(|highest| highest.parse().ok());
    said.message().starts_with(&format!("{stamp} is stale")).then(|| Stale::of(stamp, highest()))
}

fn server_said(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// An error of the server with all that it said: the driver shows only the first sentence.
#[derive(Debug)]
struct Said {
    error: sqlx::Error,
    detail: Option<String>,
    hint: Option<String>,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        for more in [&self.detail, &self.hint].into_iter().flatten() {
            write!(f, "; {more}")?;
        }
        Ok(())
    }
}

impl StdError for Said {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}
