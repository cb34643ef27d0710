//! What nodes send to each other, and frames of it.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use prost::Message as _;
use prost::bytes::Bytes;

use super::frame::{MAX_PEER_FRAME_BYTES, append_frame};
use super::proto as pb;
use super::raft::RaftMessage;
use crate::convert::{Checked, Wire, present};
use crate::error::FrameError;
use crate::frame::{Messages, append_message};
use crate::proto as session;
use pb::peer_message::Message;

/// From one node to another. Connections are named by the node that the client is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerMessage {
    /// Raft's own.
    Raft(Box<RaftMessage>),
    /// A part of a snapshot, behind raft's message that describes it.
    SnapshotPart {
        /// How many bytes come before it.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// The end of a snapshot.
    SnapshotEnd {
        /// How many bytes it has.
        length: u64,
        /// CRC-32C over all of them.
        crc32c: u32,
    },
    /// A client's request, for the leader, as it came.
    Request {
        /// The client's connection at the sender.
        connection: u64,
        /// The id that the client gave it.
        id: RequestId,
        /// What; or why it is not understood, to be answered as a bad request. Such a one is sent without content, and is not
        /// understood where it arrives either.
        request: Result<Request, String>,
    },
    /// The sender of this does not lead and has not taken the request in.
    NotLeading {
        /// The client's connection at the receiver of this.
        connection: u64,
        /// The request.
        id: RequestId,
    },
    /// Nobody waits for the answer to a request any more.
    Abandoned {
        /// The client's connection at the sender.
        connection: u64,
        /// The request.
        id: RequestId,
    },
    /// A client has ended its connection itself, or died.
    HungUp {
        /// The client's connection at the sender.
        connection: u64,
    },
    /// A client's connection is gone.
    Disconnected {
        /// The client's connection at the sender.
        connection: u64,
    },
    /// Something for a client.
    Reply {
        /// The client's connection at the receiver of this.
        connection: u64,
        /// What.
        message: ToClient,
    },
    /// A client must connect anew: what it was attached to is not here any more.
    Close {
        /// The client's connection at the receiver of this.
        connection: u64,
    },
}

/// Appends one complete frame to `out`, or leaves `out` as it was.
///
/// # Errors
/// When the frame would be above [`MAX_PEER_FRAME_BYTES`]: send fewer messages in one frame.
pub fn encode_peer_frame(messages: &[PeerMessage], out: &mut Vec<u8>) -> Result<(), FrameError> {
    append_frame(out, MAX_PEER_FRAME_BYTES, |body| {
        for message in messages {
            append_message(body, &pb::PeerMessage { message: Some(message.to_wire()) });
        }
    })
}

/// The messages in the body of a frame.
///
/// # Errors
/// When the body is not one of messages, or any of them cannot be read or says what this release does not know. A client's
/// request that says so is no error: it comes with the reason.
pub fn decode_peer_frame(body: &[u8]) -> Result<Vec<PeerMessage>, FrameError> {
    Messages::of(body)
        .map(|message| {
            let (position, bytes) = message?;
            let message =
                pb::PeerMessage::decode(bytes).map_err(|why| FrameError::Unreadable { position, why })?;
            present("peer_message", message.message)
                .and_then(PeerMessage::from_wire)
                .map_err(|why| FrameError::BadField { position, why })
        })
        .collect()
}

impl PeerMessage {
    fn to_wire(&self) -> Message {
        match self {
            Self::Raft(message) => Message::Raft(message.to_wire()),
            Self::SnapshotPart { offset, data } => {
                Message::SnapshotPart(pb::SnapshotPart { offset: *offset, data: data.clone() })
            }
            Self::SnapshotEnd { length, crc32c } => {
                Message::SnapshotEnd(pb::SnapshotEnd { length: *length, crc32c: *crc32c })
            }
            Self::Request { connection, id, request } => {
                let request = request.as_ref().ok().map(Wire::to_wire);
                let message = Some(session::ClientMessage { id: id.0, request });
                Message::Request(pb::PeerRequest { connection: *connection, message })
            }
            Self::NotLeading { connection, id } => Message::NotLeading(forwarded(*connection, *id)),
            Self::Abandoned { connection, id } => Message::Abandoned(forwarded(*connection, *id)),
            Self::HungUp { connection } => Message::HungUp(*connection),
            Self::Disconnected { connection } => Message::Disconnected(*connection),
            Self::Reply { connection, message } => {
                let message = Some(session::ServerMessage { message: Some(message.to_wire()) });
                Message::Reply(pb::PeerReply { connection: *connection, message })
            }
            Self::Close { connection } => Message::Close(*connection),
        }
    }

    fn from_wire(message: Message) -> Checked<Self> {
        Ok(match message {
            Message::Raft(m) => Self::Raft(Box::new(RaftMessage::from_wire(m)?)),
            Message::SnapshotPart(m) => Self::SnapshotPart { offset: m.offset, data: m.data },
            Message::SnapshotEnd(m) => Self::SnapshotEnd { length: m.length, crc32c: m.crc32c },
            Message::Request(m) => {
                let message = present("peer_request.message", m.message)?;
                let request = present("request", message.request).and_then(Request::from_wire);
                Self::Request {
                    connection: m.connection,
                    id: RequestId(message.id),
                    request: request.map_err(|why| why.to_string()),
                }
            }
            Message::NotLeading(m) => Self::NotLeading { connection: m.connection, id: RequestId(m.id) },
            Message::Abandoned(m) => Self::Abandoned { connection: m.connection, id: RequestId(m.id) },
            Message::HungUp(connection) => Self::HungUp { connection },
            Message::Disconnected(connection) => Self::Disconnected { connection },
            Message::Reply(m) => {
                let message = present("peer_reply.message", m.message)?.message;
                let message = ToClient::from_wire(present("message", message)?)?;
                Self::Reply { connection: m.connection, message }
            }
            Message::Close(connection) => Self::Close { connection },
        })
    }
}

const fn forwarded(connection: u64, id: RequestId) -> pb::ForwardedRequest {
    pb::ForwardedRequest { connection, id: id.0 }
}
