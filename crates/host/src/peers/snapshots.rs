//! Snapshots between members: in pieces, on a connection of their own, with a checksum over the whole.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use leasehold_core::protocol::MemberId;
use leasehold_node::Input;
use leasehold_wire::{
    PeerFrameReader, PeerMessage, PeerPurpose, PeerVerdict, RaftMessage, decode_peer_frame, encode_peer_frame,
};
use raft::eraftpb::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Shared, convert, opening};
use crate::driver::ToLoop;

/// Bytes of a piece.
const PIECE_BYTES: usize = 1024 * 1024;
/// Longest snapshot that is taken in: it is in memory until it is whole.
const MAX_SNAPSHOT_BYTES: usize = 2 * 1024 * 1024 * 1024;
/// A piece is written and read within this time, or the attempt is given up.
const PIECE_TIME: Duration = Duration::from_secs(10);
/// Said by the receiver when it has all of it.
const ARRIVED: u8 = 1;

/// Sends the snapshot of a message of raft, and reports how it went.
pub(super) async fn send(shared: Arc<Shared>, to: MemberId, address: String, message: Message) {
    let sent = try_send(&shared, to, &address, &message).await;
    if let Err(error) = &sent {
        tracing::warn!(peer = shared.name_of(to), %error, "a snapshot could not be sent");
    }
    shared.tell(ToLoop::Node(Input::SnapshotSent { to, arrived: sent.is_ok() }));
}

async fn try_send(shared: &Shared, to: MemberId, address: &str, message: &Message) -> io::Result<()> {
    let (mut stream, _, welcome) = opening::dial(shared, address, PeerPurpose::Snapshot, Some(to)).await?;
    if let PeerVerdict::Refused(refusal) = welcome.verdict {
        return Err(io::Error::other(refusal));
    }
    let data: &Bytes = &message.get_snapshot().data;
    write(&mut stream, PeerMessage::Raft(Box::new(convert::raft_to_wire(message)))).await?;
    let mut offset = 0;
    while offset < data.len() {
        let end = (offset + PIECE_BYTES).min(data.len());
        let part = PeerMessage::SnapshotPart { offset: offset as u64, data: data.slice(offset..end) };
        write(&mut stream, part).await?;
        offset = end;
    }
    let end = PeerMessage::SnapshotEnd { length: data.len() as u64, crc32c: crc32c::crc32c(data) };
    write(&mut stream, end).await?;
    let mut answer = [0];
    tokio::time::timeout(PIECE_TIME, stream.read_exact(&mut answer)).await??;
    if answer == [ARRIVED] { Ok(()) } else { Err(io::Error::other("the peer did not take it")) }
}

async fn write(stream: &mut TcpStream, message: PeerMessage) -> io::Result<()> {
    let mut bytes = Vec::new();
    encode_peer_frame(&[message], &mut bytes).map_err(io::Error::other)?;
    tokio::time::timeout(PIECE_TIME, stream.write_all(&bytes)).await?
}

/// Takes in one snapshot: raft's message with all of its data.
pub(super) async fn receive(stream: &mut TcpStream, frames: PeerFrameReader) -> io::Result<Message> {
    let mut receiving = Receiving::default();
    let mut frames = frames;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        while let Some(frame) = frames.next_frame().map_err(io::Error::other)? {
            for message in decode_peer_frame(frame).map_err(io::Error::other)? {
                if let Some(message) = receiving.take(message).map_err(io::Error::other)? {
                    stream.write_all(&[ARRIVED]).await?;
                    return Ok(message);
                }
            }
        }
        match tokio::time::timeout(PIECE_TIME, stream.read(&mut buffer)).await?? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => frames.push(&buffer[..count]),
        }
    }
}

/// A snapshot that is being put together.
#[derive(Debug, Default)]
struct Receiving {
    head: Option<Box<RaftMessage>>,
    data: Vec<u8>,
}

impl Receiving {
    /// The next message; the whole when it was the last.
    fn take(&mut self, message: PeerMessage) -> Result<Option<Message>, String> {
        match message {
            PeerMessage::Raft(head) if self.head.is_none() && head.snapshot.is_some() => {
                self.head = Some(head);
                Ok(None)
            }
            PeerMessage::SnapshotPart { offset, data } if self.head.is_some() => {
                if offset != self.data.len() as u64 {
                    let have = self.data.len();
                    return Err(format!("a piece of a snapshot begins at {offset}, not at {have}"));
                }
                if self.data.len() + data.len() > MAX_SNAPSHOT_BYTES {
                    return Err(format!("a snapshot is longer than {MAX_SNAPSHOT_BYTES} bytes"));
                }
                self.data.extend_from_slice(&data);
                Ok(None)
            }
            PeerMessage::SnapshotEnd { length, crc32c } => {
                let Some(head) = self.head.take() else { return Err("a snapshot without a head".into()) };
                let (have, found) = (self.data.len() as u64, crc32c::crc32c(&self.data));
                if (have, found) != (length, crc32c) {
                    return Err(format!(
                        "a snapshot of {have} bytes with checksum {found:08x} should have {length} and {crc32c:08x}"
                    ));
                }
                let mut message = convert::raft_from_wire(*head)?;
                message.mut_snapshot().data = std::mem::take(&mut self.data).into();
                Ok(Some(message))
            }
            other => Err(format!("not a part of a snapshot: {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_wire::{ConfState, SnapshotMeta};

    fn head() -> PeerMessage {
        let mut message = Message { to: 2, from: 1, term: 3, ..Message::default() };
        message.set_msg_type(raft::eraftpb::MessageType::MsgSnapshot);
        let mut wire = convert::raft_to_wire(&message);
        let conf_state = ConfState { voters: vec![1, 2], ..ConfState::default() };
        wire.snapshot = Some(SnapshotMeta { index: 9, term: 3, conf_state });
        PeerMessage::Raft(Box::new(wire))
    }

    fn part(offset: u64, data: &'static [u8]) -> PeerMessage {
        PeerMessage::SnapshotPart { offset, data: Bytes::from_static(data) }
    }

    fn end(data: &[u8]) -> PeerMessage {
        PeerMessage::SnapshotEnd { length: data.len() as u64, crc32c: crc32c::crc32c(data) }
    }

    #[test]
    fn pieces_make_a_whole() {
        let mut receiving = Receiving::default();
        for message in [head(), part(0, b"abc"), part(3, b"de")] {
            assert_eq!(receiving.take(message), Ok(None));
        }
        let whole = receiving.take(end(b"abcde")).unwrap().expect("it is whole");
        assert_eq!(&whole.get_snapshot().data[..], b"abcde");
        assert_eq!(whole.get_snapshot().get_metadata().index, 9);
    }

    #[test]
    fn gaps_changed_bytes_and_missing_ends_are_refused() {
        for wrong in [
            vec![part(0, b"abc")],
            vec![head(), part(1, b"abc")],
            vec![head(), part(0, b"abc"), part(0, b"abc")],
            vec![head(), part(0, b"abd"), end(b"abc")],
            vec![head(), part(0, b"ab"), end(b"abc")],
            vec![head(), head()],
        ] {
            let mut receiving = Receiving::default();
            let outcome: Result<Vec<_>, _> =
                wrong.into_iter().map(|message| receiving.take(message)).collect();
            assert!(outcome.is_err());
        }
    }
}
