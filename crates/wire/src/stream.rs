//! Frames of requests, and frames of responses and items.
//!
//! Requests are judged one by one, because the service owes each of them an answer. Messages of the service are judged together:
//! a client that does not understand one of them does not know the state of its sessions any more and has to end the connection.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use prost::Message;

use crate::convert::{Wire, present};
use crate::error::FrameError;
use crate::frame::{MAX_FRAME_BYTES, Messages, append_frame, append_message};
use crate::proto as pb;

/// A request of a frame, or why it is not understood.
pub type HeardRequest = (RequestId, Result<Request, String>);

/// Appends one complete frame of requests to `out`, or leaves `out` as it was.
///
/// # Errors
/// When the frame would be above [`MAX_FRAME_BYTES`]: send fewer requests in one frame. A single request that keeps the
/// limits of the table always fits.
pub fn encode_client(requests: &[(RequestId, Request)], out: &mut Vec<u8>) -> Result<(), FrameError> {
    append_frame(out, MAX_FRAME_BYTES, |body| {
        for (id, request) in requests {
            append_message(body, &pb::ClientMessage { id: id.0, request: Some(request.to_wire()) });
        }
    })
}

/// Appends one complete frame of responses and items to `out`, or leaves `out` as it was.
///
/// # Errors
/// When the frame would be above [`MAX_FRAME_BYTES`]: send fewer messages in one frame, or fewer items in one message. A page of
/// a listing can be too long by itself, and has to be made shorter by whoever makes it.
pub fn encode_server(messages: &[ToClient], out: &mut Vec<u8>) -> Result<(), FrameError> {
    append_frame(out, MAX_FRAME_BYTES, |body| {
        for message in messages {
            append_message(body, &message.to_wire());
        }
    })
}

/// The requests of a frame. One that is not understood comes with the reason, to be answered as a bad request under its id.
///
/// # Errors
/// When the frame is not one of messages, or a message is so damaged that its id cannot be read.
pub fn decode_client_frame(frame: &[u8]) -> Result<Vec<HeardRequest>, FrameError> {
    Messages::of(frame).map(|message| decode_request(message?)).collect()
}

/// The messages of a frame from the service.
///
/// # Errors
/// When the frame is not one of messages, or any of them cannot be read or says what this release does not know.
pub fn decode_server_frame(frame: &[u8]) -> Result<Vec<ToClient>, FrameError> {
    decode_messages(frame)
}

/// The messages of a frame, judged together.
pub(crate) fn decode_messages<T: Wire<Message: Message + Default>>(
    frame: &[u8],
) -> Result<Vec<T>, FrameError> {
    Messages::of(frame)
        .map(|message| {
            let (position, bytes) = message?;
            let message =
                T::Message::decode(bytes).map_err(|why| FrameError::Unreadable { position, why })?;
            T::from_wire(message).map_err(|why| FrameError::BadField { position, why })
        })
        .collect()
}

/// The part of a request that is looked for when the rest cannot be read. Everything else in it is skipped unseen, so text that
/// is not UTF-8, for example, does not stand in the way.
#[derive(Clone, Copy, PartialEq, Message)]
struct OnlyId {
    #[prost(uint64, tag = "1")]
    id: u64,
}

fn decode_request((position, bytes): (usize, &[u8])) -> Result<HeardRequest, FrameError> {
    match pb::ClientMessage::decode(bytes) {
        Ok(message) => {
            let request = present("request", message.request).and_then(Request::from_wire);
            Ok((RequestId(message.id), request.map_err(|why| why.to_string())))
        }
        Err(why) => match OnlyId::decode(bytes) {
            Ok(only) => Ok((RequestId(only.id), Err(why.to_string()))),
            Err(_) => Err(FrameError::Unreadable { position, why }),
        },
    }
}
