//! The session stream inside a gRPC call: the same hello and the same frames, each as one message.
//!
//! HTTP/2 brings its own preface and its own lengths, so ours are left out. Everything inside a frame is as it is on the stream
//! of its own; [`decode_client_frame`](crate::decode_client_frame) reads it. What this does not do: it speaks no HTTP and
//! serves no call.

use leasehold_core::protocol::ToClient;
use prost::Message as _;
use prost::bytes::Bytes;

use crate::error::{FrameError, OpeningError};
use crate::frame::{MAX_FRAME_BYTES, PREFIX_BYTES};
use crate::hello::Hello;
use crate::proto as pb;
use crate::stream::encode_server;

/// From a client. The frame is left as bytes, because its requests are judged one by one; in `service.proto` it is a message, which
/// looks the same on the wire.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionIn {
    /// What it is; nothing if this release does not know it.
    #[prost(oneof = "SessionMessage", tags = "1, 2")]
    pub message: Option<SessionMessage>,
}

/// From the service.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionOut {
    /// What it is; nothing if this release does not know it.
    #[prost(oneof = "SessionMessage", tags = "1, 2")]
    pub message: Option<SessionMessage>,
}

/// What travels in either direction.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum SessionMessage {
    /// Who speaks: the first message of each side.
    #[prost(message, tag = "1")]
    Hello(pb::Hello),
    /// The body of a frame: everything behind its length.
    #[prost(bytes = "bytes", tag = "2")]
    Frame(Bytes),
}

impl SessionOut {
    /// The service's first message.
    ///
    /// # Errors
    /// When a text of the hello is too long or has control characters.
    pub fn hello(hello: &Hello) -> Result<Self, OpeningError> {
        Ok(Self { message: Some(SessionMessage::Hello(hello.to_message()?)) })
    }

    /// Responses and items.
    ///
    /// # Errors
    /// When the message would be above [`MAX_FRAME_BYTES`], which is also what clients take unless they are told otherwise: see
    /// [`encode_server`].
    pub fn frame(messages: &[ToClient]) -> Result<Self, FrameError> {
        let mut bytes = Vec::new();
        encode_server(messages, &mut bytes)?;
        let frame = Bytes::from(bytes).slice(PREFIX_BYTES..);
        let message = Self { message: Some(SessionMessage::Frame(frame)) };
        match message.encoded_len() {
            bytes if bytes > MAX_FRAME_BYTES => Err(FrameError::TooLong { bytes, limit: MAX_FRAME_BYTES }),
            _ => Ok(message),
        }
    }
}
