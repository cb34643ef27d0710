//! Words as PostgreSQL reads them, where no parameters can be sent: several statements in one message have none.

use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use crate::stamp::Stamp;

/// Sends statements in one message. Outside of a transaction they are one.
pub(super) async fn send(connection: &mut PgConnection, statements: &str) -> Result<(), sqlx::Error> {
    connection.execute(statements).await.map(drop)
}

/// A literal that means the same whatever `standard_conforming_strings` is.
pub(super) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

/// A name with whatever characters it has.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Name, token and holder, as `leasehold_enter` and `leasehold_seal` take them.
pub(super) fn arguments(stamp: &Stamp) -> String {
    let holder = stamp.holder().map_or_else(|| "NULL".to_owned(), literal);
    format!("{}, {}, {holder}", literal(stamp.name()), stamp.token())
}

/// A length of time as `lock_timeout` takes it. 0 would be no limit at all.
pub(super) fn milliseconds(patience: Duration) -> String {
    i32::try_from(patience.as_millis()).unwrap_or(i32::MAX).max(1).to_string()
}

/// Where the database is, without a password.
pub(super) fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    match options.get_socket() {
        Some(socket) => format!("postgres://{}/{database}", socket.display()),
        None => format!("postgres://{}:{}/{database}", options.get_host(), options.get_port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_ends_where_it_should() {
        assert_eq!(literal("o'clock"), "E'o''clock'");
        assert_eq!(literal(r"\'; DROP TABLE t; --"), r"E'\\''; DROP TABLE t; --'");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn a_stamp_without_a_holder_has_none() {
        let stamp = Stamp::new("a", 1 << 60).unwrap();
        assert_eq!(arguments(&stamp), "E'a', 1152921504606846976, NULL");
        assert_eq!(arguments(&stamp.held_by("w").unwrap()), "E'a', 1152921504606846976, E'w'");
    }

    #[test]
    fn a_patience_is_never_endless() {
        assert_eq!(milliseconds(Duration::ZERO), "1");
        assert_eq!(milliseconds(Duration::from_millis(1500)), "1500");
        assert_eq!(milliseconds(Duration::MAX), i32::MAX.to_string());
    }

    #[test]
    fn a_place_has_no_password() {
        let options = "postgres://app:secret@db.example:6432/jobs".parse().unwrap();
        assert_eq!(place(&options), "postgres://db.example:6432/jobs");
    }
}
