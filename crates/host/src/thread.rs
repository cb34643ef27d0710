//! The thread that a node's loop shares with its connections.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A thread with a runtime, for as long as anybody has this. What still runs on it when it ends is dropped.
#[derive(Debug)]
pub(crate) struct NodeThread {
    runtime: Handle,
    /// Its end is the thread's.
    until: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl NodeThread {
    /// Starts it.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (until, over) = oneshot::channel();
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name("leasehold-node".into()).spawn(move || {
            let _ = runtime.block_on(over);
            // A look-up of a name may take minutes, and nobody wants its answer any more.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, until: Some(until), thread: Some(thread) })
    }

    /// Where its tasks run.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Drop for NodeThread {
    fn drop(&mut self) {
        self.until = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
