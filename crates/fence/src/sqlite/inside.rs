//! A connection while a fenced transaction is open on it.
//!
//! SQLite ends a transaction by itself after some errors, behind which a program that goes on would commit statement by statement, without the
//! fence: [`Inside`] is asked at every commit of the connection, and lets none through but that of the fence, of the transaction that was let in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::SqliteConnection;

/// Asked at every commit of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Inside(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    /// The fence itself commits.
    commits: AtomicBool,
    /// The transaction that was let in was rolled back.
    has_ended: AtomicBool,
    /// The connection is anybody's again.
    is_left: AtomicBool,
}

impl Inside {
    /// Watches over a connection that has begun. It takes the two hooks that SQLite has for this.
    pub(super) async fn watch(conn: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let flags = Arc::<Flags>::default();
        let (asked, told) = (Arc::clone(&flags), Arc::clone(&flags));
        let mut handle = conn.lock_handle().await?;
        handle.set_commit_hook(move || {
            let [commits, has_ended, is_left] =
                [&asked.commits, &asked.has_ended, &asked.is_left].map(|flag| flag.load(Ordering::SeqCst));
            is_left || (commits && !has_ended)
        });
        handle.set_rollback_hook(move || told.has_ended.store(true, Ordering::SeqCst));
        Ok(Self(flags))
    }

    /// From here on it may be committed, if it is still the transaction that was let in. Says whether it is.
    pub(super) fn may_commit(&self) -> bool {
        self.0.commits.store(true, Ordering::SeqCst);
        !self.0.has_ended.load(Ordering::SeqCst)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.is_left.store(true, Ordering::SeqCst);
    }
}
