//! A database that is down is said to be down, and not only slow.
//!
//! The driver's pool takes a connection that is refused for a server that is about to start, and tries again until its patience is over: half a
//! minute, if nobody said otherwise, and then all it says is that there was no connection in time. So whoever waits asks the server directly, now
//! and then, and hands on a refusal.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::time::Duration;

use sqlx::{ConnectOptions as _, Connection, Database, Pool};
use tokio::time::sleep;

use crate::error::Cause;

/// How long a wait lasts before the server is asked, and between two questions: longer than a restart takes to be noticed by
/// nobody, and much shorter than a seal has.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// What was wanted of a pool, or why the server cannot be reached.
pub(crate) async fn reach<DB: Database, T>(
    pool: &Pool<DB>,
    wanted: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let mut wanted = pin!(wanted);
    loop {
        let asked = async {
            sleep(ASK_EVERY).await;
            pool.connect_options().connect().await
        };
        tokio::select! {
            biased;
            done = &mut wanted => return done,
            asked = asked => match asked {
                // It is there; the pool has no connection to give, or whatever is wanted takes long.
                Ok(connection) => drop(connection.close().await),
                Err(sqlx::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Err(sqlx::Error::Io(error));
                }
                // The pool knows what to do with all others.
                Err(_) => {}
            },
        }
    }
}

/// Whether trying again may help where no connection was made, if the driver tells. Time does not change that there is no TLS where it is wanted, or a
/// certificate that is not trusted.
pub(crate) fn cause(error: &sqlx::Error) -> Option<Cause> {
    match error {
        // Whoever waits for a connection of the pool waits for the server.
        sqlx::Error::PoolTimedOut => Some(Cause::Away),
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Some(Cause::Lasting),
        // So TLS says that it does not like what it was sent.
        sqlx::Error::Io(error) if error.kind() == ErrorKind::InvalidData => Some(Cause::Lasting),
        _ => None,
    }
}
