//! The session stream and the stream between nodes as bytes: messages, their framing, and their conversion to the core's types.
//!
//! A connection begins with an [opening](Hello) in each direction: eight bytes that no HTTP peer sends, then a frame that says
//! who speaks and which version of the protocol. After it come frames, each of many messages: requests from the client, responses
//! and items of sessions from the service. The messages themselves are described in `proto/leasehold/v1/session.proto`.
//! The stream between nodes has a preface of its own, and frames with a checksum: see [`PeerMessage`].
//!
//! What this crate promises:
//! - What goes in comes out: every request and every response survives the way exactly.
//! - What comes out is valid: names, labels, keys and values have passed the core's own checks, variants and enums are known.
//! - One request that is not understood does not harm its neighbours in the frame, and can be answered by its id.
//! - No input panics, and none makes the reader reserve memory on the word of a length alone.
//!
//! What it deliberately does not do: it reads no socket and knows no runtime, it does not split what is too long for a frame, and
//! it does not check whether a request is *allowed*; that is the table's business.
//!
//! ```
//! use leasehold_core::protocol::{Query, Request, RequestId};
//! use leasehold_wire::{FrameReader, decode_client_frame, encode_client};
//!
//! let mut bytes = Vec::new();
//! encode_client(&[(RequestId(1), Request::Read(Query::Status))], &mut bytes)?;
//!
//! let mut reader = FrameReader::new();
//! reader.push(&bytes);
//! let frame = reader.next_frame()?.expect("the whole frame was pushed");
//! let requests = decode_client_frame(frame)?;
//! assert_eq!(requests, [(RequestId(1), Ok(Request::Read(Query::Status)))]);
//! # Ok::<(), leasehold_wire::FrameError>(())
//! ```

mod convert;
mod error;
mod frame;
mod grpc;
mod hello;
mod peer;
mod proto;
mod stream;

pub use convert::Wire;
pub use error::{FieldError, FrameError, OpeningError};
pub use frame::{FrameReader, MAX_FRAME_BYTES};
pub use hello::{
    FirstBytes, Hello, MAX_HELLO_BYTES, MAX_HELLO_TEXT_BYTES, OpeningReader, PREFACE, THIS_NODE,
    encode_opening, look_at_first_bytes,
};
pub use peer::{
    ConfState, MAX_INITIAL_CLUSTER_BYTES, MAX_PEER_FRAME_BYTES, MAX_PEER_OPENING_BYTES, PEER_PREFACE,
    PEER_VERSION, PeerFrameReader, PeerHello, PeerMessage, PeerOpeningReader, PeerPurpose, PeerRefusal,
    PeerVerdict, PeerWelcome, RaftEntry, RaftMessage, SnapshotMeta, decode_peer_frame, encode_peer_frame,
    encode_peer_hello, encode_peer_welcome,
};
pub use stream::{HeardRequest, decode_client_frame, decode_server_frame, encode_client, encode_server};

/// The messages of `proto/leasehold/v1`, for doors that speak protobuf themselves. They are not checked: [`Wire`] turns them
/// into values that are.
pub mod messages {
    pub use crate::grpc::{SessionIn, SessionMessage, SessionOut};
    pub use crate::proto::*;
}
