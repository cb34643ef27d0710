//! The same library for programs without an asynchronous runtime.
//!
//! Every call blocks its thread until it is answered; renewals go on meanwhile, because the driver has a thread of its own. Receivers that
//! are [sealed](crate::SessionOptions::seal_at) have one too, with a runtime in it. Make their connections, and write by them, in
//! [`run`], which uses the same: a connection that was made in a runtime of your own answers only while somebody runs that runtime,
//! and a call that blocks a current-thread runtime keeps it from running. A seal over such a connection fails when its time is over,
//! and says so.
//!
//! ```
//! # fn main() -> Result<(), leasehold::Error> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let url = format!("dir:{}", directory.path().display());
//! use leasehold::blocking::{Store, wait};
//!
//! let store = Store::connect(&url)?;
//! let session = store.session()?;
//! let lease = wait(session.acquire("reports/nightly").into_future())?;
//! assert!(lease.state().is_held());
//! wait(lease.release())?;
//! wait(session.close())?;
//! store.close();
//! # Ok(())
//! # }
//! # use std::future::IntoFuture;
//! ```

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use leasehold_core::Revision;
use leasehold_core::protocol::Changes;

use crate::error::Error;
use crate::options::SessionOptions;
use crate::session::Session;
use crate::store::ConnectOptions;

thread_local! {
    /// How many calls block this thread, one inside the other.
    static WAITING: Cell<u32> = const { Cell::new(0) };
}

/// Whether a call of this module blocks this thread: nothing else makes progress on it.
pub(crate) fn is_waiting() -> bool {
    WAITING.get() > 0
}

struct Waiting;

impl Waiting {
    fn begin() -> Self {
        WAITING.set(WAITING.get() + 1);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.set(WAITING.get() - 1);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until a call of this library is answered. Only for those: a future that needs a runtime of its own would
/// wait for ever, or panic; [`run`] has one for it.
pub fn wait<F: Future>(future: F) -> F::Output {
    let _waiting = Waiting::begin();
    // Inside a runtime, futures yield after some polls and wait to be polled by it; here nobody would.
    let mut future = pin!(tokio::task::unconstrained(future));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Carries out a future that needs a runtime, and blocks this thread until it has ended: on one thread of the process that runs a
/// runtime and stays, the same in which receivers are sealed. Connections that are made here answer at any time, whatever this program
/// blocks.
///
/// ```
/// # fn main() -> Result<(), leasehold::Error> {
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
/// # let database = listener.local_addr().expect("it listens");
/// // A pool of connections is made in the same way.
/// let stream = leasehold::blocking::run(async move { tokio::net::TcpStream::connect(database).await })?;
/// # drop(stream);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When that thread cannot be started, or this is it: the runtime would wait for itself. Also when the future panics.
pub fn run<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
    if crate::aside::is_here() {
        let why = "the thread of leasehold::blocking::run would wait for itself; use .await there";
        return Err(Error::System(std::io::Error::other(why)));
    }
    wait(crate::aside::run(work))
}

/// A store whose calls block.
#[derive(Debug, Clone)]
pub struct Store(crate::store::Store);

impl Store {
    /// As [`crate::Store::connect`].
    ///
    /// # Errors
    /// As there.
    pub fn connect(url: &str) -> Result<Self, Error> {
        wait(crate::store::Store::connect(url)).map(Self)
    }

    /// As [`crate::Store::connect_with`].
    ///
    /// # Errors
    /// As there.
    pub fn connect_with(url: &str, options: ConnectOptions) -> Result<Self, Error> {
        wait(crate::store::Store::connect_with(url, options)).map(Self)
    }

    /// As [`crate::Store::session`].
    ///
    /// # Errors
    /// As there.
    pub fn session(&self) -> Result<Session, Error> {
        wait(self.0.session())
    }

    /// As [`crate::Store::session_with`].
    ///
    /// # Errors
    /// As there.
    pub fn session_with(&self, options: &SessionOptions) -> Result<Session, Error> {
        wait(self.0.session_with(options))
    }

    /// As [`crate::Store::watch`], begun after a revision if one is given.
    ///
    /// # Errors
    /// As [`crate::WatchBuilder::start`].
    pub fn watch(&self, prefix: &str, after: Option<Revision>) -> Result<Watch, Error> {
        let watch = self.0.watch(prefix);
        let watch = match after {
            Some(revision) => watch.after(revision),
            None => watch,
        };
        wait(watch.start()).map(|watch| Watch { watch, over: false })
    }

    /// The asynchronous store, for its other calls: [`wait`] for them.
    pub fn inner(&self) -> &crate::store::Store {
        &self.0
    }

    /// As [`crate::Store::close`].
    pub fn close(self) {
        wait(self.0.close());
    }
}

/// Changes as they happen, as an iterator that blocks for each. After an error it ends.
#[derive(Debug)]
pub struct Watch {
    watch: crate::watch::Watch,
    over: bool,
}

impl Watch {
    /// As [`crate::Watch::revision`].
    pub fn revision(&self) -> Revision {
        self.watch.revision()
    }
}

impl Iterator for Watch {
    type Item = Result<Changes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = wait(self.watch.next());
        self.over = next.is_err();
        Some(next)
    }
}
