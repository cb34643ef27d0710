//! What a session's handles keep: the way to their driver.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::client::SessionEnd;
use leasehold_core::{Answer, Op};
use tokio::sync::oneshot;

use super::{DriverHandle, Feed, Key, ToDriver};
use crate::error::Error;

/// What a session's handles need to reach their driver.
#[derive(Debug, Clone)]
pub(crate) struct SessionRef {
    pub(super) key: Key,
    /// The process that has the driver.
    pub(super) pid: u32,
    pub(super) to_driver: DriverHandle,
    pub(crate) events: Feed,
}

static TICKETS: AtomicU64 = AtomicU64::new(1);

impl SessionRef {
    pub(crate) fn send(&self, message: impl FnOnce(Key) -> ToDriver) {
        let message = message(self.key);
        // A driver that is gone, or that a fork left in the parent, has ended the session; whoever waits for an answer notices
        // by its reply, which is dropped here.
        if std::process::id() == self.pid {
            let _ = self.to_driver.send(message);
        }
    }

    /// This session as a child made by fork has it.
    #[cfg(test)]
    pub(crate) fn seen_by_a_child(&self) -> Self {
        Self { pid: self.pid + 1, ..self.clone() }
    }

    pub(crate) fn ticket(&self) -> u64 {
        TICKETS.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn submit(&self, op: Op) -> Result<Answer, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(|key| ToDriver::Submit { key, op, reply: Some(reply) });
        answer.await.unwrap_or_else(|_| Err(self.over()))
    }

    pub(crate) fn over(&self) -> Error {
        Error::SessionEnded(SessionEnd::Closed)
    }
}
