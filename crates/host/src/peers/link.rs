//! The way to one other member: a queue with a limit, and a task that keeps a connection up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::protocol::MemberId;
use leasehold_node::{Input, PeerMessage};
use leasehold_wire::{PeerPurpose, PeerRefusal, PeerVerdict, encode_peer_frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::{Shared, convert, lives, opening, snapshots};
use crate::driver::ToLoop;

/// Bytes that may wait for a member at most: beyond it raft's messages are dropped, and anything else breaks the connection.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;
/// Pauses between attempts to connect. A member that comes back is needed at once, and there are few members.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// A write that takes longer has nobody who reads.
const WRITE_TIME: Duration = Duration::from_secs(2);
/// Gathered into one write at most.
const MAX_GATHERED: usize = 1024 * 1024;

/// The way to one member. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Link {
    address: String,
    state: Arc<State>,
    task: AbortHandle,
}

#[derive(Debug)]
struct State {
    shared: Arc<Shared>,
    to: MemberId,
    /// Frames.
    queue: mpsc::UnboundedSender<Vec<u8>>,
    waiting: AtomicUsize,
    up: AtomicBool,
    /// A message that may not be dropped did not fit.
    broken: Notify,
}

impl Link {
    pub(super) fn new(shared: &Arc<Shared>, to: MemberId, address: String) -> Self {
        let (queue, messages) = mpsc::unbounded_channel();
        let state = Arc::new(State {
            shared: Arc::clone(shared),
            to,
            queue,
            waiting: AtomicUsize::new(0),
            up: AtomicBool::new(false),
            broken: Notify::new(),
        });
        let task = tokio::spawn(keep_up(Arc::clone(&state), address.clone(), messages)).abort_handle();
        Self { address, state, task }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn send(&self, message: &PeerMessage) {
        let state = &self.state;
        if let PeerMessage::Raft(raft) = message
            && raft.get_msg_type() == raft::eraftpb::MessageType::MsgSnapshot
        {
            let (shared, address, raft) = (Arc::clone(&state.shared), self.address.clone(), raft.clone());
            tokio::spawn(snapshots::send(shared, state.to, address, *raft));
            return;
        }
        if !state.up.load(Ordering::Relaxed) {
            return undelivered(&state.shared, state.to, message);
        }
        let mut frame = Vec::new();
        let encoded = encode_peer_frame(&[convert::to_wire(message.clone())], &mut frame);
        if let Err(error) = &encoded {
            // Entries and answers have limits far below that of a frame.
            tracing::error!(%error, "a message does not fit a frame and is not sent");
        }
        let room = state.waiting.load(Ordering::Relaxed) + frame.len() <= MAX_WAITING_BYTES;
        if encoded.is_err() || !room {
            if !matches!(message, PeerMessage::Raft(_)) {
                state.broken.notify_one();
            }
            return undelivered(&state.shared, state.to, message);
        }
        state.waiting.fetch_add(frame.len(), Ordering::Relaxed);
        let _ = state.queue.send(frame);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
        if self.state.up.load(Ordering::Relaxed) {
            self.state.shared.tell(ToLoop::Node(Input::PeerLost(self.state.to)));
        }
    }
}

/// A message that cannot be sent. Raft repeats its own; for any other both sides must know that they have lost each other.
pub(super) fn undelivered(shared: &Shared, to: MemberId, message: &PeerMessage) {
    match message {
        PeerMessage::Raft(raft) => {
            if raft.get_msg_type() == raft::eraftpb::MessageType::MsgSnapshot {
                shared.tell(ToLoop::Node(Input::SnapshotSent { to, arrived: false }));
            }
        }
        // It was not sent, so it was not taken in: the node finds another way for it.
        PeerMessage::Request { connection, id, .. } => {
            let message = PeerMessage::NotLeading { connection: *connection, id: *id };
            shared.tell(ToLoop::Node(Input::Peer { from: to, message }));
        }
        _ => {
            shared.tell(ToLoop::Node(Input::PeerLost(to)));
            shared.end_accepted(to);
        }
    }
}

async fn keep_up(state: Arc<State>, address: String, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut pause = SHORTEST_PAUSE;
    let mut said = None;
    loop {
        let dialled = opening::dial(&state.shared, &address, PeerPurpose::Messages, Some(state.to)).await;
        let why = match dialled {
            Ok((stream, _, welcome)) => match welcome.verdict {
                PeerVerdict::Accepted => {
                    if said.take().is_some() {
                        tracing::info!(peer = %welcome.hello.name, %address, "peer is reached again");
                    }
                    pause = SHORTEST_PAUSE;
                    state.up.store(true, Ordering::Relaxed);
                    let why = write_frames(&state, stream, &mut frames).await;
                    state.up.store(false, Ordering::Relaxed);
                    // What was not written is lost with the connection.
                    while let Ok(frame) = frames.try_recv() {
                        state.waiting.fetch_sub(frame.len(), Ordering::Relaxed);
                    }
                    state.shared.tell(ToLoop::Node(Input::PeerLost(state.to)));
                    why
                }
                PeerVerdict::Refused(refusal) => {
                    lives::compare(&state.shared, &welcome.hello);
                    if refusal == PeerRefusal::Removed {
                        let why = leasehold_node::Fatal::Removed.to_string();
                        state.shared.tell(ToLoop::Failed(why));
                    }
                    refusal.to_string()
                }
            },
            Err(error) => error.to_string(),
        };
        if said.as_ref() != Some(&why) {
            let peer = state.shared.name_of(state.to);
            tracing::warn!(peer, %address, why, "peer is out of reach");
            said = Some(why);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Writes until the connection ends; says why.
async fn write_frames(
    state: &State,
    stream: TcpStream,
    frames: &mut mpsc::UnboundedReceiver<Vec<u8>>,
) -> String {
    let (mut read, mut write) = stream.into_split();
    let mut nothing = [0; 16];
    loop {
        let first = tokio::select! {
            first = frames.recv() => first,
            // Nothing is ever said in this direction: it can only end.
            _ = read.read(&mut nothing) => return "the connection was closed by the peer".into(),
            () = state.broken.notified() => return "more waits for the peer than there is room for".into(),
        };
        let Some(mut bytes) = first else { return "this node stops".into() };
        while bytes.len() < MAX_GATHERED
            && let Ok(more) = frames.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        state.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
        match tokio::time::timeout(WRITE_TIME, write.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "the peer does not read".into(),
        }
    }
}
