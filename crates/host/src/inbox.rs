//! The way to the loop: unbounded for what must never wait (the disk, connections that end), with a limit for what clients send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::driver::ToLoop;

/// Messages that may wait for the loop before doors stop reading: two turns, and more only cost memory and time.
const MAX_INBOX: usize = 16_384;
/// How long a door pauses before it looks again.
const PAUSE: Duration = Duration::from_millis(1);

/// Where ids of connections and calls begin. Drawn, so that another node does not take something that was meant for a process before
/// this one for something that this one has asked for. Those of a node's own never come near the upper half.
pub(crate) fn first_id() -> u64 {
    let mut bytes = [0; 4];
    // Without randomness they begin where all do.
    let _ = getrandom::fill(&mut bytes);
    (u64::from(u32::from_le_bytes(bytes)) << 24) + 1
}

/// The loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the service has stopped")]
pub struct Ended;

/// The sending side. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    sender: UnboundedSender<ToLoop>,
    depth: Arc<AtomicUsize>,
    /// The loop takes nothing out any more: nobody may wait for room.
    ended: Arc<AtomicBool>,
}

/// The loop's side.
#[derive(Debug)]
pub(crate) struct Arrivals {
    receiver: UnboundedReceiver<ToLoop>,
    depth: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

/// Both sides of a new inbox.
pub(crate) fn inbox() -> (Inbox, Arrivals) {
    let (sender, receiver) = unbounded_channel();
    let (depth, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let inbox = Inbox { sender, depth: Arc::clone(&depth), ended: Arc::clone(&ended) };
    (inbox, Arrivals { receiver, depth, ended })
}

impl Inbox {
    /// Sends at once, whatever waits.
    pub(crate) fn send(&self, message: ToLoop) -> Result<(), Ended> {
        self.depth.fetch_add(message.count(), Ordering::Relaxed);
        self.sender.send(message).map_err(|_| Ended)
    }

    /// Sends when there is room: whoever reads from a client reads no more in the meantime.
    pub(crate) async fn send_when_there_is_room(&self, message: ToLoop) -> Result<(), Ended> {
        while self.depth.load(Ordering::Relaxed) >= MAX_INBOX {
            if self.ended.load(Ordering::Relaxed) {
                return Err(Ended);
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.send(message)
    }
}

impl Arrivals {
    /// The next message; nothing when nobody can send any more.
    pub(crate) async fn recv(&mut self) -> Option<ToLoop> {
        self.receiver.recv().await.inspect(|message| self.took(message))
    }

    /// The next message, if one has arrived.
    pub(crate) fn try_recv(&mut self) -> Option<ToLoop> {
        self.receiver.try_recv().ok().inspect(|message| self.took(message))
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    fn took(&self, message: &ToLoop) {
        self.depth.fetch_sub(message.count(), Ordering::Relaxed);
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn fill(inbox: &Inbox) {
        for _ in 0..MAX_INBOX {
            inbox.send(ToLoop::Drain).unwrap();
        }
    }

    #[test]
    fn what_clients_send_waits_while_it_is_full_and_the_rest_does_not() {
        runtime().block_on(async {
            let (inbox, mut arrivals) = inbox();
            fill(&inbox);
            let mut late = pin!(inbox.send_when_there_is_room(ToLoop::Drain));
            let mut context = Context::from_waker(Waker::noop());
            assert_eq!(late.as_mut().poll(&mut context), Poll::Pending);
            inbox.send(ToLoop::Stop).unwrap();
            for _ in 0..2 {
                arrivals.try_recv().unwrap();
            }
            assert_eq!(late.await, Ok(()));
        });
    }

    #[test]
    fn whoever_waits_for_room_hears_that_there_will_be_none() {
        runtime().block_on(async {
            let (inbox, arrivals) = inbox();
            fill(&inbox);
            drop(arrivals);
            let late = inbox.send_when_there_is_room(ToLoop::Drain);
            let heard = tokio::time::timeout(Duration::from_secs(10), late).await;
            assert_eq!(heard.expect("it does not wait for ever"), Err(Ended));
            assert_eq!(inbox.send(ToLoop::Drain), Err(Ended));
        });
    }
}
