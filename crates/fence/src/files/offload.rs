//! Work that blocks, for callers that must not: a thread for it, on whatever they run.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// What the thread leaves behind, and who is to be told.
#[derive(Debug)]
struct Slot<T> {
    done: Option<T>,
    gone: bool,
    waker: Option<Waker>,
}

/// The end of work that another thread does. Dropping it does not stop that work.
#[derive(Debug)]
pub(super) struct Offload<T>(Arc<Mutex<Slot<T>>>);

/// Tells whoever waits, also when the work panics.
struct Worker<T>(Arc<Mutex<Slot<T>>>);

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        let mut slot = locked(&self.0);
        slot.gone = true;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

/// Starts a thread for work that blocks: here it waits for disks, beside which starting a thread is nothing.
pub(super) fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Offload<T>> {
    let slot = Arc::new(Mutex::new(Slot { done: None, gone: false, waker: None }));
    let worker = Worker(Arc::clone(&slot));
    std::thread::Builder::new().name("leasehold-fence".to_owned()).spawn(move || {
        let done = work();
        locked(&worker.0).done = Some(done);
    })?;
    Ok(Offload(slot))
}

impl<T> Future for Offload<T> {
    /// Nothing if the work panicked.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = locked(&self.0);
        if slot.gone {
            return Poll::Ready(slot.done.take());
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn locked<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().expect("nothing panics while it is locked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_result_comes_and_a_panic_is_told() {
        assert_eq!(offload(|| 1 + 1).unwrap().await, Some(2));
        let slow = offload(|| std::thread::sleep(std::time::Duration::from_millis(50))).unwrap();
        assert_eq!(slow.await, Some(()));
        assert_eq!(offload(|| -> u8 { panic!("planned") }).unwrap().await, None);
    }
}
