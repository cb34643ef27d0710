//! A future that is carried out to its end, even if nobody waits for it any more.
//!
//! The driver does not know of a transaction before the answer to its BEGIN has come; if its future were dropped in between, the connection
//! would go back to the pool in the middle of it. So the rest of such a future goes on by itself, and what it began is rolled back by the driver
//! when its result is dropped. A task of its own from the start would do that too, but each answer would wake two tasks then instead of one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

type Rest<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) struct Completed<T: Send + 'static>(Option<Rest<T>>);

impl<T: Send + 'static> Completed<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<T: Send + 'static> Future for Completed<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let rest = self.0.as_mut().expect("a future is not polled after its end");
        let polled = rest.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Completed<T> {
    fn drop(&mut self) {
        // Without a runtime there is nobody to carry it out, and no connection that could be lent again.
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { drop(rest.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test]
    async fn what_was_begun_is_carried_out_though_nobody_waits() {
        let (go, may_go) = oneshot::channel::<()>();
        let (done, mut is_done) = mpsc::channel(1);
        let whole = Completed::new(async move {
            may_go.await.unwrap();
            done.send(()).await.unwrap();
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), whole).await.is_err());
        go.send(()).unwrap();
        assert_eq!(is_done.recv().await, Some(()));
    }

    #[tokio::test]
    async fn one_that_somebody_waits_for_is_an_ordinary_future() {
        assert_eq!(Completed::new(async { 7 }).await, 7);
    }
}
