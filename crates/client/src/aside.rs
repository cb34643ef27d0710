//! A runtime for callers that have none, or that block the one they have: receivers are sealed in it, and naps end by its timer.
//!
//! It is one thread for the whole process, and stays: a receiver may keep connections that belong to the runtime they were made in.
//! Nothing here blocks that thread. It drives nobody else's runtime: what was made in one that stands still stands still.

use std::cell::Cell;
use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::Error;

/// The runtime, and the process whose thread runs it: a fork leaves it behind.
static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

thread_local! {
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the thread of that runtime.
pub(crate) fn is_here() -> bool {
    IS_HERE.get()
}

/// Sleeps for about this long by that runtime's timer.
pub(crate) async fn nap(length: Duration) {
    // The timer is made there: here there may be none to make it with.
    let slept = run(async move { tokio::time::sleep(length).await }).await;
    if slept.is_err() {
        // No thread is to be had for it, so the caller's own, which waits for this alone, sleeps.
        std::thread::sleep(length);
    }
}

/// Does work in that runtime. Whoever gives up the call gives up the work.
pub(crate) async fn run<T>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Error>
where
    T: Send + 'static,
{
    let (mut reply, answer) = oneshot::channel();
    runtime()?.spawn(async move {
        let done = tokio::select! {
            biased;
            () = reply.closed() => None,
            done = work => Some(done),
        };
        if let Some(done) = done {
            // If nobody waits any more it is dropped here, as it would have been there.
            let _ = reply.send(done);
        }
    });
    // Only a panic of the work leaves it without an answer.
    answer.await.map_err(|_| Error::System(std::io::Error::other("the work of a receiver came to no end")))
}

/// That runtime, which is made when it is needed first.
pub(crate) fn runtime() -> Result<Handle, Error> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if let Some((of, handle)) = &*known
        && *of == pid
    {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::System)?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name("leasehold-seal".into());
    let keep_running = move || {
        IS_HERE.set(true);
        runtime.block_on(pending::<()>());
    };
    thread.spawn(keep_running).map_err(Error::System)?;
    *known = Some((pid, handle.clone()));
    Ok(handle)
}
