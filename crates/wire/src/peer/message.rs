//! What nodes send to each other, and frames of it.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use prost::bytes::Bytes;

use super::frame::{MAX_PEER_FRAME_BYTES, append_frame};
use super::proto as pb;
use super::raft::RaftMessage;
use crate::convert::{Wire, boxed, present, variants};
use crate::error::FrameError;
use crate::frame::append_message;
use crate::proto as session;
use crate::stream::decode_messages;

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
            append_message(body, &message.to_wire());
        }
    })
}

/// The messages in the body of a frame.
///
/// # Errors
/// When the body is not one of messages, or any of them cannot be read or says what this release does not know. A client's
/// request that says so is no error: it comes with the reason.
pub fn decode_peer_frame(body: &[u8]) -> Result<Vec<PeerMessage>, FrameError> {
    decode_messages(body)
}

variants! {
    PeerMessage => PeerMessage { message: peer_message::Message } at "peer_message";
    Raft(message) => Raft,
    SnapshotPart { offset, data } => SnapshotPart(SnapshotPart) at "snapshot_part",
    SnapshotEnd { length, crc32c } => SnapshotEnd(SnapshotEnd) at "snapshot_end",
    NotLeading { connection, id } => NotLeading(ForwardedRequest) at "not_leading",
    Abandoned { connection, id } => Abandoned(ForwardedRequest) at "abandoned",
    HungUp { connection } => HungUp,
    Disconnected { connection } => Disconnected,
    Reply { connection, message } => Reply(PeerReply) at "peer_reply",
    Close { connection } => Close;
    to {
        Self::Request { connection, id, request } => {
            let request = request.as_ref().ok().map(Wire::to_wire);
            let message = Some(session::ClientMessage { id: id.0, request });
            pb::peer_message::Message::Request(pb::PeerRequest { connection: *connection, message })
        }
    }
    from {
        pb::peer_message::Message::Request(pb::PeerRequest { connection, message }) => {
            let session::ClientMessage { id, request } = present("peer_request.message", message)?;
            let request = present("request", request).and_then(Request::from_wire);
            Self::Request { connection, id: RequestId(id), request: request.map_err(|why| why.to_string()) }
        }
    }
}

boxed!(RaftMessage);
