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

/// Whether a connection cannot be made for what time does not change: no TLS where it is wanted, or a certificate that is not trusted.
pub(crate) fn is_for_good(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => true,
        // So TLS says that it does not like what it was sent.
        sqlx::Error::Io(error) => error.kind() == ErrorKind::InvalidData,
        _ => false,
    }
}
