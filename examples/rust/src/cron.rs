//! A job of cron that runs on one machine, although its line stands in the crontab of all of them.
//!
//! The first one gets the lease and does the work. The others are told who has it, and go home. Every page of work is done under a guard:
//! leave to act for as long as a page takes at most. Every write carries the token.

use std::time::Duration;

use anyhow::Result;
use leasehold::{Error, Guard, Store};

/// How long one page takes at most. A page is not begun unless the lease lasts as long.
pub const PAGE_BOUND: Duration = Duration::from_secs(2);

/// What became of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// All pages were written.
    Done {
        /// How many.
        pages: u32,
    },
    /// Another instance is at it: nothing was done here.
    Elsewhere {
        /// Who has it, in words.
        why: String,
    },
}

/// Does the job once, if nobody else does. `write` gets the number of the page, and the guard with the token to send along.
///
/// # Errors
/// When a page could not be written, or the lease was lost on the way: the pages before it are written, and the next run sees them.
pub async fn run_once(
    store: &Store,
    name: &str,
    pages: u32,
    mut write: impl AsyncFnMut(u32, &Guard<'_>) -> Result<()>,
) -> Result<Ran> {
    let session = store.session().await?;
    let lease = match session.acquire(name).await {
        Ok(lease) => lease,
        Err(error @ Error::NotFree { .. }) => return Ok(Ran::Elsewhere { why: error.to_string() }),
        Err(error) => return Err(error.into()),
    };
    for page in 0..pages {
        let guard = lease.guard(PAGE_BOUND)?;
        write(page, &guard).await?;
    }
    lease.release_drained().await?;
    session.close().await?;
    Ok(Ran::Done { pages })
}
