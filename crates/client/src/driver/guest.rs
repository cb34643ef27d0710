//! The guest: a task in a runtime of the application that reads answers while it asks briskly, so that no other thread has to be woken for them.
//!
//! Promises nothing: whatever a guest leaves lying, because its runtime stands still or has ended, the library's thread takes up. What it
//! deliberately does not do: it keeps no time, and nothing that a renewal needs depends on it. The interleavings stand in decision 0033.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::sync::Notify;

/// Whoever asks twice within this time asks briskly. More than most operations take, also on a machine with much to do.
const BRISK: Duration = Duration::from_millis(100);

/// The guest of a driver, on whichever connection.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The process that the driver is in.
    pid: u32,
    state: Mutex<State>,
    /// Whether it reads, or is about to. Changed under the lock of the state.
    reads: AtomicBool,
    /// Whether it read anything since that was last looked at.
    moved: AtomicBool,
    /// Whether there will be nothing to read any more.
    is_over: AtomicBool,
    called: Notify,
    /// Calls the library's thread: who reads has changed, or the connection has ended.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    /// When something was last asked for while the library's thread read.
    asked: Option<Reading>,
    /// Whether there is a connection to be read.
    is_connected: bool,
    /// Whether its task has ended. There is one for the life of a driver.
    is_gone: bool,
    /// Whether its runtime was found standing still, and has not moved since.
    stands_still: bool,
}

impl Guest {
    pub(crate) fn new() -> Arc<Self> {
        let state = State { asked: None, is_connected: false, is_gone: false, stands_still: false };
        Arc::new(Self {
            pid: std::process::id(),
            state: Mutex::new(state),
            reads: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            called: Notify::new(),
            changed: Notify::new(),
        })
    }

    /// Whether it reads.
    pub(super) fn reads(&self) -> bool {
        self.reads.load(Ordering::Acquire)
    }

    /// The application asks for something. If that is not the first time lately, the guest reads from now on.
    pub(super) fn asked(&self, now: impl FnOnce() -> Reading) {
        if self.reads() {
            return;
        }
        let mut state = self.state();
        if !state.is_connected || state.is_gone || state.stands_still {
            return;
        }
        let now = now();
        let last = state.asked.replace(now);
        if last.is_some_and(|last| now.since(last).greater() < BRISK) {
            self.moved.store(true, Ordering::Release);
            self.reads.store(true, Ordering::Release);
            drop(state);
            self.changed.notify_one();
            self.called.notify_one();
        }
    }

    /// There is something for it to do.
    pub(super) fn call(&self) {
        self.called.notify_one();
    }

    /// Waits until it is called. In a copy of the process it never is: the driver, its socket and all that is registered are the parent's.
    pub(super) async fn called(&self) {
        self.called.notified().await;
        self.stay_at_home().await;
        self.state().stands_still = false;
    }

    /// Waits until the library's thread is to look who reads.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// It has read something.
    pub(super) fn moves(&self) {
        self.moved.store(true, Ordering::Release);
    }

    /// Whether it read anything since this was last asked.
    pub(super) fn has_moved(&self) -> bool {
        self.moved.swap(false, Ordering::AcqRel)
    }

    /// Never comes back in a copy of the process. To end there would take the registration of the socket with it, which is the parent's too.
    pub(super) async fn stay_at_home(&self) {
        if std::process::id() != self.pid {
            std::future::pending::<()>().await;
        }
    }

    /// Its runtime stands still: the library's thread reads until it has moved, however briskly anybody else asks.
    pub(super) fn relieve_of_unread(&self) {
        self.state().stands_still = true;
        self.relieve();
    }

    /// The library's thread reads from now on.
    pub(super) fn relieve(&self) {
        let state = self.state();
        self.reads.store(false, Ordering::Release);
        drop(state);
        self.called.notify_one();
    }

    /// There will be nothing to do any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.called.notify_one();
    }

    /// Whether there will be nothing to do any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Has something to tell the library's thread.
    pub(super) fn tell(&self) {
        self.changed.notify_one();
    }

    /// There is a connection, or there is none any more.
    pub(super) fn connected(&self, is_connected: bool) {
        let mut state = self.state();
        state.is_connected = is_connected;
        self.reads.store(false, Ordering::Release);
        drop(state);
        self.called.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that the guest is gone when it is dropped: its runtime has ended, or its task panicked.
pub(super) struct Leaves(pub(super) Arc<Guest>);

impl Drop for Leaves {
    fn drop(&mut self) {
        // A copy of the process has nobody to tell, and what it would tell with may have been locked when it was copied.
        if std::process::id() != self.0.pid {
            return;
        }
        let mut state = self.0.state();
        state.is_gone = true;
        self.0.reads.store(false, Ordering::Release);
        drop(state);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn ask_twice(guest: &Guest) {
        guest.asked(leasehold_clock::read);
        guest.asked(leasehold_clock::read);
    }

    #[test]
    fn it_reads_when_somebody_asks_twice_within_a_short_time() {
        let guest = Guest::new();
        guest.connected(true);
        let first = leasehold_clock::read();
        guest.asked(|| first);
        guest.asked(|| first.plus(BRISK));
        assert!(!guest.reads(), "that was not brisk");
        guest.asked(|| first.plus(BRISK * 3 / 2));
        assert!(guest.reads());
        guest.relieve();
        assert!(!guest.reads());
    }

    #[test]
    fn it_never_reads_while_there_is_no_connection() {
        let guest = Guest::new();
        ask_twice(&guest);
        assert!(!guest.reads(), "none yet");
        guest.connected(true);
        ask_twice(&guest);
        assert!(guest.reads());
        guest.connected(false);
        ask_twice(&guest);
        assert!(!guest.reads(), "none any more");
        guest.connected(true);
        ask_twice(&guest);
        assert!(guest.reads(), "the next one");
    }

    #[test]
    fn one_whose_runtime_stood_still_reads_again_only_when_it_has_moved() {
        let (runtime, guest) = (runtime(), Guest::new());
        guest.connected(true);
        let task = Arc::clone(&guest);
        runtime.spawn(async move {
            loop {
                task.called().await;
            }
        });
        ask_twice(&guest);
        guest.relieve_of_unread();
        ask_twice(&guest);
        assert!(!guest.reads());
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        ask_twice(&guest);
        assert!(guest.reads());
    }

    #[test]
    fn in_a_copy_of_the_process_it_is_never_called_and_says_nothing() {
        let guest = Guest::new();
        guest.connected(true);
        ask_twice(&guest);
        let mut copy = Arc::into_inner(guest).unwrap();
        copy.pid += 1;
        copy.call();
        let copy = Arc::new(copy);
        let called = async { tokio::time::timeout(Duration::from_millis(10), copy.called()).await };
        assert!(runtime().block_on(called).is_err());
        drop(Leaves(Arc::clone(&copy)));
        assert!(copy.reads(), "it is as the parent left it");
    }

    #[test]
    fn one_whose_runtime_has_ended_reads_no_more() {
        let (runtime, guest) = (runtime(), Guest::new());
        guest.connected(true);
        let leaves = Leaves(Arc::clone(&guest));
        runtime.spawn(async move {
            let _leaves = leaves;
            std::future::pending::<()>().await;
        });
        ask_twice(&guest);
        assert!(guest.reads());
        drop(runtime);
        assert!(!guest.reads());
        guest.connected(false);
        guest.connected(true);
        ask_twice(&guest);
        assert!(!guest.reads());
    }
}
