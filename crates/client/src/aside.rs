//! A runtime for callers that have none: programs without an asynchronous runtime seal receivers that need one.
//!
//! It is one thread for the whole process, and stays: a receiver may keep connections that belong to the runtime they were made in.

use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::Error;

/// The runtime, and the process whose thread runs it: a fork leaves it behind.
static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// Does work in that runtime. Whoever gives up the call gives up the work.
pub(super) async fn run<T>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Error>
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

fn runtime() -> Result<Handle, Error> {
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
    thread.spawn(move || runtime.block_on(pending::<()>())).map_err(Error::System)?;
    *known = Some((pid, handle.clone()));
    Ok(handle)
}
