//! The guest: a runtime of the application in which answers are read while it asks briskly, so that no other thread has to be woken for them.
//!
//! Promises nothing: whatever a guest leaves lying, because its runtime stands still or has ended, the library's thread takes up. What it
//! deliberately does not do: it keeps no time, and nothing that a renewal needs depends on it. The interleavings stand in decision 0033.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Whoever asks twice within this time asks briskly. More than most operations take, also on a machine with much to do.
const BRISK: Duration = Duration::from_millis(100);

/// The guest of a driver, on whichever connection.
#[derive(Debug)]
pub(crate) struct Guest {
    runtime: Handle,
    /// The process that the driver is in.
    pid: u32,
    /// When something was last asked for while the library's thread read.
    asked: Mutex<Option<Reading>>,
    /// Whether it reads, or is about to.
    reads: AtomicBool,
    /// The number of its task: each connection has one.
    task: AtomicU64,
    /// Whether it cannot: that task has ended, and there is none before the next connection.
    is_gone: AtomicBool,
    /// Whether its runtime was not found standing still, or has moved since.
    is_awake: AtomicBool,
    /// Whether it did anything since that was last looked at.
    moved: AtomicBool,
    called: Notify,
    /// Calls the library's thread: who reads has changed, or the connection has ended.
    changed: Notify,
}

impl Guest {
    pub(super) fn new(runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            pid: std::process::id(),
            asked: Mutex::default(),
            reads: AtomicBool::new(false),
            task: AtomicU64::new(0),
            is_gone: AtomicBool::new(true),
            is_awake: AtomicBool::new(true),
            moved: AtomicBool::new(false),
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
        let can = !self.is_gone.load(Ordering::Acquire) && self.is_awake.load(Ordering::Acquire);
        if self.reads() || !can {
            return;
        }
        let now = now();
        let last = self.asked.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        if last.is_some_and(|last| now.since(last).greater() < BRISK) {
            self.moved.store(true, Ordering::Release);
            self.reads.store(true, Ordering::Release);
            self.changed.notify_one();
            self.called.notify_one();
        }
    }

    /// There is something for it to do.
    pub(super) fn call(&self) {
        self.called.notify_one();
    }

    /// Waits until it is called.
    pub(super) async fn called(&self) {
        self.called.notified().await;
        self.is_awake.store(true, Ordering::Release);
    }

    /// Waits until the library's thread is to look who reads.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// It has done something.
    pub(super) fn moves(&self) {
        self.moved.store(true, Ordering::Release);
    }

    /// Whether it did anything since this was last asked.
    pub(super) fn has_moved(&self) -> bool {
        self.moved.swap(false, Ordering::AcqRel)
    }

    /// Whether this is the process that the driver is in: a copy of it reads nothing.
    pub(super) fn is_at_home(&self) -> bool {
        std::process::id() == self.pid
    }

    /// Its runtime stands still: the library's thread reads until it has moved, however briskly anybody else asks.
    pub(super) fn relieve_of_unread(&self) {
        self.is_awake.store(false, Ordering::Release);
        self.relieve();
    }

    /// The library's thread reads from now on.
    pub(super) fn relieve(&self) {
        self.reads.store(false, Ordering::Release);
        self.called.notify_one();
    }

    /// Has something to tell the library's thread.
    pub(super) fn tell(&self) {
        self.changed.notify_one();
    }

    /// Begins a task in its runtime, which may read until it ends.
    pub(super) fn begin<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        task: impl FnOnce(Arc<Self>) -> F,
    ) {
        self.is_gone.store(false, Ordering::Release);
        self.is_awake.store(true, Ordering::Release);
        let number = self.task.fetch_add(1, Ordering::AcqRel) + 1;
        let leaves = Leaves { guest: Arc::clone(self), number };
        let task = task(Arc::clone(self));
        self.runtime.spawn(async move {
            task.await;
            drop(leaves);
        });
    }
}

/// Says that the guest is gone, also if its runtime has ended or its task panicked.
struct Leaves {
    guest: Arc<Guest>,
    number: u64,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        // One of an earlier connection says nothing of the present one.
        if self.guest.task.load(Ordering::Acquire) == self.number {
            self.guest.is_gone.store(true, Ordering::Release);
            self.guest.reads.store(false, Ordering::Release);
            self.guest.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
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
        let runtime = runtime();
        let guest = Guest::new(runtime.handle().clone());
        ask_twice(&guest);
        assert!(!guest.reads(), "there is no connection yet");
        guest.begin(|_| pending());
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
    fn one_whose_runtime_stood_still_reads_again_only_when_it_has_moved() {
        let runtime = runtime();
        let guest = Guest::new(runtime.handle().clone());
        guest.begin(|guest| async move {
            loop {
                guest.called().await;
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
    fn the_end_of_a_task_is_that_of_the_guest_unless_there_is_a_newer_one() {
        let runtime = runtime();
        let guest = Guest::new(runtime.handle().clone());
        guest.begin(|_| pending());
        guest.begin(|_| pending());
        ask_twice(&guest);
        drop(Leaves { guest: Arc::clone(&guest), number: 1 });
        assert!(guest.reads(), "there is a newer one");
        drop(runtime);
        assert!(!guest.reads());
        ask_twice(&guest);
        assert!(!guest.reads(), "its runtime has ended");
    }
}
