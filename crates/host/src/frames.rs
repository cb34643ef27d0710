//! The session stream on a stream of bytes: frames in, frames out.

use std::io;
use std::time::Duration;

use leasehold_core::protocol::{Failure, Response, ToClient};
use leasehold_wire::{
    FrameReader, HeardRequest, Hello, OpeningReader, decode_client_frame, encode_opening, encode_server,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::door::{Door, Inbound, Outbound};
use crate::room::Room;

/// A client says who it is within this time, or is sent away: it costs a descriptor.
const OPENING_TIME: Duration = Duration::from_secs(5);
/// A frame that has begun is here within this time, or its connection ends: half of one keeps its memory.
const FRAME_TIME: Duration = Duration::from_secs(30);
/// A client reads within this time what was written for it, or its connection ends, unless it was chosen otherwise.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(30);
/// What is still to be written when the service lets go of a connection gets this long.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// Read at once. Every connection has so much, and very many of them say nothing most of the time.
const READ_BYTES: usize = 8 * 1024;

impl Door {
    /// Serves a connection until it ends.
    pub async fn serve<R, W>(&self, mut read: R, mut write: W)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let opened = tokio::time::timeout(OPENING_TIME, open(&mut read, &mut write, &self.hello())).await;
        let Ok(Ok(frames)) = opened else { return };
        let Ok((inbound, mut outbound)) = self.open() else { return };
        let let_go = outbound.let_go();
        let mut writer = tokio::spawn(write_frames(write, outbound, self.write_time));
        tokio::select! {
            () = read_frames(read, frames, inbound) => {}
            _ = &mut writer => {}
            () = let_go => {
                let _ = tokio::time::timeout(FLUSH_TIME, &mut writer).await;
            }
        }
        writer.abort();
    }
}

async fn open<R, W>(read: &mut R, write: &mut W, ours: &Hello) -> io::Result<FrameReader>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
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
async fn read_frames<R: AsyncRead + Unpin>(mut read: R, mut frames: FrameReader, mut inbound: Inbound) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        // Between two frames a client may say nothing for as long as it likes.
        if frames.finish().is_ok()
            && let Err(over) = read_more(&mut read, &mut frames, &mut buffer).await
        {
            return over.tell(&inbound);
        }
        // Nearly all are whole: nothing is to be timed for those.
        let here = whole_frame(&mut frames);
        let requests = match here {
            Ok(Some(requests)) => Ok(requests),
            Ok(None) => {
                let next = next_requests(&mut read, &mut frames, &mut buffer);
                let Ok(next) = tokio::time::timeout(FRAME_TIME, next).await else { return };
                next
            }
            Err(over) => Err(over),
        };
        let requests = match requests {
            Ok(requests) => requests,
            Err(over) => return over.tell(&inbound),
        };
        if inbound.take_all(requests).await.is_err() {
            return;
        }
    }
}

/// Why nothing more is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The client has ended its connection, or its machine did because the process died.
    HungUp,
    /// It cannot be read any more, or what was read is not a frame. That says nothing about the client.
    Broken,
}

impl Over {
    fn tell(self, inbound: &Inbound) {
        if self == Self::HungUp {
            inbound.hung_up();
        }
    }
}

/// The requests of the next frame; nothing if the connection ends first or this is not a frame.
async fn next_requests<R: AsyncRead + Unpin>(
    read: &mut R,
    frames: &mut FrameReader,
    buffer: &mut [u8],
) -> Result<Vec<HeardRequest>, Over> {
    loop {
        read_more(read, frames, buffer).await?;
        if let Some(requests) = whole_frame(frames)? {
            return Ok(requests);
        }
    }
}

/// The requests of the next frame, if all of it is here.
fn whole_frame(frames: &mut FrameReader) -> Result<Option<Vec<HeardRequest>>, Over> {
    let frame = frames.next_frame().map_err(|_| Over::Broken)?;
    frame.map(decode_client_frame).transpose().map_err(|_| Over::Broken)
}

async fn read_more<R: AsyncRead + Unpin>(
    read: &mut R,
    frames: &mut FrameReader,
    buffer: &mut [u8],
) -> Result<(), Over> {
    match read.read(buffer).await {
        Ok(0) => Err(Over::HungUp),
        // What a process leaves unread when it dies is answered with a reset.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Over::HungUp),
        Err(_) => Err(Over::Broken),
        Ok(count) => {
            frames.push(&buffer[..count]);
            Ok(())
        }
    }
}

/// Writes what there is; everything that is ready goes out at once.
async fn write_frames<W: AsyncWrite + Unpin>(mut write: W, mut outbound: Outbound, write_time: Duration) {
    let mut bytes = Vec::new();
    while let Some(messages) = outbound.next().await {
        bytes.clear();
        encode(&messages, &mut bytes);
        // Once is enough while a client does not read.
        drop(messages);
        while bytes.len() < MAX_WRITE_BYTES
            && let Some(more) = outbound.try_next()
        {
            encode(&more, &mut bytes);
        }
        match tokio::time::timeout(write_time, write_all(&mut write, &bytes, outbound.room())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        if bytes.capacity() > MAX_WRITE_BYTES {
            // One long answer must not cost its memory for ever.
            bytes = Vec::new();
        }
    }
}

/// Writes to a client that reads. One that takes nothing for a while loses its connection when others need the room.
async fn write_all<W: AsyncWrite + Unpin>(write: &mut W, mut bytes: &[u8], room: &Room) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = tokio::select! {
            biased;
            written = write.write(bytes) => written?,
            () = room.stall() => 0,
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Gathered into one write at most.
const MAX_WRITE_BYTES: usize = 64 * 1024;

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
        ToClient::Hint { .. } => unreachable!("a hint is two numbers"),
        ToClient::Watched { .. } => {
            unreachable!("changes are split before they are sent")
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
