//! The threads that drivers run on, apart from those of the application, so that a busy application starves no renewal.
//!
//! The first stores of a process have a thread each, and further ones share those: a program with a hundred connections would spend its time
//! on switching between a hundred threads. A directory always has its own, because this process may have to serve it.
//! A thread ends with the last driver on it.

use std::io;
use std::sync::{Arc, Mutex, Weak};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Threads that stores share at most, on however large a machine: a driver has little to do.
const MOST: usize = 4;

/// The threads of this process that take more drivers.
static SHARED: Mutex<Shared> = Mutex::new(Shared { pid: 0, threads: Vec::new() });

struct Shared {
    /// A child made by fork has no threads, whatever it remembers.
    pid: u32,
    threads: Vec<Weak<Thread>>,
}

/// A thread, for as long as anybody has this.
#[derive(Debug)]
pub(super) struct Thread {
    runtime: Handle,
    /// Its end is the thread's.
    _until: oneshot::Sender<()>,
}

impl Thread {
    /// One that nobody else uses.
    pub(super) fn own() -> io::Result<Arc<Self>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (until, over) = oneshot::channel();
        let thread = Arc::new(Self { runtime: runtime.handle().clone(), _until: until });
        std::thread::Builder::new().name("leasehold-client".into()).spawn(move || {
            let _ = runtime.block_on(over);
        })?;
        Ok(thread)
    }

    /// One of those that stores share: a new one while there are few, then the one with the fewest drivers.
    pub(super) fn shared() -> io::Result<Arc<Self>> {
        // Whoever holds this may be a thread that a fork has left behind.
        let Ok(mut shared) = SHARED.try_lock() else { return Self::own() };
        if shared.pid != std::process::id() {
            shared.pid = std::process::id();
            shared.threads.clear();
        }
        shared.threads.retain(|thread| thread.strong_count() > 0);
        let living = shared.threads.iter().filter_map(Weak::upgrade);
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
        match living.min_by_key(Arc::strong_count) {
            Some(thread) if shared.threads.len() >= most => Ok(thread),
            _ => {
                let thread = Self::own()?;
                shared.threads.push(Arc::downgrade(&thread));
                Ok(thread)
            }
        }
    }

    /// Where its tasks run.
    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_beyond_the_first_few_share_threads_and_a_directory_does_not() {
        let own = Thread::own().unwrap();
        let threads: Vec<_> = (0..3 * MOST).map(|_| Thread::shared().unwrap()).collect();
        let mut distinct: Vec<_> = threads.iter().map(Arc::as_ptr).collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() <= MOST, "{} threads", distinct.len());
        assert!(!distinct.contains(&Arc::as_ptr(&own)));
    }

    #[test]
    fn a_thread_ends_with_the_last_that_has_it_and_what_runs_on_it_ends_then() {
        let thread = Thread::own().unwrap();
        let (alive, over) = std::sync::mpsc::channel::<()>();
        thread.runtime().spawn(async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        assert!(
            over.recv_timeout(std::time::Duration::from_millis(50))
                .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Timeout })
        );
        drop(thread);
        let ended = over.recv_timeout(std::time::Duration::from_secs(10));
        assert_eq!(ended, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}
