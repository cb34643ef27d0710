//! Sockets: accepting connections, and moving frames between them and the loop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use leasehold_core::protocol::{Failure, Response, ToClient};
use leasehold_node::{ConnectionId, Input};
use leasehold_wire::{Hello, OpeningReader, decode_client_frame, encode_opening, encode_server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot, watch};

use crate::driver::{MAX_OUTGOING, Outgoing, ToLoop};

/// A client says who it is within this time, or is sent away: it costs a descriptor.
const OPENING_TIME: Duration = Duration::from_secs(5);
/// Connections at once. Each costs a descriptor; a client needs one.
const MAX_CONNECTIONS: usize = 10_000;
const READ_BYTES: usize = 64 * 1024;

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Doorway {
    pub(crate) to_loop: Sender<ToLoop>,
    pub(crate) hello: Arc<Hello>,
    pub(crate) next: Arc<AtomicU64>,
    pub(crate) open: Arc<()>,
}

impl Doorway {
    pub(crate) fn new(to_loop: Sender<ToLoop>, hello: Hello) -> Self {
        Self { to_loop, hello: Arc::new(hello), next: Arc::new(AtomicU64::new(1)), open: Arc::new(()) }
    }
}

/// Accepts connections until `stop` says so or its sender is gone.
pub(crate) async fn accept(listener: UnixListener, doorway: Doorway, mut stop: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                if Arc::strong_count(&doorway.open) > MAX_CONNECTIONS {
                    // Closed at once; the client backs off and comes again.
                    continue;
                }
                let (read, write) = stream.into_split();
                tokio::spawn(serve(read, write, doorway.clone(), stop.clone()));
            }
            // Out of descriptors, or a connection that ended before it was taken: the listener itself is well.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve<R, W>(mut read: R, mut write: W, doorway: Doorway, mut stop: watch::Receiver<bool>)
where
    R: AsyncReadExt + Unpin + Send + 'static,
    W: AsyncWriteExt + Unpin + Send + 'static,
{
    let connection = ConnectionId(doorway.next.fetch_add(1, Ordering::Relaxed));
    let opened = tokio::time::timeout(OPENING_TIME, open(&mut read, &mut write, &doorway.hello)).await;
    let Ok(Ok(frames)) = opened else { return };
    let (sender, receiver) = mpsc::channel(MAX_OUTGOING);
    let weak = sender.downgrade();
    // Only the loop keeps these: when it lets go, the connection ends, also one whose client does not read.
    let (open, let_go) = oneshot::channel();
    if doorway.to_loop.send(ToLoop::Connected(connection, Outgoing { sender, _open: open })).is_err() {
        return;
    }
    let mut writer = tokio::spawn(write_frames(write, receiver));
    tokio::select! {
        () = read_frames(read, frames, connection, &doorway, weak) => {}
        _ = &mut writer => {}
        _ = let_go => {}
        _ = stop.changed() => {}
    }
    writer.abort();
    let _ = doorway.to_loop.send(ToLoop::Node(Input::Disconnected(connection)));
}

async fn open<R, W>(read: &mut R, write: &mut W, ours: &Hello) -> io::Result<leasehold_wire::FrameReader>
where
    R: AsyncReadExt + Unpin,
    W: AsyncWriteExt + Unpin,
{
    let mut bytes = Vec::new();
    encode_opening(ours, &mut bytes).map_err(io::Error::other)?;
    write.write_all(&bytes).await?;
    let mut opening = OpeningReader::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if let Some(theirs) = opening.hello().map_err(io::Error::other)? {
            theirs.check_client().map_err(io::Error::other)?;
            return opening.into_frames().map_err(io::Error::other);
        }
        match read.read(&mut buffer).await? {
            0 => return Err(io::Error::other(opening.finish())),
            count => opening.push(&buffer[..count]),
        }
    }
}

/// Reads frames until the connection ends or sends something that is not one.
async fn read_frames<R: AsyncReadExt + Unpin>(
    mut read: R,
    mut frames: leasehold_wire::FrameReader,
    connection: ConnectionId,
    doorway: &Doorway,
    respond: mpsc::WeakSender<Vec<ToClient>>,
) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        loop {
            let requests = match frames.next_frame() {
                Ok(Some(frame)) => decode_client_frame(frame),
                Ok(None) => break,
                Err(_) => return,
            };
            let Ok(requests) = requests else { return };
            for (id, request) in requests {
                match request {
                    Ok(request) => {
                        let input = Input::Request { connection, id, request };
                        if doorway.to_loop.send(ToLoop::Node(input)).is_err() {
                            return;
                        }
                    }
                    Err(why) => {
                        let response = Response::Failed(Failure::BadRequest { why });
                        let Some(respond) = respond.upgrade() else { return };
                        if respond.try_send(vec![ToClient::Response { id, response }]).is_err() {
                            return;
                        }
                    }
                }
            }
        }
        match read.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => frames.push(&buffer[..count]),
        }
    }
}

/// Writes what the loop hands out; everything that is ready goes out at once.
async fn write_frames<W: AsyncWriteExt + Unpin>(mut write: W, mut outgoing: mpsc::Receiver<Vec<ToClient>>) {
    let mut bytes = Vec::new();
    while let Some(messages) = outgoing.recv().await {
        bytes.clear();
        encode(&messages, &mut bytes);
        while let Ok(more) = outgoing.try_recv() {
            encode(&more, &mut bytes);
        }
        if write.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// One frame if it fits, else smaller ones. Items are split down to single ones, which always fit; a response that does not fit
/// is replaced by one that says so.
fn encode(messages: &[ToClient], bytes: &mut Vec<u8>) {
    if encode_server(messages, bytes).is_ok() {
        return;
    }
    for message in messages {
        encode_alone(message, bytes);
    }
}

fn encode_alone(message: &ToClient, bytes: &mut Vec<u8>) {
    if encode_server(std::slice::from_ref(message), bytes).is_ok() {
        return;
    }
    match message {
        ToClient::Items { session, items } if items.len() > 1 => {
            for half in items.chunks(items.len().div_ceil(2)) {
                encode_alone(&ToClient::Items { session: *session, items: half.to_vec() }, bytes);
            }
        }
        ToClient::Items { .. } => {
            unreachable!("one item holds at most one unit of leases, far below a frame")
        }
        ToClient::Response { id, .. } => {
            let why = "the answer does not fit a frame; ask for less at once".into();
            let response = Response::Failed(Failure::Unavailable { why });
            let short = ToClient::Response { id: *id, response };
            encode_server(&[short], bytes).expect("a short refusal fits a frame");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::{
        Answer, CommandNumber, Grant, Item, ItemKind, ItemNumber, ResourceName, SessionId, Token,
    };
    use leasehold_wire::{FrameReader, decode_server_frame};

    /// A session that was away: more items, with more and longer names, than one frame can carry.
    #[test]
    fn items_beyond_a_frame_are_split_and_none_is_lost() {
        let name = ResourceName::new(&"n".repeat(512)).unwrap();
        let grant =
            Grant { resource: name, token: Token::from_u64(1), fence: Token::from_u64(1), slot: None };
        let item = |number: u64| Item {
            number: ItemNumber::new(number),
            kind: ItemKind::Answer {
                command: CommandNumber::new(number),
                answer: Answer::Granted(vec![grant.clone(); 64]),
            },
        };
        let items: Vec<Item> = (1..=512).map(item).collect();
        let sent = ToClient::Items { session: SessionId::from_u64(7), items: items.clone() };
        let mut bytes = Vec::new();
        encode(&[sent], &mut bytes);
        let mut reader = FrameReader::new();
        reader.push(&bytes);
        let mut received = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            for message in decode_server_frame(frame).unwrap() {
                let ToClient::Items { items, .. } = message else { panic!("only items were sent") };
                received.extend(items);
            }
        }
        assert_eq!(received, items);
    }
}
