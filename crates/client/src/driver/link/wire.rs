//! The way out of a driver: bytes go to the socket at once, by whoever has the turn, and what it does not take at once is left to the link.
//!
//! Promises that bytes stay in their order, whoever writes them, and that no turn waits. A connection that has ended is noticed by whoever reads it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::protocol::{Request, RequestId};
use tokio::sync::Notify;

use super::connection::{Outgoing, encode};

/// Room that is kept for the next bytes; what a rare large batch needed is given back.
const KEPT_BYTES: usize = 64 * 1024;

/// Where a driver's requests go.
#[derive(Debug, Clone)]
pub(crate) enum Wire {
    /// To a socket.
    Stream(Arc<Sending>),
    /// To a service in memory.
    #[cfg(feature = "testing")]
    Memory(tokio::sync::mpsc::UnboundedSender<Vec<(RequestId, Request)>>),
}

impl Wire {
    /// Sends what a turn has to say.
    pub(crate) fn send(&self, requests: Vec<(RequestId, Request)>) {
        match self {
            Self::Stream(sending) => sending.send(&requests),
            #[cfg(feature = "testing")]
            Self::Memory(sender) => {
                let _ = sender.send(requests);
            }
        }
    }
}

/// What is sent on one connection.
#[derive(Debug)]
pub(crate) struct Sending {
    outgoing: Outgoing,
    waiting: Mutex<Waiting>,
    /// Something waits for the link.
    left: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Whether the link is writing, or is about to: what comes meanwhile goes behind that.
    by_link: bool,
}

impl Sending {
    pub(super) fn new(outgoing: Outgoing) -> Arc<Self> {
        Arc::new(Self { outgoing, waiting: Mutex::default(), left: Notify::new() })
    }

    pub(super) fn send(&self, requests: &[(RequestId, Request)]) {
        let mut waiting = self.waiting();
        encode(requests, &mut waiting.bytes);
        if waiting.by_link {
            return;
        }
        match self.outgoing.try_send(&waiting.bytes) {
            Ok(written) if written == waiting.bytes.len() => {
                waiting.bytes.clear();
                waiting.bytes.shrink_to(KEPT_BYTES);
                return;
            }
            Ok(written) => drop(waiting.bytes.drain(..written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // It has ended, and whoever reads it notices.
            Err(_) => return waiting.bytes.clear(),
        }
        waiting.by_link = true;
        drop(waiting);
        self.left.notify_one();
    }

    /// Writes whatever the socket did not take at once, until the connection ends.
    pub(super) async fn write_what_is_left(&self) {
        loop {
            self.left.notified().await;
            while let Some(bytes) = self.take() {
                if self.outgoing.send(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }

    /// What waits; if nothing does, the next bytes go out at once again.
    fn take(&self) -> Option<Vec<u8>> {
        let mut waiting = self.waiting();
        if waiting.bytes.is_empty() {
            waiting.by_link = false;
            return None;
        }
        Some(std::mem::take(&mut waiting.bytes))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
