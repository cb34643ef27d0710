//! The way out of a driver: bytes go to the socket at once, by whoever has the turn, and what it does not take at once is left to the link.
//!
//! Promises that bytes stay in their order, whoever writes them, and that no turn waits. A connection that takes nothing any more ends.

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
    pub(crate) fn send(&self, requests: &[(RequestId, Request)]) {
        match self {
            Self::Stream(sending) => sending.send(requests),
            #[cfg(feature = "testing")]
            Self::Memory(sender) => {
                let _ = sender.send(requests.to_vec());
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
            // It takes nothing now, or has ended: the link finds out which.
            Err(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::link::socket::Socket;
    use leasehold_core::protocol::Query;
    use std::time::Duration;
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    fn request(id: u64) -> (RequestId, Request) {
        (RequestId(id), Request::Read(Query::Status))
    }

    async fn connected() -> (Arc<Sending>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (there, _) = listener.accept().await.unwrap();
        let socket = Socket::Tcp(stream.into_std().unwrap());
        (Sending::new(socket.into()), there)
    }

    /// Many more bytes than a socket takes, while nobody reads, by whoever comes; then everything is read.
    #[tokio::test]
    async fn bytes_stay_in_order_when_the_socket_takes_no_more() {
        let (sending, mut there) = connected().await;
        let mut expected = Vec::new();
        let many = 1_500_000;
        let asks = |ids: std::ops::Range<u64>| ids.map(request).collect::<Vec<_>>();
        let link = Arc::clone(&sending);
        let link = tokio::spawn(async move { link.write_what_is_left().await });
        for first in (0..many).step_by(10_000) {
            let requests = asks(first..first + 10_000);
            encode(&requests, &mut expected);
            sending.send(&requests);
            tokio::task::yield_now().await;
        }
        assert!(sending.waiting().by_link, "the socket took everything: the test needs more");
        let mut received = vec![0; expected.len()];
        let mut count = 0;
        while count < received.len() {
            // More comes while the link is at it.
            if count < expected.len() / 2 && expected.len() < 64 * 1024 * 1024 {
                let requests = asks(many..many + 3);
                encode(&requests, &mut expected);
                sending.send(&requests);
                received.resize(expected.len(), 0);
            }
            count += there.read(&mut received[count..]).await.unwrap();
        }
        assert!(received == expected, "bytes were lost, or came in another order");
        tokio::time::timeout(Duration::from_secs(10), async {
            while sending.waiting().by_link {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the next bytes go out at once again");
        link.abort();
    }

    #[tokio::test]
    async fn a_connection_that_takes_nothing_any_more_ends() {
        let (sending, there) = connected().await;
        drop(there);
        let link = Arc::clone(&sending);
        let link = tokio::spawn(async move { link.write_what_is_left().await });
        let ended = async {
            while !link.is_finished() {
                sending.send(&[request(1)]);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), ended).await.expect("it ends");
    }
}
